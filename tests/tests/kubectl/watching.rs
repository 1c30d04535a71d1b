//! Commands that wait for things to happen.

use anyhow::{Result, ensure};
use picokube_tests::following::Following;
use picokube_tests::picokube::Picokube;
use serde_json::json;

use super::{DEPLOYMENTS, PODS, pod, set_status};

#[test]
fn get_follows_changes() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    server.create(PODS, &pod("first", None))?;
    let table = kubectl.follow(&["get", "pods", "--watch"])?;
    let events = kubectl.follow(&["get", "pods", "--watch", "--output-watch-events"])?;
    let names = kubectl.follow(&["get", "pods", "--watch", "--output=name"])?;
    let one = kubectl.follow(&[
        "get",
        "pod/first",
        "--watch",
        "--output=jsonpath={.status.phase}{\"\\n\"}",
    ])?;
    let only = kubectl.follow(&["get", "pods", "--watch-only", "--output=name"])?;
    table.line_with(&["first", "0/1", "Pending"])?;
    events.line_with(&["ADDED", "first"])?;
    names.line_with(&["pod/first"])?;
    one.line_with(&["Pending"])?;

    let first = format!("{PODS}/first");
    set_status(
        &server,
        &first,
        json!({
            "phase": "Running",
            "containerStatuses": [{"name": "app", "ready": true, "restartCount": 3, "image": "app:1",
                "imageID": "", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
        }),
    )?;
    table.line_with(&["first", "1/1", "Running", "3"])?;
    events.line_with(&["MODIFIED", "first", "Running"])?;
    // The other two may have begun to watch only now, and then take what they find for old. So
    // there is more to see until they show something.
    let times = std::cell::Cell::new(0);
    let restart = |following: &Following| {
        times.set(times.get() + 1);
        let restarts = json!([{"name": "app", "ready": true, "restartCount": times.get(),
            "image": "app:1", "imageID": ""}]);
        set_status(&server, &first, json!({"containerStatuses": restarts}))?;
        Ok(following.line_soon())
    };
    server.wait_until("the watch of one object shows a change", || restart(&one))?;
    server.wait_until("the watch without a list shows a change", || restart(&only))?;
    kubectl.ok(&["delete", "pod/first"])?;
    events.line_with(&["DELETED", "first"])?;
    Ok(())
}

#[test]
fn wait_ends_when_the_condition_holds() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let path = format!("{DEPLOYMENTS}/small");
    let complaint = kubectl
        .refused(&["wait", "--for=condition=Available", "deployment/small", "--timeout=1s"], "")?;
    ensure!(complaint.contains("timed out waiting for the condition"), "{complaint}");

    let waiting = kubectl.follow(&[
        "wait",
        "--for=condition=Available",
        "deployment/small",
        "--timeout=10m",
    ])?;
    set_status(
        &server,
        &path,
        json!({"conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
        ]}),
    )?;
    waiting.line_with(&["deployment.apps/small condition met"])?;
    if kubectl.minor() >= 23 {
        let replicas = "--for=jsonpath={.status.replicas}=2";
        let waiting = kubectl.follow(&["wait", replicas, "deployment/small", "--timeout=10m"])?;
        set_status(&server, &path, json!({"replicas": 2}))?;
        waiting.line_with(&["condition met"])?;
        // Whether it comes in time or too late, it ends well. Before, too late was an error.
        let delete = ["wait", "--for=delete", "deployment/small", "--timeout=10m"];
        let waiting = kubectl.follow(&delete)?;
        kubectl.ok(&["delete", "deployment/small"])?;
        ensure!(waiting.ends_well()?, "kubectl wait --for=delete failed");
    }
    Ok(())
}

#[test]
fn rollout_status_follows_a_deployment() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok(&["create", "--filename=small.yaml"])?;
    let path = format!("{DEPLOYMENTS}/small");
    set_status(
        &server,
        &path,
        json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1}),
    )?;
    let following = kubectl.follow(&["rollout", "status", "deployment/small", "--timeout=10m"])?;
    following.line_with(&["1 out of 2 new replicas have been updated"])?;
    set_status(
        &server,
        &path,
        json!({"updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1}),
    )?;
    following.line_with(&["1 of 2 updated replicas are available"])?;
    set_status(&server, &path, json!({"readyReplicas": 2, "availableReplicas": 2}))?;
    following.line_with(&["successfully rolled out"])?;
    Ok(())
}
