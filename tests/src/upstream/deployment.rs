//! Integration tests of Deployments: what they make, adopt and let go, and how they are paused.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, is_observed, name, number, text};
use crate::picokube::Picokube;

use super::objects::{IMAGE, controller_of, deployment};
use super::tester::Tester;

const HASH: &str = "pod-template-hash";

/// The first rollout, with annotations and hash labels.
pub fn test_new_deployment(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-new-deployment")?;
    let mut wanted = deployment("test-new-deployment", 20);
    wanted["spec"]["minReadySeconds"] = json!(1);
    wanted["metadata"]["annotations"] = json!({
        "test": "should-copy-to-replica-set",
        "kubectl.kubernetes.io/last-applied-configuration": "should-not-copy-to-replica-set",
    });
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;

    let set = tester.expect_new_replica_set()?;
    let annotations = &set["metadata"]["annotations"];
    assert_eq!(annotations["test"], "should-copy-to-replica-set");
    assert!(annotations["kubectl.kubernetes.io/last-applied-configuration"].is_null());
    let hash = text(&set["metadata"]["labels"][HASH]);
    ensure!(!hash.is_empty() && name(&set).ends_with(hash), "{set:#}");
    assert_eq!(set["spec"]["selector"]["matchLabels"][HASH], hash);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"][HASH], hash);
    let pods = lab.staying_pods()?;
    assert_eq!(pods.len(), 20);
    ensure!(pods.iter().all(|pod| pod["metadata"]["labels"][HASH] == hash), "pods without hash");
    Ok(())
}

/// The selector of a Deployment stays.
pub fn test_deployment_selector_immutability(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-deployment-selector-immutability")?;
    lab.create("deployments", &deployment("fixed", 20))?;
    let mut changed = lab.get("deployments/fixed")?;
    let labels = json!({"name_apps_v1": "test_apps_v1"});
    changed["metadata"]["resourceVersion"].take();
    changed["spec"]["selector"]["matchLabels"] = labels.clone();
    changed["spec"]["template"]["metadata"]["labels"] = labels;
    let answer = lab.send("PUT", "deployments/fixed", &changed)?;
    assert_eq!(answer.status, 422);
    let said = answer.text();
    ensure!(said.contains("Invalid value") && said.contains("field is immutable"), "{said}");
    Ok(())
}

/// A paused Deployment rolls nothing out, neither at first nor later.
pub fn test_paused_deployment(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-paused-deployment")?;
    let mut wanted = deployment("paused", 1);
    wanted["spec"]["paused"] = json!(true);
    wanted["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_until_observed()?;
    ensure!(tester.new_replica_set()?.is_none(), "it was rolled out");

    tester.patch(&json!({"spec": {"paused": false}}))?;
    tester.wait_until_observed()?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    tester.expect_new_replica_set()?;

    tester.patch(&json!({"spec": {"paused": true}}))?;
    tester.wait_until_observed()?;
    let grace = json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 0}}}});
    tester.patch(&grace)?;
    tester.wait_until_observed()?;
    ensure!(tester.new_replica_set()?.is_none(), "it was rolled out");
    let old = tester.old_replica_sets()?;
    assert_eq!(old.len(), 1);
    assert_eq!(old[0]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 1);
    Ok(())
}

/// A paused Deployment can be scaled.
pub fn test_scale_paused_deployment(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-scale-paused-deployment")?;
    let tester = Tester::new(&lab, &deployment("paused", 1))?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    tester.patch(&json!({"spec": {"paused": true}}))?;
    tester.wait_until_observed()?;
    tester.scale(10)?;
    tester.complete()?;
    assert_eq!(tester.replica_sets()?.len(), 1);
    Ok(())
}

