//! Integration tests of Deployments that roll out: progress, scale and revisions.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, name, number, text};
use crate::picokube::Picokube;

use super::objects::{IMAGE, deployment};
use super::tester::Tester;

/// Rolls out, and rolls over before the rollout is finished.
pub fn test_deployment_rolling_update(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-rolling-update-deployment")?;
    let mut wanted = deployment("rolling", 20);
    wanted["spec"]["minReadySeconds"] = json!(1);
    wanted["spec"]["strategy"]["rollingUpdate"] =
        json!({"maxUnavailable": "25%", "maxSurge": "25%"});
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;

    tester.set_image("new-image")?;
    tester.wait_for_revision("2", "new-image")?;
    tester.complete_and_check_rolling()?;

    // Nobody reports these ready, so that the next comes in the middle of this one.
    tester.set_image("dont-finish")?;
    tester.wait_for_revision("3", "dont-finish")?;
    tester.set_image("rollover")?;
    tester.wait_for_revision("4", "rollover")?;
    tester.complete_and_check_rolling()?;
    for set in tester.old_replica_sets()? {
        assert_eq!(number(&set["spec"]["replicas"]), 0, "{}", name(&set));
    }
    Ok(())
}

/// Another ReplicaSet has the name that the template's hash gives.
pub fn test_deployment_hash_collision(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-hash-collision-deployment")?;
    let tester = Tester::new(&lab, &deployment("collision", 1))?;
    tester.wait_for_revision("1", IMAGE)?;
    // With another template it is not the Deployment's new ReplicaSet any more.
    let set = format!("replicasets/{}", name(&tester.expect_new_replica_set()?));
    let grace = json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}});
    lab.patch(&set, &grace)?;
    tester.wait_for("the collision is counted", |deployment| {
        number(&deployment["status"]["collisionCount"]) == 1
    })?;
    tester.wait_for_revision("2", IMAGE)?;
    Ok(())
}

/// The deadline passes, and then the pods become ready after all.
pub fn test_failed_deployment(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-failed-deployment")?;
    let mut wanted = deployment("progress-check", 1);
    wanted["spec"]["progressDeadlineSeconds"] = json!(2);
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for("a replica is there", |deployment| {
        number(&deployment["status"]["updatedReplicas"]) >= 1
    })?;
    tester.wait_for_condition("Progressing", "ProgressDeadlineExceeded")?;
    tester.complete()?;
    tester.wait_for_condition("Progressing", "NewReplicaSetAvailable")?;
    Ok(())
}

/// Number and template change at the same time, in the middle of a rollout.
pub fn test_scaled_rollout_deployment(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-scaled-rollout-deployment")?;
    let mut wanted = deployment("scaled", 10);
    wanted["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 3, "maxUnavailable": 2});
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    let first = tester.expect_new_replica_set()?;

    let second = stuck_rollout(&tester, "2", "fakeimage2", 8)?;
    let third = scaled_rollout(&tester, "3", "fakeimage3", 20)?;
    desired_replicas_are(&lab, &[&first, &second, &third], "20")?;

    let fourth = stuck_rollout(&tester, "4", "fakeimage4", 18)?;
    let fifth = scaled_rollout(&tester, "5", "fakeimage5", 5)?;
    desired_replicas_are(&lab, &[&third, &fourth, &fifth], "5")
}

/// A rollout of which nobody reports a pod ready.
fn stuck_rollout(
    tester: &Tester<'_, '_>,
    revision: &str,
    image: &str,
    available: i64,
) -> Result<Value> {
    let old = tester.expect_new_replica_set()?;
    tester.set_image(image)?;
    let deployment = tester.wait_for_revision(revision, image)?;
    let left = number(&deployment["status"]["availableReplicas"]);
    ensure!(left >= available, "{left} are left of {available}");
    let new = tester.expect_new_replica_set()?;
    for set in [&old, &new] {
        tester.lab.wait_for(&format!("replicasets/{}", name(set)), "it has its pods", |set| {
            let status = &set["status"];
            status["observedGeneration"] == set["metadata"]["generation"]
                && status["replicas"] == set["spec"]["replicas"]
        })?;
    }
    Ok(new)
}

/// Another image and another number at once.
fn scaled_rollout(
    tester: &Tester<'_, '_>,
    revision: &str,
    image: &str,
    replicas: i64,
) -> Result<Value> {
    let mut patch = super::objects::image_patch(image);
    patch["spec"]["replicas"] = json!(replicas);
    tester.patch(&patch)?;
    tester.wait_for_revision(revision, image)?;
    tester.complete()?;
    tester.expect_new_replica_set()
}

fn desired_replicas_are(lab: &Lab<'_>, sets: &[&Value], wanted: &str) -> Result<()> {
    for set in sets {
        let now = lab.get(&format!("replicasets/{}", name(set)))?;
        let annotations = &now["metadata"]["annotations"];
        assert_eq!(text(&annotations["deployment.kubernetes.io/desired-replicas"]), wanted);
    }
    Ok(())
}

/// `spec.replicas` goes up and down, with the strategy Recreate.
pub fn test_spec_replicas_change(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-spec-replicas-change")?;
    let mut wanted = deployment("deployment", 1);
    wanted["spec"]["strategy"] = json!({"type": "Recreate"});
    let tester = Tester::new(&lab, &wanted)?;
    for replicas in [2, 0, 1] {
        tester.scale(replicas)?;
    }
    // Any other change of the spec is observed as well.
    let before = number(&tester.get()?["metadata"]["generation"]);
    let after = tester.patch(&json!({"spec": {"revisionHistoryLimit": 4}}))?;
    ensure!(number(&after["metadata"]["generation"]) > before, "the generation did not move");
    tester.wait_until_observed()?;
    Ok(())
}

/// Ready is not available before `minReadySeconds` have passed.
pub fn test_deployment_available_condition(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "test-deployment-available-condition")?;
    let mut wanted = deployment("deployment", 10);
    wanted["spec"]["minReadySeconds"] = json!(3600);
    wanted["spec"]["progressDeadlineSeconds"] = json!(7200);
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for_counts([10, 10, 0, 0, 10])?;
    tester.wait_for_condition("Available", "MinimumReplicasUnavailable")?;
    lab.report_ready(&lab.staying_pods()?)?;
    tester.wait_for_counts([10, 10, 10, 0, 10])?;
    tester.wait_for_condition("Available", "MinimumReplicasUnavailable")?;
    tester.patch(&json!({"spec": {"minReadySeconds": 1}}))?;
    tester.wait_until_observed()?;
    tester.wait_for_condition("Available", "MinimumReplicasAvailable")?;
    tester.wait_for_counts([10, 10, 10, 10, 0])?;
    Ok(())
}
