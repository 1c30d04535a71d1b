//! The server goes, comes back, or comes back with nothing; the network changes under the device.

use anyhow::{Context, Result, ensure};
use picokube_tests::firmware::{self, Device, Setup, Shows};
use picokube_tests::kubectl::Kubectl;
use picokube_tests::picokube::Picokube;

const HOUR: u64 = 3600;
const WITH_NODES: [&str; 4] = ["up", "--no-controllers", "--nodes", "2"];

/// In the device's own time, which leaps ahead while nobody could answer anyway.
#[test]
fn the_server_is_gone_for_an_hour() -> Result<()> {
    let mut cluster = Picokube::secure_on_disk(&WITH_NODES)?;
    let device = Setup::of(firmware::image()?, &cluster, Shows::Token)?.with_leaps().boot()?;
    roll_out(&cluster, "app:1")?;
    // A rollout has just begun.
    cluster.kubectl()?.ok(&["set", "image", "deployment/web", "app=app:2"])?;
    cluster.kill()?;
    let gone = device.uptime()?;
    cluster.wait_until("an hour has passed", || {
        device.leap()?;
        Ok(device.uptime()? >= gone + HOUR)
    })?;
    ensure!(device.get("/healthz")?.status == 200, "it is well all the same");
    cluster.restart()?;
    let log = || format!("the device's log:\n{}", device.log());
    rolled_out(&cluster.kubectl()?).with_context(log)?;
    roll_out(&cluster, "app:3").with_context(log)?;
    ensure!(device.uptime()? > gone + HOUR, "it was not reset meanwhile");
    Ok(())
}

#[test]
fn the_server_is_killed_and_started_again() -> Result<()> {
    let mut cluster = Picokube::secure_on_disk(&WITH_NODES)?;
    let _device = Device::boot_secure(&cluster, Shows::Certificate)?;
    for round in 1..=3 {
        let kubectl = cluster.kubectl()?;
        let image = format!("app=app:{round}");
        match round {
            1 => kubectl.ok(&["create", "deployment", "web", "--image=app:1", "--replicas=3"])?,
            _ => kubectl.ok(&["set", "image", "deployment/web", &image])?,
        };
        cluster.restart()?;
        rolled_out(&cluster.kubectl()?)?;
    }
    let pods = cluster.get("/api/v1/namespaces/default/pods")?.json()?;
    let images: Vec<&str> = pods["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
        .filter_map(|pod| pod["spec"]["containers"][0]["image"].as_str())
        .collect();
    ensure!(images == ["app:3"; 3], "{images:?}");
    Ok(())
}

/// Its resource versions begin anew, and everything is gone. Over plain HTTP.
#[test]
fn the_server_comes_back_empty() -> Result<()> {
    let mut cluster = Picokube::start(&WITH_NODES)?;
    let device = Device::boot(cluster.address())?;
    roll_out(&cluster, "app:1")?;
    cluster.restart()?;
    cluster.wait_until("what is gone is forgotten", || {
        Ok(device.metric("picokube_cached_objects{kind=\"Pod\"}")? == 0)
    })?;
    roll_out(&cluster, "app:1")?;
    Ok(())
}

#[test]
fn the_device_gets_another_address() -> Result<()> {
    let cluster = Picokube::secure(&WITH_NODES)?;
    let setup = Setup::of(firmware::image()?, &cluster, Shows::Token)?;
    let device = setup.with_second_network().boot()?;
    device.wait_for_line("address 10.0.2.15/24")?;
    roll_out(&cluster, "app:1")?;
    device.move_to_second_network()?;
    device.wait_for_line("address 10.0.2.40/24")?;
    roll_out(&cluster, "app:2")?;
    Ok(())
}

/// Creates the Deployment or gives it another image, and waits.
fn roll_out(cluster: &Picokube, image: &str) -> Result<()> {
    let kubectl = cluster.kubectl()?;
    if kubectl.has("deployments")? {
        kubectl.ok(&["set", "image", "deployment/web", &format!("app={image}")])?;
    } else {
        let image = format!("--image={image}");
        kubectl.ok(&["create", "deployment", "web", &image, "--replicas=3"])?;
    }
    rolled_out(&kubectl)
}

fn rolled_out(kubectl: &Kubectl<'_>) -> Result<()> {
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=10m"])?;
    Ok(())
}
