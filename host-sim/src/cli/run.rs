//! `picokube run`, and what it shares with `picokube up`.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use picokube_core::limits::SELECTOR;
use picokube_core::manager::{ControllerName, Enabled, Rate, Settings};
use picokube_core::time::Duration;
use picokube_core::watch::length_in_url;

use crate::controllers::{self, Controllers, Credentials, Endpoint, Material};

use super::interruption::Interruption;
use super::upstream;
use super::{ControllerOptions, RunOptions};

/// What holds where the flags say nothing.
pub(super) struct Defaults {
    /// Requests a second of each controller; 0 is no limit.
    pub(super) qps: u32,
    /// How long statuses may wait for each other.
    pub(super) status_lag: Duration,
}

/// As fast as kube-controller-manager, with fewer statuses.
const DEFAULTS: Defaults = Defaults { qps: Rate::KUBERNETES.qps, status_lag: Settings::STATUS_LAG };

/// Runs the controllers against a cluster until Ctrl-C, and then lets somebody else lead.
pub(super) async fn run(options: RunOptions) -> Result<()> {
    let endpoint = endpoint(&options)?;
    let mut settings = settings(&options.controllers, &DEFAULTS)?;
    // The settings live as long as the process, as on a microcontroller.
    settings.namespaces = namespaces(options.namespace)?;
    settings.leader_election = options.election.settings(settings.namespaces)?;
    settings.label_selector = options.selector.map(selector).transpose()?;
    let namespace = match settings.namespaces {
        [only] => Some(*only),
        _ => None,
    };
    endpoint.check(namespace).await?;
    say!("controllers run against {}", endpoint.host);
    let capacity = options.controllers.capacity;
    let address = options.controllers.metrics_bind_address;
    let interruption = Interruption::expect()?;
    let controllers = controllers::start(controllers::Options { endpoint, capacity, settings })?;
    serve(&controllers, address).await?;
    interruption.comes().await;
    say!("stopping");
    controllers.release_leadership().await;
    Ok(())
}

/// The chosen selector, if it is not too long to be sent.
fn selector(selector: String) -> Result<&'static str> {
    let length = length_in_url(&selector);
    if length > SELECTOR {
        bail!("--selector has {length} characters in a URL, {SELECTOR} are possible: {selector}");
    }
    Ok(selector.leak())
}

/// The chosen namespaces, each once.
fn namespaces(mut chosen: Vec<String>) -> Result<&'static [&'static str]> {
    if chosen.iter().any(String::is_empty) {
        bail!("--namespace: a name is empty");
    }
    chosen.sort();
    chosen.dedup();
    let names: Vec<&'static str> = chosen.into_iter().map(|name| &*name.leak()).collect();
    Ok(names.leak())
}

/// Serves metrics and health, if that is wanted.
pub(super) async fn serve(controllers: &Controllers, address: Option<SocketAddr>) -> Result<()> {
    if let Some(address) = address {
        let address = controllers.serve(address).await?;
        say!("metrics and health on http://{address}");
    }
    Ok(())
}

fn endpoint(options: &RunOptions) -> Result<Endpoint> {
    if let Some(path) = &options.kubeconfig {
        return Endpoint::from_kubeconfig(path, options.context.as_deref());
    }
    let Some(server) = &options.server else {
        let variable = |name: &str| std::env::var(name).ok();
        return Endpoint::in_cluster(variable, &options.service_account_dir);
    };
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .with_context(|| format!("--token-file: cannot read {}", path.display()))
    };
    let token = options.token_file.as_deref().map(read).transpose()?;
    let file = |path: &Option<std::path::PathBuf>| path.clone().map(Material::File);
    let credentials = Credentials {
        authority: file(&options.certificate_authority),
        client: file(&options.client_certificate).zip(file(&options.client_key)),
        server_name: None,
    };
    let endpoint = Endpoint::new(server, token.as_deref(), &credentials)?;
    Ok(endpoint.with_token_file(options.token_file.clone()))
}

/// What the flags say, and the defaults where they say nothing.
pub(super) fn settings(options: &ControllerOptions, defaults: &Defaults) -> Result<Settings> {
    let enabled = Enabled::parse(options.controllers.iter().map(String::as_str));
    let controllers = match enabled {
        Ok(enabled) => enabled,
        Err(unknown) => match upstream::controller(unknown.item) {
            Some(name) => {
                let ours: Vec<_> = ControllerName::ALL.iter().map(|ours| ours.name()).collect();
                let ours = ours.join(", ");
                let item = unknown.item;
                bail!(
                    "--controllers: \"{item}\": kube-controller-manager has a {name}, picokube does not; \
                     it has {ours}"
                )
            }
            None => bail!("--controllers: {unknown}"),
        },
    };
    let mut settings = Settings { controllers, ..Settings::DEFAULT };
    settings.rate = match options.kube_api_qps.unwrap_or(defaults.qps) {
        0 => None,
        qps => Some(Rate { qps, burst: options.kube_api_burst.max(1) }),
    };
    let lag = options.status_lag.map(|millis| Duration::from_millis(millis.into()));
    settings.status_lag = lag.unwrap_or(defaults.status_lag);
    for gate in &options.feature_gates {
        let (name, value) = gate.split_once('=').unwrap_or((gate, ""));
        let setting = match name {
            TERMINATING_REPLICAS => &mut settings.terminating_replicas,
            MAX_UNAVAILABLE => &mut settings.max_unavailable_stateful_set,
            _ => bail!(
                "--feature-gates: {gate}: known are {TERMINATING_REPLICAS} and {MAX_UNAVAILABLE}, with \
                 =true or =false"
            ),
        };
        *setting = match value {
            "true" => true,
            "false" => false,
            _ => bail!("--feature-gates: {gate}: neither true nor false"),
        };
    }
    Ok(settings)
}

