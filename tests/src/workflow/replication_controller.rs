//! What people do with a ReplicationController.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::kubectl::Kubectl;
use crate::lab::{Lab, name, number, text};
use crate::picokube::Picokube;

const CONTROLLER: &str = "replicationcontrollers/old";

/// It is created, scaled, loses a pod, releases one and takes it back, and leaves its pods to a
/// successor.
pub fn a_replication_controller_keeps_its_pods(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "replication-controller")?;
    let kubectl = Kubectl::in_namespace(cluster, "replication-controller")?;
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "old"},
        "spec": {"replicas": 3, "template": {
            "metadata": {"labels": {"app": "old"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        }},
    })
    .to_string();
    let has = |count: i64| {
        let what = format!("it tells of {count} pods that are available");
        lab.wait_for(CONTROLLER, &what, |rc| {
            let (meta, status) = (&rc["metadata"], &rc["status"]);
            let counts = ["replicas", "readyReplicas", "availableReplicas"];
            status["observedGeneration"] == meta["generation"]
                && counts.iter().all(|key| number(&status[*key]) == count)
        })
    };
    kubectl.ok_with(&["create", "--filename=-"], &manifest)?;
    let created = has(3)?;
    for pod in lab.list("pods")? {
        let owner = &pod["metadata"]["ownerReferences"][0];
        let expected = json!({
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "name": "old",
            "uid": created["metadata"]["uid"],
            "controller": true,
            "blockOwnerDeletion": true,
        });
        ensure!(*owner == expected, "{owner:#}");
        ensure!(name(&pod).starts_with("old-"), "{}", name(&pod));
    }
    lab.wait("events tell of it", || {
        let events = lab.list("events")?;
        let created = events.iter().filter(|event| {
            event["reason"] == "SuccessfulCreate"
                && event["source"]["component"] == "replication-controller"
                && event["involvedObject"]["kind"] == "ReplicationController"
                && event["involvedObject"]["apiVersion"] == "v1"
        });
        Ok(created.map(|event| number(&event["count"])).sum::<i64>() == 3)
    })?;

    kubectl.ok(&["scale", "rc/old", "--replicas=1"])?;
    has(1)?;
    kubectl.ok(&["scale", "rc/old", "--replicas=4"])?;
    has(4)?;

    let lost = name(&lab.list("pods")?[0]).to_owned();
    kubectl.ok(&["delete", "pod", &lost])?;
    lab.wait("another one has come", || {
        let pods = lab.list("pods")?;
        Ok(pods.len() == 4 && pods.iter().all(|pod| name(pod) != lost))
    })?;
    has(4)?;

    let pod = name(&lab.list("pods")?[0]).to_owned();
    kubectl.ok(&["label", "pod", &pod, "--overwrite", "app=debug"])?;
    let is_free = |pod: &Value| pod["metadata"].get("ownerReferences").is_none();
    lab.wait_for(&format!("pods/{pod}"), "it is released", is_free)?;
    lab.wait("it is replaced", || Ok(lab.list("pods")?.len() == 5))?;
    kubectl.ok(&["label", "pod", &pod, "--overwrite", "app=old"])?;
    lab.wait("one is too many", || Ok(lab.list("pods")?.len() == 4))?;
    has(4)?;

    kubectl.ok(&["delete", "rc/old", "--cascade=orphan"])?;
    lab.wait("its pods are alone", || Ok(lab.list("pods")?.iter().all(is_free)))?;
    let left: Vec<String> = lab.list("pods")?.iter().map(|pod| name(pod).to_owned()).collect();
    kubectl.ok_with(&["create", "--filename=-"], &manifest)?;
    let successor = has(3)?;
    let uid = text(&successor["metadata"]["uid"]);
    for pod in lab.list("pods")? {
        ensure!(left.iter().any(|name_of| name_of == name(&pod)), "{} is new", name(&pod));
        let owner = pod["metadata"]["ownerReferences"].get(0).context("not adopted")?;
        ensure!(text(&owner["uid"]) == uid, "{owner:#}");
    }
    kubectl.ok(&["delete", "rc/old"])?;
    lab.wait("all are gone", || Ok(lab.list("pods")?.is_empty()))
}
