//! Integration tests of ReplicaSets: which pods they adopt, let go, count and delete.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, name, number};
use crate::picokube::Picokube;

use super::objects::{controller_of, matching_pod, replica_set};
use super::replica_set::{RS, stable, wait_until_stable};

fn reference(owner: &Value, api_version: &str, kind: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "name": name(owner),
        "uid": owner["metadata"]["uid"],
    })
}

/// A pod is adopted if it fits and nobody controls it.
pub fn test_adoption(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-adoption")?;
    let set = stable(&lab, &replica_set("rs", 1))?;
    // A controller that is there, since our garbage collector runs and takes absent ones off.
    let other = lab.create("configmaps", &json!({"metadata": {"name": "another"}}))?;
    let owner = reference(&set, "apps/v1", "ReplicaSet");
    let mut controller = owner.clone();
    controller["controller"] = json!(true);
    let mut blocking = controller.clone();
    blocking["blockOwnerDeletion"] = json!(true);
    let mut another = reference(&other, "v1", "ConfigMap");
    another["controller"] = json!(true);
    for (case, existing, expected) in [
        ("refers-as-owner", json!([owner]), json!([blocking])),
        ("refers-to-nobody", json!([]), json!([blocking])),
        ("refers-as-controller", json!([controller]), json!([controller])),
        ("refers-to-another", json!([another, owner]), json!([another, owner])),
    ] {
        // Pods with a node are the last to be deleted, so that this one stays and the one that
        // the ReplicaSet has made goes.
        let mut pod = matching_pod(case);
        pod["metadata"]["ownerReferences"] = existing;
        pod["spec"]["nodeName"] = json!("fake-node");
        lab.create("pods", &pod)?;
        let object = format!("pods/{case}");
        lab.wait_for(&object, "its owners are as expected", |pod| {
            pod["metadata"]["ownerReferences"] == expected
        })?;
        wait_until_stable(&lab)?;
        if case == "refers-to-another" {
            // Something else happens to the ReplicaSet, and still it is left alone.
            lab.patch(RS, &json!({"metadata": {"annotations": {"look": "again"}}}))?;
            wait_until_stable(&lab)?;
            assert_eq!(lab.get(&object)?["metadata"]["ownerReferences"], expected);
            assert_eq!(lab.staying_pods()?.len(), 2);
        } else {
            lab.wait("it is the only pod", || Ok(lab.staying_pods()?.len() == 1))?;
            assert_eq!(name(&lab.staying_pods()?[0]), case);
        }
        lab.send("DELETE", &object, &json!({"gracePeriodSeconds": 0}))?;
        lab.wait("it was replaced", || Ok(!lab.has(&object)? && lab.staying_pods()?.len() == 1))?;
    }
    Ok(())
}

/// Pods that are being deleted or have failed do not count.
pub fn test_deleting_and_failed_pods(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-deleting-and-failed")?;
    stable(&lab, &replica_set("rs", 2))?;
    let pods = lab.staying_pods()?;
    let [deleting, failed] = &pods[..] else { bail!("{} pods", pods.len()) };
    let object = format!("pods/{}", name(deleting));
    let finalizers = json!({"metadata": {"finalizers": ["fake.example.com/finalizer"]}});
    lab.patch(&object, &finalizers)?;
    lab.ask("DELETE", &object, &json!({}))?;
    let status = json!({"status": {"phase": "Failed"}});
    lab.patch(&format!("pods/{}/status", name(failed)), &status)?;
    lab.wait("two others are there", || {
        let staying = lab.staying_pods()?;
        let alive = staying.iter().filter(|pod| pod["status"]["phase"] != "Failed");
        Ok(alive.count() == 2 && lab.list("pods")?.len() == 4)
    })?;
    wait_until_stable(&lab)?;
    ensure!(lab.has(&object)?, "the finalizer did not hold it");
    ensure!(lab.has(&format!("pods/{}", name(failed)))?, "the failed pod was deleted");
    Ok(())
}

