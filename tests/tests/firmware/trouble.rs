//! Whatever brings the device down, it comes back by itself and tells what it was.

use anyhow::Result;
use picokube_tests::firmware::Device;
use picokube_tests::picokube::Picokube;
use serde_json::Value;

fn comes_back_after(trouble: &str, told: &str) -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let device = Device::boot_into(trouble, cluster.address())?;
    device.wait_for_line("the controllers have started")?;
    let line = device.wait_for_line("the last boot ended by")?;
    assert!(line.contains(told), "{line}");
    device.wait_for_line("the controllers have started")?;

    let event = |event: &Value| {
        event["reason"] == "Rebooted"
            && event["involvedObject"]["name"] == "device-under-test"
            && event["message"].as_str().is_some_and(|message| message.contains(told))
    };
    cluster.wait_until("the event is there", || {
        let events = cluster.get("/api/v1/namespaces/default/events")?.json()?;
        Ok(events["items"].as_array().is_some_and(|items| items.iter().any(event)))
    })?;

    let kubectl = cluster.kubectl()?;
    kubectl.ok(&["create", "deployment", "web", "--image=app:1", "--replicas=2"])?;
    kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=2m"])?;
    Ok(())
}

#[test]
fn a_panic() -> Result<()> {
    comes_back_after("panic", "trouble was asked for")
}

#[test]
fn a_hard_fault() -> Result<()> {
    comes_back_after("fault", "hard fault at 0x")
}

#[test]
fn a_stack_overflow() -> Result<()> {
    comes_back_after("overflow", "stack overflow")
}

#[test]
fn a_hang() -> Result<()> {
    comes_back_after("hang", "watchdog: no progress, last at 0x")
}
