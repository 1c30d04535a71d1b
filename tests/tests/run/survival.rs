//! A server that goes away and comes back.

use anyhow::Result;
use picokube_tests::lab::Lab;
use picokube_tests::picokube::Picokube;

use super::{controllers, deployment, wait_until_available};

#[test]
fn the_server_may_go_and_come_back() -> Result<()> {
    let mut cluster = Picokube::on_disk(&["up", "--no-controllers", "--nodes", "1"])?;
    let controllers = controllers(&cluster, &[])?;
    let lab = Lab::new(&cluster, "before")?;
    lab.create("deployments", &deployment("web"))?;
    wait_until_available(&lab, "web")?;
    cluster.kill()?;
    controllers.line_with(&["connection refused", "trying again"])?;
    cluster.restart()?;
    controllers.line_with(&["reachable again"])?;
    let lab = Lab::new(&cluster, "after")?;
    lab.create("deployments", &deployment("web"))?;
    wait_until_available(&lab, "web")
}
