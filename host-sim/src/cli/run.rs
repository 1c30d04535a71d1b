//! `picokube run`, and what it shares with `picokube up`.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use picokube_core::manager::{Enabled, Rate, Settings};
use picokube_core::time::Duration;

use crate::controllers::{self, Controllers, Credentials, Endpoint, Material};

use super::up::interrupted;
use super::{ControllerOptions, RunOptions};

/// Requests a second that kube-controller-manager allows each controller.
const DEFAULT_QPS: u32 = 20;

/// Runs the controllers against a cluster until Ctrl-C.
pub(super) async fn run(options: RunOptions) -> Result<()> {
    let endpoint = endpoint(&options)?;
    let mut settings = settings(&options.controllers, DEFAULT_QPS)?;
    // The settings live as long as the process, as on a microcontroller.
    settings.namespace = options.namespace.map(|name| &*name.leak());
    settings.label_selector = options.selector.map(|selector| &*selector.leak());
    endpoint.check(settings.namespace).await?;
    println!("controllers run against {}", endpoint.host);
    let capacity = options.controllers.capacity;
    let address = options.controllers.metrics_bind_address;
    let controllers = controllers::start(controllers::Options { endpoint, capacity, settings })?;
    serve(&controllers, address).await?;
    interrupted().await
}

/// Serves metrics and health, if that is wanted.
pub(super) async fn serve(controllers: &Controllers, address: Option<SocketAddr>) -> Result<()> {
    if let Some(address) = address {
        let address = controllers.serve(address).await?;
        println!("metrics and health on http://{address}");
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
    Endpoint::new(server, token.as_deref(), &credentials)
}

/// What the flags say, with `qps` where they do not say how fast.
pub(super) fn settings(options: &ControllerOptions, qps: u32) -> Result<Settings> {
    let enabled = Enabled::parse(options.controllers.iter().map(String::as_str));
    let controllers = match enabled {
        Ok(enabled) => enabled,
        Err(unknown) => bail!("--controllers: {unknown}"),
    };
    let mut settings = Settings { controllers, ..Settings::DEFAULT };
    settings.rate = match options.kube_api_qps.unwrap_or(qps) {
        0 => None,
        qps => Some(Rate { qps, burst: options.kube_api_burst.max(1) }),
    };
    settings.status_lag = Duration::from_millis(options.status_lag.into());
    for gate in &options.feature_gates {
        settings.terminating_replicas = match gate.split_once('=') {
            Some((TERMINATING_REPLICAS, "true")) => true,
            Some((TERMINATING_REPLICAS, "false")) => false,
            Some((TERMINATING_REPLICAS, value)) => {
                bail!("--feature-gates: {TERMINATING_REPLICAS}={value}: neither true nor false")
            }
            _ => bail!("--feature-gates: {gate}: known is {TERMINATING_REPLICAS}=true|false"),
        };
    }
    Ok(settings)
}

const TERMINATING_REPLICAS: &str = "DeploymentReplicaSetTerminatingReplicas";
