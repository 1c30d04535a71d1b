//! Whatever brings the device down, it comes back by itself and tells what it was.

use anyhow::Result;
use picokube_tests::firmware::{self, Setup};
use picokube_tests::picokube::Picokube;
use serde_json::Value;

fn comes_back_after(trouble: &str, told: &str) -> Result<()> {
    let cluster = Picokube::with_nodes(1)?;
    let setup = Setup::serving(firmware::trouble_image()?, cluster.address())?.words(&[trouble]);
    // It takes the device minutes to be certain that nothing gets any further.
    let setup = if trouble == "stall" { setup.with_leaps() } else { setup };
    let device = setup.boot()?;
    device.wait_for_line("now for the trouble")?;
    let kubectl = cluster.kubectl()?;
    // There is something to be done meanwhile.
    kubectl.ok(&["create", "deployment", "early", "--image=app:1", "--replicas=2"])?;
    // RAM keeps what the server has told of the time.
    device.wait_for_line("or later, as a server told before the reset")?;
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

    kubectl.ok(&["create", "deployment", "late", "--image=app:1", "--replicas=2"])?;
    for deployment in ["deployment/early", "deployment/late"] {
        kubectl.ok(&["rollout", "status", deployment, "--timeout=10m"])?;
    }
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
    comes_back_after("hang", "watchdog: it hung at 0x")
}

/// Everything turns, watches bring news, and still nothing gets done.
#[test]
fn no_progress() -> Result<()> {
    comes_back_after("stall", "watchdog: the controllers made no progress")
}
