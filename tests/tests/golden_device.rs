//! The golden scenarios, with a microcontroller as the cluster's only controller, over TLS: by token or by
//! client certificate.
//!
//! A third of them, chosen so that every sort of thing is there; with `PICOKUBE_GOLDEN_ALL` every
//! one (`cargo xtask golden --firmware`). One boot serves many: each has a namespace.

use std::env;

use anyhow::Result;
use picokube_config::Document;
use picokube_tests::firmware::{self, Setup, Shows};
use picokube_tests::golden::Server;
use picokube_tests::golden::suite::{Share, Suite};
use picokube_tests::picokube::Picokube;

#[test]
fn deployments_and_replica_sets_behave_as_recorded() -> Result<()> {
    play(deployments_and_replica_sets(), Share { number: 0, of: 2 }, None, Shows::Token)
}

#[test]
fn deployments_and_replica_sets_behave_as_recorded_on_a_second_device() -> Result<()> {
    play(deployments_and_replica_sets(), Share { number: 1, of: 2 }, None, Shows::Certificate)
}

fn deployments_and_replica_sets() -> &'static [&'static str] {
    if is_all() { &["d-*", "rs-*"] } else { &A_THIRD }
}

#[test]
fn deployments_that_count_terminating_replicas_behave_as_recorded() -> Result<()> {
    let scenarios = if is_all() { "dt-*" } else { "dt-scale-down" };
    let gate = "DeploymentReplicaSetTerminatingReplicas=true";
    play(&[scenarios], Share::ALL, Some(gate), Shows::Token)
}

#[test]
fn stateful_sets_behave_as_recorded() -> Result<()> {
    let scenarios = if is_all() { &["s-*"][..] } else { &A_THIRD_OF_STATEFUL_SETS };
    play(scenarios, Share::ALL, None, Shows::Certificate)
}

#[test]
fn stateful_sets_that_may_have_several_pods_unavailable_behave_as_recorded() -> Result<()> {
    let scenarios = if is_all() { "sg-*" } else { "sg-max-unavailable-2" };
    play(&[scenarios], Share::ALL, Some(MAX_UNAVAILABLE), Shows::Token)
}

const MAX_UNAVAILABLE: &str = "MaxUnavailableStatefulSet=true";

const A_THIRD_OF_STATEFUL_SETS: [&str; 9] = [
    "s-adopt-pod",
    "s-bad-update",
    "s-delete-orphan-adopt",
    "s-history-limit",
    "s-parallel",
    "s-partition",
    "s-pvc-delete-on-scale",
    "s-rolling-update",
    "s-scale-down-order",
];

const A_THIRD: [&str; 23] = [
    "d-create-3",
    "d-delete-foreground",
    "d-delete-orphan",
    "d-hash-collision",
    "d-history-limit-2",
    "d-min-ready-seconds",
    "d-orphan-adopt",
    "d-pause-resume",
    "d-pod-deleted",
    "d-progress-deadline",
    "d-proportional-down",
    "d-quota-zero-deadline",
    "d-recreate",
    "d-rollback-annotation",
    "d-rolling-default-10",
    "d-rolling-surge1-unav0",
    "d-rollover",
    "d-scale-down-colocated",
    "d-undo",
    "rs-adopt-orphan",
    "rs-min-ready",
    "rs-release-pod",
    "rs-scale-down-cost",
];

/// What a device is not held to, although the real controllers were the same in every run.
///
/// It sends two requests at a time, and it is slower than the fake kubelet of the scenarios. So more
/// may have changed between two of its writes, and a status in between is left out: the `strict`
/// facets, which hold every single write, depend on that. A ReplicaSet that was scaled by hand is
/// scaled back before its controller gets to act, which is all that those two scenarios show. All
/// else is the same: the end, the events, which pods, every size asked of every ReplicaSet.
///
/// And where no pod can be created, it is still at the first tries when it tells of them.
const LET_GO: [(&str, &str); 14] = [
    ("*", "strict-Deployment"),
    ("*", "strict-ReplicaSet"),
    ("*", "strict-StatefulSet"),
    ("d-quota-zero-deadline", "conditions-order"),
    ("d-rs-scaled-by-hand", "conditions-order"),
    ("d-rs-scaled-by-hand", "event-kinds"),
    ("d-rs-scaled-by-hand", "events"),
    ("d-rs-scaled-by-hand", "final"),
    ("d-rs-scaled-by-hand", "pod-order"),
    ("d-rs-scaled-by-hand", "pods-left"),
    ("d-old-rs-scaled-by-hand", "conditions-order"),
    ("d-old-rs-scaled-by-hand", "events"),
    ("d-old-rs-scaled-by-hand", "pod-order"),
    ("d-old-rs-scaled-by-hand", "pods-left"),
];

fn play(scenarios: &[&str], share: Share, feature_gates: Option<&str>, shows: Shows) -> Result<()> {
    // The device remembers sixteen sorts of events to count them. A scenario of Deployments has up to seven;
    // one of StatefulSets has two for each pod, and with the gate several pods change at a time.
    let jobs = if feature_gates == Some(MAX_UNAVAILABLE) { 1 } else { 2 };
    let suite =
        Suite { place: "a device", scenarios, share, let_go: &LET_GO, has_controllers: true, jobs };
    suite.play(|| {
        let cluster = Picokube::secure(&["up", "--manual", "--no-controllers"])?;
        let document = Document {
            identity: "golden",
            qps: Some(0),
            // Every status is written, as it was recorded.
            status_lag: Some(0),
            feature_gates,
            ..Document::default()
        };
        let setup = Setup::of_with(firmware::image()?, &cluster, shows, document)?;
        let device = setup.boot()?;
        device.wait_for_line("the controllers have started")?;
        Ok((Server::new(cluster.base()), (cluster, device)))
    })
}

fn is_all() -> bool {
    env::var_os("PICOKUBE_GOLDEN_ALL").is_some()
}
