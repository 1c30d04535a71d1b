//! What kubectl does with StatefulSets, their revisions and claims: here where nothing acts on them, below
//! with the controllers of `picokube up`.

mod claims;
mod healing;
mod revisions;

use anyhow::{Result, ensure};
use picokube_tests::kubectl::has_row;
use picokube_tests::picokube::Picokube;
use picokube_tests::stateful_set::{DB, claim_spec, manifest, template};
use serde_json::{Value, json};

use super::set_status;

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

/// What the controller keeps of a template.
fn revision(set: &Value, number: i64, mut template: Value) -> Value {
    template["$patch"] = json!("replace");
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": format!("db-{number}"),
            "labels": {"app": "db"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db",
                "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}],
        },
        "data": {"spec": {"template": template}},
        "revision": number,
    })
}

/// A whole cluster.
fn cluster() -> Result<Picokube> {
    Picokube::up(&["--nodes", "2"])
}

#[test]
fn they_are_shown_scaled_and_kept_as_they_are() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok_with(&["create", "--filename=-"], &manifest("app:1").to_string())?;
    let status = json!({"replicas": 2, "readyReplicas": 1, "observedGeneration": 1});
    set_status(&server, &format!("{SETS}/db"), status)?;
    let table = kubectl.ok(&["get", "sts"])?;
    ensure!(has_row(&table, &["NAME", "READY", "AGE"]), "{table}");
    ensure!(has_row(&table, &["db", "1/2"]), "{table}");
    let wide = kubectl.ok(&["get", "sts", "--output=wide"])?;
    ensure!(has_row(&wide, &["NAME", "READY", "AGE", "CONTAINERS", "IMAGES"]), "{wide}");
    kubectl.ok(&["scale", DB, "--current-replicas=2", "--replicas=5"])?;
    kubectl.ok(&["set", "image", DB, "app=app:2"])?;
    assert_eq!(kubectl.field(DB, ".metadata.generation")?, "3");
    let patch = r#"{"spec":{"serviceName":"other"}}"#;
    let complaint = kubectl.refused(&["patch", DB, "--patch", patch], "")?;
    ensure!(complaint.contains("updates to statefulset spec for fields other than"), "{complaint}");
    Ok(())
}

#[test]
fn they_go_back_to_a_revision() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    kubectl.ok_with(&["create", "--filename=-"], &manifest("app:2").to_string())?;
    let set = server.get(&format!("{SETS}/db"))?.json()?;
    for (number, image) in [(1, "app:1"), (2, "app:2")] {
        server.create(REVISIONS, &revision(&set, number, template(image)))?;
    }
    let table = kubectl.ok(&["get", "controllerrevisions"])?;
    ensure!(has_row(&table, &["NAME", "CONTROLLER", "REVISION", "AGE"]), "{table}");
    ensure!(has_row(&table, &["db-1", "statefulset.apps/db", "1"]), "{table}");
    let history = kubectl.ok(&["rollout", "history", DB])?;
    ensure!(has_row(&history, &["1"]) && has_row(&history, &["2"]), "{history}");
    let said = kubectl.ok(&["rollout", "undo", DB])?;
    assert_eq!(said.trim(), "statefulset.apps/db rolled back");
    assert_eq!(kubectl.field(DB, ".spec.template.spec.containers[0].image")?, "app:1");
    Ok(())
}

#[test]
fn they_move_from_client_side_to_server_side_apply() -> Result<()> {
    let server = Picokube::server()?;
    let kubectl = server.kubectl()?;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-0"}, "spec": claim_spec()});
    let both = json!({"apiVersion": "v1", "kind": "List", "items": [manifest("app:1"), claim]});
    let both = both.to_string();
    kubectl.ok_with(&["apply", "--filename=-"], &both)?;
    for _ in 0..2 {
        let moved = kubectl.run(&["apply", "--server-side", "--filename=-"], &both)?;
        ensure!(moved.success && moved.stderr.is_empty(), "{}{}", moved.stdout, moved.stderr);
    }
    assert_eq!(kubectl.field(DB, ".metadata.generation")?, "1");
    let kept = server.get(&format!("{CLAIMS}/data-db-0"))?.json()?;
    assert_eq!(kept["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    Ok(())
}

#[test]
fn a_pod_waits_for_its_claim() -> Result<()> {
    let server = Picokube::with_nodes(1)?;
    let kubectl = server.kubectl()?;
    let mut pod = template("app:1");
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("db-0");
    pod["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]);
    kubectl.ok_with(&["create", "--filename=-"], &pod.to_string())?;
    server.wait_until("the scheduler has said what it waits for", || {
        let message = "{.status.conditions[?(@.type==\"PodScheduled\")].message}";
        let said = kubectl.ok(&["get", "pod/db-0", &format!("-ojsonpath={message}")])?;
        Ok(said == "0/1 nodes are available: persistentvolumeclaim \"data-db-0\" not found.")
    })?;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-0"}, "spec": claim_spec()});
    kubectl.ok_with(&["create", "--filename=-"], &claim.to_string())?;
    kubectl.ok(&["wait", "--for=condition=Ready", "pod/db-0", "--timeout=10m"])?;
    let table = kubectl.ok(&["get", "pvc"])?;
    ensure!(has_row(&table, &["data-db-0", "Bound"]), "{table}");
    ensure!(table.contains("1Gi") && table.contains("RWO"), "{table}");
    Ok(())
}