/// The pod whose deletion costs least goes first.
pub fn test_pod_deletion_cost(cluster: &Picokube) -> Result<()> {
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let lab = Lab::manual(cluster, "rs-pod-deletion-cost")?;
    stable(&lab, &replica_set("rs", 3))?;
    let pods = lab.staying_pods()?;
    lab.report_ready(&pods)?;
    lab.wait_for(RS, "all are ready", |set| number(&set["status"]["readyReplicas"]) == 3)?;
    let [cheap, normal, dear] = &pods[..] else { bail!("{} pods", pods.len()) };
    for (pod, cost) in [(cheap, "-100"), (dear, "1000")] {
        let annotation = json!({"metadata": {"annotations": {COST: cost}}});
        lab.patch(&format!("pods/{}", name(pod)), &annotation)?;
    }
    for (replicas, gone) in [(2, cheap), (1, normal)] {
        lab.patch(RS, &json!({"spec": {"replicas": replicas}}))?;
        wait_until_stable(&lab)?;
        ensure!(!lab.has(&format!("pods/{}", name(gone)))?, "{} is still there", name(gone));
        assert_eq!(lab.staying_pods()?.len() as i64, replicas);
    }
    ensure!(lab.has(&format!("pods/{}", name(dear)))?, "the dearest pod went");
    Ok(())
}

/// A pod whose labels change is let go, and taken back when they change back.
pub fn test_pod_orphaning_and_adoption_when_labels_change(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-orphaning-and-adoption")?;
    let set = stable(&lab, &replica_set("rs", 1))?;
    let pods = lab.staying_pods()?;
    let pod = pods.first().context("no pod")?;
    let object = format!("pods/{}", name(pod));
    // The oldest, and ready: when there is one too many, it is not the one.
    lab.report_pod_ready(pod)?;
    lab.patch(&object, &json!({"metadata": {"labels": {"name": null, "new": "label"}}}))?;
    lab.wait_for(&object, "it has no controller", |pod| controller_of(pod).is_none())?;
    lab.wait("it was replaced", || Ok(lab.staying_pods()?.len() == 1))?;
    lab.patch(&object, &json!({"metadata": {"labels": {"name": "test", "new": null}}}))?;
    let adopted =
        lab.wait_for(&object, "it has a controller", |pod| controller_of(pod).is_some())?;
    assert_eq!(controller_of(&adopted).context("none")?["uid"], set["metadata"]["uid"]);
    lab.wait("one went", || Ok(lab.staying_pods()?.len() == 1))?;
    ensure!(lab.has(&object)?, "the wrong one went");
    Ok(())
}

/// A pod without a controller gets one, whoever else owns it.
pub fn test_general_pod_adoption(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-general-pod-adoption")?;
    let set = stable(&lab, &replica_set("rs", 1))?;
    let other = lab.create("configmaps", &json!({"metadata": {"name": "other"}}))?;
    let pods = lab.staying_pods()?;
    let object = format!("pods/{}", name(pods.first().context("no pod")?));
    // It is not the one that goes, should there be a second for a moment.
    lab.report_ready(&pods)?;
    for (owner, owners) in
        [(reference(&other, "v1", "ConfigMap"), 2), (reference(&set, "apps/v1", "ReplicaSet"), 1)]
    {
        let mut owner = owner;
        owner["controller"] = json!(false);
        lab.patch(&object, &json!({"metadata": {"ownerReferences": [owner]}}))?;
        let adopted =
            lab.wait_for(&object, "it has a controller", |pod| controller_of(pod).is_some())?;
        assert_eq!(controller_of(&adopted).context("none")?["uid"], set["metadata"]["uid"]);
        assert_eq!(adopted["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(owners));
        lab.wait("it is alone", || Ok(lab.staying_pods()?.len() == 1))?;
    }
    Ok(())
}

/// Of more pods than are wanted, all are adopted and those that are too many deleted.
pub fn test_extra_pods_adoption_and_deletion(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-extra-pods")?;
    for name in ["pod1", "pod2", "pod3"] {
        lab.create("pods", &matching_pod(name))?;
    }
    let set = stable(&lab, &replica_set("rs", 2))?;
    lab.wait("one pod went", || Ok(lab.list("pods")?.len() == 2))?;
    let pods = lab.pods_of(&set)?;
    assert_eq!(pods.len(), 2);
    ensure!(pods.iter().all(|pod| name(pod).len() == "pod1".len()), "a pod was made");
    Ok(())
}