/// Two Deployments with the same selector do not touch each other's ReplicaSets.
pub fn test_overlapping_deployments(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-overlapping-deployments")?;
    let mut testers = Vec::new();
    for name in ["first-deployment", "second-deployment"] {
        let tester = Tester::new(&lab, &deployment(name, 1))?;
        tester.wait_for_revision("1", IMAGE)?;
        tester.complete()?;
        testers.push((tester.expect_new_replica_set()?, tester));
    }
    let [(first_set, first), (second_set, second)] = &testers[..] else { bail!("not two") };
    assert_ne!(first_set["metadata"]["uid"], second_set["metadata"]["uid"]);
    first.scale(2)?;
    first.complete()?;
    for (tester, set, replicas) in [(first, first_set, 2), (second, second_set, 1)] {
        let now = lab.get(&format!("replicasets/{}", name(set)))?;
        assert_eq!(number(&now["spec"]["replicas"]), replicas);
        assert_eq!(number(&tester.get()?["spec"]["replicas"]), replicas);
    }
    Ok(())
}

/// A ReplicaSet without a controller gets one, whoever else owns it.
pub fn test_general_replica_set_adoption(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-general-replicaset-adoption")?;
    let tester = Tester::new(&lab, &deployment("deployment", 1))?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    let set = format!("replicasets/{}", name(&tester.expect_new_replica_set()?));
    let deployment = tester.get()?;
    // Another owner, which is there: our garbage collector runs, and takes absent ones off.
    let other = lab.create("configmaps", &json!({"metadata": {"name": "other"}}))?;
    let owned_by = |owner: &Value, api_version: &str, kind: &str| {
        json!({"metadata": {"ownerReferences": [{
            "apiVersion": api_version,
            "kind": kind,
            "name": name(owner),
            "uid": owner["metadata"]["uid"],
            "controller": false,
        }]}})
    };
    for (owner, owners) in [
        (owned_by(&other, "v1", "ConfigMap"), 2),
        (owned_by(&deployment, "apps/v1", "Deployment"), 1),
    ] {
        lab.patch(&set, &owner)?;
        let adopted =
            lab.wait_for(&set, "it has a controller", |set| controller_of(set).is_some())?;
        let controller = controller_of(&adopted).context("no controller")?;
        assert_eq!(controller["uid"], deployment["metadata"]["uid"]);
        assert_eq!(adopted["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(owners));
    }
    Ok(())
}

/// The scale subresource changes the spec.
pub fn test_deployment_scale_subresource(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-deployment-scale-subresource")?;
    let tester = Tester::new(&lab, &deployment("deployment", 2))?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    for replicas in [3, 0] {
        let scale = lab.get("deployments/deployment/scale")?;
        assert_eq!(scale["spec"]["replicas"], tester.get()?["spec"]["replicas"]);
        lab.update("deployments/deployment/scale", |scale| {
            scale["spec"]["replicas"] = json!(replicas);
        })?;
        assert_eq!(tester.get()?["spec"]["replicas"], replicas);
        tester.complete()?;
    }
    Ok(())
}

/// A ReplicaSet whose labels change is let go, and taken back when they change back.
pub fn test_replica_set_orphaning_and_adoption_when_labels_change(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::manual(cluster, "test-rs-orphaning-and-adoption")?;
    let tester = Tester::new(&lab, &deployment("deployment", 1))?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    let old = tester.expect_new_replica_set()?;
    let set = format!("replicasets/{}", name(&old));
    lab.update(&set, |set| set["metadata"]["labels"] = json!({"new-name": "new-test"}))?;
    lab.wait_for(&set, "it has no controller", |set| controller_of(set).is_none())?;
    // The name is taken, so that the new one gets another hash.
    lab.wait("there is another ReplicaSet", || Ok(tester.new_replica_set()?.is_some()))?;
    let new = tester.expect_new_replica_set()?;
    assert_ne!(name(&new), name(&old));
    tester.wait_for("the collision is counted", |deployment| {
        number(&deployment["status"]["collisionCount"]) == 1 && is_observed(deployment)
    })?;

    let labels = old["metadata"]["labels"].clone();
    lab.update(&set, |set| set["metadata"]["labels"] = labels.clone())?;
    let adopted = lab.wait_for(&set, "it has a controller", |set| controller_of(set).is_some())?;
    let controller = controller_of(&adopted).context("no controller")?;
    assert_eq!(controller["uid"], tester.get()?["metadata"]["uid"]);
    Ok(())
}
