//! The election that a device takes part in, by kube-controller-manager's flags.

use anyhow::{Context, Result};
use clap::{ArgAction, Args};
use picokube_config::Election;
use picokube_core::time::Duration;

/// Options of leader election. What is not said is as in kube-controller-manager.
#[derive(Args, Clone, Debug, Default)]
pub struct ElectionArguments {
    /// Write only while leading: of several that serve one cluster, one writes, and the others stand by
    /// [default: true for a device that is told its --identity]
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", value_name = "BOOL")]
    pub leader_elect: Option<bool>,
    /// How long who stands by waits after the last sign of life of the leader [default: 15s]
    #[arg(long, value_name = "DURATION")]
    pub leader_elect_lease_duration: Option<Duration>,
    /// How long a leader tries to renew its lease, and writes, before it gives up; shorter than the lease
    /// [default: 10s]
    #[arg(long, value_name = "DURATION")]
    pub leader_elect_renew_deadline: Option<Duration>,
    /// How long to wait between two tries [default: 2s]
    #[arg(long, value_name = "DURATION")]
    pub leader_elect_retry_period: Option<Duration>,
    /// Name of the Lease [default: picokube]
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,
    /// Namespace of the Lease [default: kube-system, or the only --namespace]
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_namespace: Option<String>,
}

impl ElectionArguments {
    /// What stands on the page, for a device that was told its name or not. Whether it can work, the page
    /// says.
    pub fn election(&self, has_name: bool) -> Result<Option<Election<'_>>> {
        if !self.leader_elect.unwrap_or(has_name) {
            return Ok(None);
        }
        Ok(Some(Election {
            lease_duration: millis(self.leader_elect_lease_duration)?,
            renew_deadline: millis(self.leader_elect_renew_deadline)?,
            retry_period: millis(self.leader_elect_retry_period)?,
            resource_name: self.leader_elect_resource_name.as_deref(),
            resource_namespace: self.leader_elect_resource_namespace.as_deref(),
        }))
    }
}

fn millis(duration: Option<Duration>) -> Result<Option<u32>> {
    let millis = duration.map(|duration| u32::try_from(duration.as_millis()));
    millis.transpose().context("no duration of an election is longer than 49 days")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        election: ElectionArguments,
    }

    fn parsed(flags: &[&str]) -> ElectionArguments {
        Flags::try_parse_from([&["configure"], flags].concat()).unwrap().election
    }

    #[test]
    fn a_device_with_a_name_takes_part_unless_it_is_told_not_to() {
        let takes_part =
            |flags: &[&str], has_name| parsed(flags).election(has_name).unwrap().is_some();
        assert!(takes_part(&[], true));
        assert!(!takes_part(&[], false));
        assert!(takes_part(&["--leader-elect"], false));
        assert!(!takes_part(&["--leader-elect=false"], true));
    }

    #[test]
    fn what_is_said_stands_on_the_page() {
        let flags = [
            "--leader-elect-lease-duration=1m",
            "--leader-elect-retry-period=9s500ms",
            "--leader-elect-resource-namespace=leases",
        ];
        let arguments = parsed(&flags);
        let expected = Election {
            lease_duration: Some(60_000),
            renew_deadline: None,
            retry_period: Some(9_500),
            resource_name: None,
            resource_namespace: Some("leases"),
        };
        assert_eq!(arguments.election(true).unwrap(), Some(expected));
        let long = parsed(&["--leader-elect-lease-duration=2000h"]).election(true).unwrap_err();
        assert!(long.to_string().contains("49 days"), "{long}");
    }
}
