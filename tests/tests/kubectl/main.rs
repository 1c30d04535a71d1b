//! The real kubectl against the real server, each test with a server of its own.
//!
//! Every kubectl from 1.20 (Debian 12) on has to pass. What only newer ones know is guarded by
//! their version.

mod applying;
mod changing;
mod creating;
mod deleting;
mod identities;
mod manifests;
mod nodes;
mod reading;
mod replication_controllers;
mod stateful_sets;
mod watching;

use anyhow::Result;
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A pod; `owner` is what controls it.
fn pod(name: &str, owner: Option<&Value>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": "small"},
            "ownerReferences": owner.map(controller).into_iter().collect::<Vec<_>>(),
        },
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    })
}

/// A ReplicaSet of the pods above.
fn replica_set(name: &str, owner: Option<&Value>) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": {"app": "small"},
            "ownerReferences": owner.map(controller).into_iter().collect::<Vec<_>>(),
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "small"}},
            "template": {
                "metadata": {"labels": {"app": "small"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}

fn controller(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Writes what a controller or a kubelet would write.
fn set_status(server: &Picokube, object: &str, status: Value) -> Result<()> {
    let body = json!({"status": status});
    let answer = server.send_json("PATCH", &format!("{object}/status"), &body)?;
    anyhow::ensure!(answer.status == 200, "cannot write the status: {}", answer.text());
    Ok(())
}
