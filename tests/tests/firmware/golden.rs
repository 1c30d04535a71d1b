//! The golden scenarios, with a microcontroller as the only controller.

use std::env;

use anyhow::Result;
use picokube_config::Document;
use picokube_qemu::HOST_SEEN_BY_GUEST;
use picokube_tests::firmware::{self, Device};
use picokube_tests::golden::suite::Suite;
use picokube_tests::golden::{RACES, Server};
use picokube_tests::picokube::Picokube;

fn play(scenarios: &[&str], feature_gates: Option<&str>) -> Result<()> {
    let suite = Suite { scenarios, let_go: &RACES, jobs: 8 };
    suite.play(|| {
        let cluster = Picokube::up(&["--manual", "--no-controllers"])?;
        let server = format!("{HOST_SEEN_BY_GUEST}:{}", cluster.address().port());
        let document = Document {
            server: &server,
            identity: "golden",
            qps: Some(0),
            status_lag: Some(0),
            feature_gates,
            ..Document::default()
        };
        let device = Device::boot_with(firmware::image()?, &document)?;
        device.wait_for_line("the controllers have started")?;
        let slowness = env::var("SLOW").map_or(1, |s| s.parse().unwrap());
        let server = Server { slowness, ..Server::new(cluster.base()) };
        Ok((server, (cluster, device)))
    })
}

#[test]
fn deployments_and_replica_sets() -> Result<()> {
    play(&["d-*", "rs-*"], None)
}

#[test]
fn deployments_that_count_terminating_replicas() -> Result<()> {
    play(&["dt-*"], Some("DeploymentReplicaSetTerminatingReplicas=true"))
}