pub(super) const TERMINATING_REPLICAS: &str = "DeploymentReplicaSetTerminatingReplicas";
pub(super) const MAX_UNAVAILABLE: &str = "MaxUnavailableStatefulSet";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        options: ControllerOptions,
    }

    fn parsed(flags: &[&str]) -> Result<Settings, String> {
        let flags = Flags::try_parse_from([&["run"], flags].concat()).map_err(|e| e.to_string())?;
        settings(&flags.options, &DEFAULTS).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn without_flags_it_is_as_in_kubernetes_but_for_the_lag() {
        let settings = parsed(&[]).unwrap();
        assert_eq!(settings.rate, Some(Rate::KUBERNETES));
        assert!(!settings.terminating_replicas);
        assert_eq!(settings.controllers, Enabled::ALL);
        assert_eq!(settings.status_lag, Settings::STATUS_LAG);
        let exact = parsed(&["--status-lag", "0"]).unwrap();
        assert_eq!(exact.status_lag, Duration::ZERO);
    }

    #[test]
    fn namespaces_are_given_one_by_one_or_together() {
        #[derive(Parser)]
        struct Run {
            #[command(flatten)]
            options: super::super::RunOptions,
        }
        let chosen = |flags: &[&str]| {
            let run = Run::try_parse_from([&["run"], flags].concat()).unwrap();
            namespaces(run.options.namespace).map_err(|error| error.to_string())
        };
        assert_eq!(chosen(&[]).unwrap(), [""; 0]);
        assert_eq!(chosen(&["--namespace", "b,a", "--namespace", "b"]).unwrap(), ["a", "b"]);
        assert_eq!(chosen(&["--namespace", "a,"]), Err("--namespace: a name is empty".to_owned()));
    }

    #[test]
    fn rates_are_taken_over_and_none_is_no_limit() {
        let rate = |flags: &[&str]| parsed(flags).unwrap().rate;
        assert_eq!(rate(&["--kube-api-qps", "50"]), Some(Rate { qps: 50, burst: 30 }));
        assert_eq!(rate(&["--kube-api-burst", "7"]), Some(Rate { qps: 20, burst: 7 }));
        assert_eq!(rate(&["--kube-api-qps", "0"]), None);
        // Without any burst nothing could ever be sent.
        assert_eq!(rate(&["--kube-api-burst", "0"]), Some(Rate { qps: 20, burst: 1 }));
        assert!(parsed(&["--kube-api-qps", "-1"]).is_err());
        assert!(parsed(&["--kube-api-qps", "many"]).is_err());
    }

    #[test]
    fn controllers_are_chosen_as_in_kubernetes() {
        let runs = |list: &str| {
            let enabled = parsed(&["--controllers", list]).unwrap().controllers;
            let all = ControllerName::ALL.iter();
            all.map(|controller| enabled.contains(*controller)).collect::<Vec<_>>()
        };
        assert_eq!(runs("*"), [true, true, true, true]);
        assert_eq!(runs("*,-replicaset"), [true, false, true, true]);
        assert_eq!(runs("-deployment-controller,*"), [false, true, true, true]);
        assert_eq!(runs("replicaset"), [false, true, false, false]);
        assert_eq!(runs("statefulset"), [false, false, true, false]);
        assert_eq!(runs("replicationcontroller"), [false, false, false, true]);
        let error = |list| parsed(&["--controllers", list]).unwrap_err();
        assert_eq!(
            error("*,-nodelifecycel"),
            "--controllers: \"-nodelifecycel\" is not in the list of known controllers"
        );
        assert_eq!(
            error("*,-nodelifecycle"),
            "--controllers: \"-nodelifecycle\": kube-controller-manager has a node-lifecycle-controller, \
             picokube does not; it has deployment-controller, replicaset-controller, \
             statefulset-controller, replicationcontroller-controller"
        );
    }

    #[test]
    fn feature_gates_are_known_and_true_or_false() {
        let gates = |list: &str| parsed(&["--feature-gates", list]);
        let gate = TERMINATING_REPLICAS;
        assert!(gates(&format!("{gate}=true")).unwrap().terminating_replicas);
        assert!(!gates(&format!("{gate}=true,{gate}=false")).unwrap().terminating_replicas);
        let both = gates(&format!("{gate}=true,{MAX_UNAVAILABLE}=true")).unwrap();
        assert!(both.terminating_replicas && both.max_unavailable_stateful_set);
        for bad in [format!("{gate}=1"), gate.to_owned(), "Other=true".to_owned()] {
            assert!(gates(&bad).unwrap_err().contains(&bad), "{bad}");
        }
    }
}
