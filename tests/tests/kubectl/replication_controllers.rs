//! What kubectl does with ReplicationControllers, from creation to deletion.

use anyhow::{Result, ensure};
use picokube_tests::kubectl::has_row;
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

use super::{PODS, pod, set_status};

const CONTROLLERS: &str = "/api/v1/namespaces/default/replicationcontrollers";
const SMALL: &str = "rc/small";

/// A controller of the pods of [`pod`], without a selector of its own.
fn manifest() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "small"},
        "spec": {
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"app": "small"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}

#[test]
fn they_are_created_shown_scaled_and_changed() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let said = kubectl.ok_with(&["create", "--filename=-"], &manifest().to_string())?;
    assert_eq!(said.trim(), "replicationcontroller/small created");
    assert_eq!(kubectl.field(SMALL, ".spec.selector.app")?, "small");
    let status = json!({"replicas": 2, "readyReplicas": 1, "observedGeneration": 1});
    set_status(&server, &format!("{CONTROLLERS}/small"), status)?;
    let table = kubectl.ok(&["get", "rc"])?;
    ensure!(has_row(&table, &["NAME", "DESIRED", "CURRENT", "READY", "AGE"]), "{table}");
    ensure!(has_row(&table, &["small", "2", "2", "1"]), "{table}");
    let wide = kubectl.ok(&["get", "rc", "--output=wide"])?;
    ensure!(has_row(&wide, &["CONTAINERS", "IMAGES", "SELECTOR"]), "{wide}");
    ensure!(has_row(&wide, &["small", "app", "app:1", "app=small"]), "{wide}");
    let all = kubectl.ok(&["get", "all", "--output=name"])?;
    ensure!(all.lines().any(|line| line == "replicationcontroller/small"), "{all}");
    let text = kubectl.ok(&["describe", SMALL])?;
    ensure!(text.contains("Replicas:     2 current / 2 desired"), "{text}");
    let said = kubectl.ok(&["scale", SMALL, "--current-replicas=2", "--replicas=5"])?;
    assert_eq!(said.trim(), "replicationcontroller/small scaled");
    assert_eq!(kubectl.field(SMALL, ".spec.replicas")?, "5");
    kubectl.ok(&["set", "image", SMALL, "app=app:2"])?;
    assert_eq!(kubectl.field(SMALL, ".spec.template.spec.containers[0].image")?, "app:2");
    assert_eq!(kubectl.field(SMALL, ".metadata.generation")?, "3");
    let complaint = kubectl.refused(&["scale", SMALL, "--replicas=-1"], "")?;
    ensure!(complaint.contains("replicas"), "{complaint}");
    Ok(())
}

#[test]
fn their_pods_go_or_stay_as_kubectl_says() -> Result<()> {
    for (cascade, left) in [("background", 0), ("foreground", 0), ("orphan", 1)] {
        let server = Picokube::server()?;
        let kubectl = server.kubectl()?;
        let owner = server.create(CONTROLLERS, &manifest())?;
        server.create(PODS, &pod("small-a", Some(&owner)))?;
        kubectl.ok(&["delete", SMALL, &format!("--cascade={cascade}")])?;
        ensure!(!kubectl.has(SMALL)?, "{cascade}: the controller is still there");
        server.wait_until("its pod has gone or stays alone", || {
            let pods: Value = server.get(PODS)?.json()?;
            let pods = pods["items"].as_array().cloned().unwrap_or_default();
            let free = pods.iter().all(|pod| pod["metadata"].get("ownerReferences").is_none());
            Ok(free && pods.len() == left)
        })?;
    }
    Ok(())
}
