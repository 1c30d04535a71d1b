//! The device boots at 1970 and has no clock: what it knows of the time comes from the server.
//!
//! In both cases the power was off while the times that count were set, so that neither the time
//! since the boot nor what was known before can help.

use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use picokube_tests::firmware::Device;
use picokube_tests::golden::node::rfc3339;
use picokube_tests::lab::{Lab, condition, name, number, text};
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3600);
const TEN_MINUTES: Duration = Duration::from_secs(600);
/// So long before their time are things when the device boots again.
const SOON: Duration = Duration::from_secs(12);

#[test]
fn pods_are_available_in_time_after_a_boot() -> Result<()> {
    let cluster = Picokube::up(&["--manual", "--no-controllers"])?;
    let lab = Lab::new(&cluster, "clock-available")?;
    let device = Device::boot(cluster.address())?;
    lab.create("deployments", &deployment("web", HOUR, 2 * HOUR))?;
    lab.wait("pods are there", || Ok(lab.list("pods")?.len() == 2))?;
    device.switch_off();
    let pods = lab.list("pods")?;
    let ready_since = SystemTime::now() - HOUR + SOON;
    make_ready(&lab, name(&pods[0]), ready_since - HOUR)?;
    make_ready(&lab, name(&pods[1]), ready_since)?;
    device.cut_power()?;

    // Counted from its boot, both would take an hour; at 1970, none would ever be ready.
    lab.wait_for("deployments/web", "the older pod is available", |web| {
        number(&web["status"]["availableReplicas"]) >= 1
    })?;
    let web = lab.wait_for("deployments/web", "both are", |web| {
        number(&web["status"]["availableReplicas"]) == 2
    })?;
    // It wants both, so this is when the second one became available.
    let available = condition(&web, "Available");
    ensure!(available["status"] == "True", "{available}");
    is_between(&available["lastTransitionTime"], ready_since + HOUR)
}

#[test]
fn a_deadline_is_missed_in_time_after_a_boot() -> Result<()> {
    let cluster = Picokube::up(&["--manual", "--no-controllers"])?;
    let lab = Lab::new(&cluster, "clock-deadline")?;
    let device = Device::boot(cluster.address())?;
    let began = SystemTime::now() - TEN_MINUTES + SOON;
    let deployments = [("late", began), ("in-time", began + TEN_MINUTES / 2)];
    for (name, _) in deployments {
        lab.create("deployments", &deployment(name, Duration::ZERO, TEN_MINUTES))?;
        lab.wait_for(&format!("deployments/{name}"), "it waits for its pods", |deployment| {
            number(&deployment["status"]["updatedReplicas"]) == 2
                && condition(deployment, "Progressing")["reason"] == "ReplicaSetUpdated"
        })?;
    }
    device.switch_off();
    for (name, since) in deployments {
        let object = format!("deployments/{name}");
        let mut conditions = lab.get(&object)?["status"]["conditions"].clone();
        for condition in conditions.as_array_mut().into_iter().flatten() {
            condition["lastUpdateTime"] = rfc3339(since).into();
        }
        lab.patch(&format!("{object}/status"), &json!({"status": {"conditions": conditions}}))?;
    }
    device.cut_power()?;

    let late = lab.wait_for("deployments/late", "its deadline is missed", |deployment| {
        condition(deployment, "Progressing")["reason"] == "ProgressDeadlineExceeded"
    })?;
    let progressing = condition(&late, "Progressing");
    ensure!(progressing["status"] == "False", "{progressing}");
    is_between(&progressing["lastUpdateTime"], began + TEN_MINUTES)?;
    let in_time = lab.get("deployments/in-time")?;
    let progressing = condition(&in_time, "Progressing");
    ensure!(progressing["status"] == "True", "five minutes early: {progressing}");
    Ok(())
}

/// Whether a time that the device wrote is not before `earliest`, and not in the future. The
/// server tells its time in whole seconds, so that one more may be missing on either side.
fn is_between(time: &Value, earliest: SystemTime) -> Result<()> {
    const SECOND: Duration = Duration::from_secs(1);
    let (earliest, latest) = (rfc3339(earliest - SECOND), rfc3339(SystemTime::now() + SECOND));
    let time = text(time);
    ensure!(*earliest <= *time && *time <= *latest, "{time} is not from {earliest} to {latest}");
    Ok(())
}

fn make_ready(lab: &Lab<'_>, pod: &str, since: SystemTime) -> Result<()> {
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(since)});
    let status = json!({"phase": "Running", "conditions": [ready]});
    lab.patch(&format!("pods/{pod}/status"), &json!({"status": status}))?;
    Ok(())
}

fn deployment(name: &str, min_ready: Duration, deadline: Duration) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "minReadySeconds": min_ready.as_secs(),
            "progressDeadlineSeconds": deadline.as_secs(),
            "strategy": {"rollingUpdate": {"maxUnavailable": 0}},
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}
