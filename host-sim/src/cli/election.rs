//! `--leader-elect` and its kin, named and checked as those of kube-controller-manager.

use anyhow::{Result, bail};
use clap::{ArgAction, Args};
use picokube_core::leader_election::LeaderElection;
use picokube_core::time::Duration;

use crate::random::Random;

/// Options of leader election.
#[derive(Debug, Args)]
pub(super) struct ElectionOptions {
    /// Write only while leading: of several that run against one cluster, one writes, and the
    /// others stand by
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true)]
    #[arg(default_value_t = true, default_missing_value = "true", value_name = "BOOL")]
    leader_elect: bool,
    /// How long who stands by waits after the last sign of life of the leader
    #[arg(long, default_value = "15s", value_name = "DURATION")]
    leader_elect_lease_duration: Duration,
    /// How long a leader tries to renew its lease, and writes, before it gives up; shorter than the
    /// lease
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    leader_elect_renew_deadline: Duration,
    /// How long to wait between two tries
    #[arg(long, default_value = "2s", value_name = "DURATION")]
    leader_elect_retry_period: Duration,
    /// Name of the Lease
    #[arg(long, default_value = LeaderElection::DEFAULT.resource_name, value_name = "NAME")]
    leader_elect_resource_name: String,
    /// Namespace of the Lease [default: kube-system, or the only --namespace]
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_namespace: Option<String>,
}

impl ElectionOptions {
    /// What was chosen, if there is to be an election, for somebody who looks at these namespaces.
    pub(super) fn settings(
        &self,
        namespaces: &[&'static str],
    ) -> Result<Option<LeaderElection<'static>>> {
        if !self.leader_elect {
            return Ok(None);
        }
        let leak = |text: &str| &*text.to_owned().leak();
        let resource_namespace = match (&self.leader_elect_resource_namespace, namespaces) {
            (Some(chosen), _) => leak(chosen),
            // Whoever may look at one namespace only has no Lease elsewhere.
            (None, [only]) => only,
            (None, _) => LeaderElection::DEFAULT.resource_namespace,
        };
        // The settings live as long as the process, as on a microcontroller.
        let settings = LeaderElection {
            identity: identity().leak(),
            resource_namespace,
            resource_name: leak(&self.leader_elect_resource_name),
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        };
        match settings.check() {
            Ok(()) => Ok(Some(settings)),
            Err(invalid) => bail!("--leader-elect: {invalid}"),
        }
    }
}

/// As in kube-controller-manager: the name of this machine, and a number of this process.
fn identity() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    let mut name = name.unwrap_or_else(|| "picokube".to_owned());
    while name.len() > 200 {
        name.pop();
    }
    format!("{name}_{}", Random::from_entropy().uuid())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        options: ElectionOptions,
    }

    fn parsed(
        flags: &[&str],
        namespaces: &[&'static str],
    ) -> Result<Option<LeaderElection<'static>>, String> {
        let flags = Flags::try_parse_from([&["run"], flags].concat()).map_err(|e| e.to_string())?;
        flags.options.settings(namespaces).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn without_flags_there_is_an_election_as_in_kubernetes() {
        let settings = parsed(&[], &[]).unwrap().unwrap();
        assert_eq!(settings.lease_duration, Duration::from_secs(15));
        assert_eq!(settings.renew_deadline, Duration::from_secs(10));
        assert_eq!(settings.retry_period, Duration::from_secs(2));
        assert_eq!(
            (settings.resource_namespace, settings.resource_name),
            ("kube-system", "picokube")
        );
        let (name, number) = settings.identity.rsplit_once('_').unwrap();
        assert!(!name.is_empty() && number.len() == 36, "{}", settings.identity);
        assert_ne!(parsed(&[], &[]).unwrap().unwrap().identity, settings.identity);
    }

    #[test]
    fn it_can_be_turned_off_and_changed() {
        assert!(parsed(&["--leader-elect=false"], &[]).unwrap().is_none());
        assert!(parsed(&["--leader-elect"], &[]).unwrap().is_some());
        let flags = [
            "--leader-elect-lease-duration=1m",
            "--leader-elect-renew-deadline=40s",
            "--leader-elect-retry-period=9s500ms",
            "--leader-elect-resource-name=shared",
            "--leader-elect-resource-namespace=leases",
        ];
        let settings = parsed(&flags, &["shop"]).unwrap().unwrap();
        assert_eq!(settings.lease_duration, Duration::from_secs(60));
        assert_eq!(settings.retry_period, Duration::from_millis(9_500));
        assert_eq!((settings.resource_namespace, settings.resource_name), ("leases", "shared"));
    }

    #[test]
    fn who_looks_at_one_namespace_has_its_lease_there() {
        let namespace = |chosen| parsed(&[], chosen).unwrap().unwrap().resource_namespace;
        assert_eq!(namespace(&["shop"]), "shop");
        assert_eq!(namespace(&["bank", "shop"]), "kube-system");
    }

    #[test]
    fn wrong_relations_and_wrong_durations_are_refused() {
        for (flag, complaint) in [
            (
                "--leader-elect-lease-duration=10s",
                "leaseDuration must be greater than renewDeadline",
            ),
            (
                "--leader-elect-retry-period=9s",
                "renewDeadline must be greater than retryPeriod*1.2",
            ),
            ("--leader-elect-retry-period=0s", "retryPeriod must be greater than zero"),
            ("--leader-elect-resource-name=A/B", "resourceName is not the name of a Lease"),
            ("--leader-elect-lease-duration=15", "a duration is written like 15s"),
            ("--leader-elect-lease-duration=", "a duration is written like 15s"),
            ("--leader-elect-lease-duration=fast", "a duration is written like 15s"),
            ("--leader-elect-lease-duration=15x", "a duration is written like 15s"),
        ] {
            let error = parsed(&[flag], &[]).unwrap_err();
            assert!(error.contains(complaint), "{flag}: {error}");
        }
    }
}
