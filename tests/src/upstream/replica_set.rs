//! Integration tests of ReplicaSets: number, scale, deletion and status.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, is_observed, name, number};
use crate::picokube::Picokube;

use super::objects::{controller_of, replica_set};

pub(super) const RS: &str = "replicasets/rs";

/// Creates a ReplicaSet `rs` and waits for its pods.
pub(super) fn stable(lab: &Lab<'_>, wanted: &Value) -> Result<Value> {
    lab.create("replicasets", wanted)?;
    wait_until_stable(lab)
}

pub(super) fn wait_until_stable(lab: &Lab<'_>) -> Result<Value> {
    lab.wait_for(RS, "it has its pods", |set| {
        is_observed(set) && number(&set["status"]["replicas"]) == number(&set["spec"]["replicas"])
    })
}

/// The selector of a ReplicaSet stays.
pub fn test_rs_selector_immutability(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-selector-immutability")?;
    lab.create("replicasets", &replica_set("rs", 0))?;
    let labels = json!({"name": null, "name_apps_v1": "test_apps_v1"});
    let patch = json!({"spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}},
    }});
    let answer = lab.send("PATCH", RS, &patch)?;
    assert_eq!(answer.status, 422);
    let said = answer.text();
    ensure!(said.contains("Invalid value") && said.contains("field is immutable"), "{said}");
    Ok(())
}

/// `spec.replicas` goes up and down.
pub fn test_spec_replicas_change(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-spec-replicas-change")?;
    stable(&lab, &replica_set("rs", 1))?;
    for replicas in [2, 0, 1] {
        lab.patch(RS, &json!({"spec": {"replicas": replicas}}))?;
        wait_until_stable(&lab)?;
        assert_eq!(lab.staying_pods()?.len() as i64, replicas);
    }
    // Any other change of the spec is observed as well.
    let before = number(&lab.get(RS)?["metadata"]["generation"]);
    let annotation = json!({"metadata": {"annotations": {"test": "annotation"}}});
    let after = lab.patch(RS, &json!({"spec": {"template": annotation}}))?;
    ensure!(number(&after["metadata"]["generation"]) > before, "the generation did not move");
    lab.wait_for(RS, "it was observed", is_observed)?;
    Ok(())
}

/// Two ReplicaSets with the same selector do not touch each other's pods.
pub fn test_overlapping_rss(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-overlapping")?;
    let names: Vec<String> = (1..=5).map(|number| format!("rs-{number}")).collect();
    for (name, replicas) in names.iter().zip(1..) {
        lab.create("replicasets", &replica_set(name, replicas))?;
    }
    for (name, replicas) in names.iter().zip(1..) {
        let set = lab.wait_for(&format!("replicasets/{name}"), "it has its pods", |set| {
            number(&set["status"]["replicas"]) == replicas
        })?;
        assert_eq!(lab.pods_of(&set)?.len() as i64, replicas);
    }
    assert_eq!(lab.staying_pods()?.len(), 15);
    Ok(())
}

/// Replicas, ready and available are counted apart.
pub fn test_ready_and_available_replicas(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-ready-and-available")?;
    let mut wanted = replica_set("rs", 3);
    wanted["spec"]["minReadySeconds"] = json!(3600);
    stable(&lab, &wanted)?;
    let counts = |set: &Value| {
        ["replicas", "readyReplicas", "availableReplicas"].map(|f| number(&set["status"][f]))
    };
    let pods = lab.staying_pods()?;
    let [_, second, third] = &pods[..] else { anyhow::bail!("{} pods", pods.len()) };
    lab.report_pod_ready(second)?;
    lab.report_pod_ready_since(third, "2020-01-01T00:00:00Z")?;
    lab.wait_for(RS, "3, 2 and 1 are counted", |set| counts(set) == [3, 2, 1])?;
    Ok(())
}

/// The scale subresource changes the spec.
pub fn test_rs_scale_subresource(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-scale-subresource")?;
    stable(&lab, &replica_set("rs", 1))?;
    for replicas in [3, 0] {
        let scale = lab.get("replicasets/rs/scale")?;
        assert_eq!(scale["spec"]["replicas"], lab.get(RS)?["spec"]["replicas"]);
        lab.update("replicasets/rs/scale", |scale| scale["spec"]["replicas"] = json!(replicas))?;
        assert_eq!(lab.get(RS)?["spec"]["replicas"], replicas);
        wait_until_stable(&lab)?;
    }
    Ok(())
}

/// Pods that have every label of the template are counted apart.
pub fn test_fully_labeled_replicas(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-fully-labeled")?;
    stable(&lab, &replica_set("rs", 2))?;
    let labels = json!({"metadata": {"labels": {"extra": "label"}}});
    lab.patch(RS, &json!({"spec": {"template": labels}}))?;
    let counted = |wanted: i64| {
        move |set: &Value| {
            let status = &set["status"];
            is_observed(set)
                && number(&status["replicas"]) == 2
                && number(&status["fullyLabeledReplicas"]) == wanted
        }
    };
    lab.wait_for(RS, "neither pod has the new label", counted(0))?;
    let pods = lab.staying_pods()?;
    let pod = pods.first().context("no pod")?;
    lab.patch(&format!("pods/{}", name(pod)), &labels)?;
    lab.wait_for(RS, "one pod has the new label", counted(1))?;
    Ok(())
}

/// Without options, a ReplicaSet is deleted in the background.
pub fn test_replica_sets_apps_v1_default_gc_policy(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-default-gc-policy")?;
    let mut wanted = replica_set("rs", 2);
    wanted["metadata"]["finalizers"] = json!(["fake.example.com/finalizer"]);
    stable(&lab, &wanted)?;
    lab.ask("DELETE", RS, &json!({}))?;
    let going = lab.get(RS)?;
    ensure!(!going["metadata"]["deletionTimestamp"].is_null(), "it is not being deleted");
    assert_eq!(going["metadata"]["finalizers"], json!(["fake.example.com/finalizer"]));
    // In the background the pods follow only when their owner is gone.
    let pods = lab.staying_pods()?;
    assert_eq!(pods.len(), 2);
    ensure!(pods.iter().all(|pod| controller_of(pod).is_some()), "a pod was let go");
    lab.patch(RS, &json!({"metadata": {"finalizers": null}}))?;
    lab.wait("nothing is left", || Ok(!lab.has(RS)? && lab.list("pods")?.is_empty()))
}
