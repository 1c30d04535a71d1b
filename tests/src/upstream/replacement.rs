//! Integration tests of `status.terminatingReplicas`, and of rollouts past pods that take long to
//! go. They want a cluster with the feature gate `DeploymentReplicaSetTerminatingReplicas` on,
//! but for those that say otherwise.

use anyhow::Result;
use serde_json::{Value, json};

use crate::lab::{Lab, number};
use crate::picokube::Picokube;

use super::objects::{IMAGE, deployment, replica_set};
use super::replica_set::{RS, stable};
use super::tester::Tester;

/// Pods of this template have a node, so that they stay for a while after they are deleted.
fn slow_to_go(mut owner: Value) -> Value {
    let spec = &mut owner["spec"]["template"]["spec"];
    spec["nodeName"] = json!("fake-node");
    spec["terminationGracePeriodSeconds"] = json!(300);
    owner
}

/// Whether `replicas` and `terminatingReplicas` are these; `None` is a field that is not there.
fn counts(replicas: i64, terminating: Option<i64>) -> impl Fn(&Value) -> bool {
    move |object| {
        let status = &object["status"];
        number(&status["replicas"]) == replicas
            && status["terminatingReplicas"].as_i64() == terminating
    }
}

/// A ReplicaSet counts its pods that are being deleted.
pub fn test_terminating_replicas(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-terminating")?;
    stable(&lab, &slow_to_go(replica_set("rs", 5)))?;
    lab.wait_for(RS, "nobody goes", counts(5, Some(0)))?;
    lab.patch(RS, &json!({"spec": {"replicas": 2}}))?;
    lab.wait_for(RS, "three go", counts(2, Some(3)))?;
    // More while others are still going.
    lab.patch(RS, &json!({"spec": {"replicas": 4}}))?;
    lab.wait_for(RS, "two came", counts(4, Some(3)))?;
    lab.patch(RS, &json!({"spec": {"replicas": 0}}))?;
    lab.wait_for(RS, "all go", counts(0, Some(7)))?;
    assert_eq!(lab.finish_terminating_pods()?, 7);
    lab.wait_for(RS, "nobody is left", counts(0, Some(0)))?;
    Ok(())
}

/// The same with the gate off: the field is not there.
pub fn test_terminating_replicas_without_the_gate(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "rs-terminating-off")?;
    stable(&lab, &slow_to_go(replica_set("rs", 5)))?;
    lab.patch(RS, &json!({"spec": {"replicas": 2}}))?;
    lab.wait_for(RS, "three go", counts(2, None))?;
    assert_eq!(lab.terminating_pods()?, 3);
    Ok(())
}

/// A Deployment adds up what its ReplicaSets count.
pub fn test_terminating_replicas_deployment_status(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "deployment-terminating")?;
    let tester = Tester::new(&lab, &slow_to_go(deployment("slow", 10)))?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    tester.wait_for("nobody goes", counts(10, Some(0)))?;
    tester.patch(&json!({"spec": {"replicas": 4}}))?;
    tester.wait_for("six go", counts(4, Some(6)))?;
    tester.set_image("fakeimage2")?;
    tester.wait_for_revision("2", "fakeimage2")?;
    tester.complete()?;
    tester.wait_for("all ten of the first revision go", counts(4, Some(10)))?;
    assert_eq!(lab.finish_terminating_pods()?, 10);
    tester.wait_for("nobody goes", counts(4, Some(0)))?;
    Ok(())
}

/// The same with the gate off: the field is not there.
pub fn test_terminating_replicas_deployment_status_without_the_gate(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::manual(cluster, "deployment-terminating-off")?;
    let tester = Tester::new(&lab, &slow_to_go(deployment("slow", 10)))?;
    tester.complete()?;
    tester.patch(&json!({"spec": {"replicas": 4}}))?;
    tester.wait_for("six go", counts(4, None))?;
    assert_eq!(lab.terminating_pods()?, 6);
    Ok(())
}

/// Recreate waits until the last old pod is gone.
pub fn test_recreate_deployment_for_pod_replacement(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "recreate-replacement")?;
    let mut wanted = slow_to_go(deployment("recreate", 5));
    wanted["spec"]["strategy"] = json!({"type": "Recreate"});
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    tester.set_image("fakeimage2")?;
    tester.wait_for("all old pods go", counts(0, Some(5)))?;
    let created =
        |set: &Option<Value>| set.as_ref().map_or(0, |set| number(&set["spec"]["replicas"]));
    assert_eq!(created(&tester.new_replica_set()?), 0, "old pods are still there");
    assert_eq!(lab.finish_terminating_pods()?, 5);
    tester.wait_for_revision("2", "fakeimage2")?;
    tester.complete()?;
    tester.wait_for("five new pods", counts(5, Some(0)))?;
    Ok(())
}

/// A rolling update does not wait for pods to be gone, nor does scaling in the middle of it.
pub fn test_rolling_update_and_proportional_scaling_for_deployment_pod_replacement(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::manual(cluster, "rolling-replacement")?;
    let mut wanted = slow_to_go(deployment("rolling", 10));
    wanted["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 3, "maxUnavailable": 2});
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for_revision("1", IMAGE)?;
    tester.complete()?;
    tester.set_image("fakeimage2")?;
    tester.wait_for("two old ones go, and five new ones come", counts(13, Some(2)))?;
    let replicas = || -> Result<(i64, i64)> {
        let old = tester.old_replica_sets()?;
        let of = |set: &Value| number(&set["spec"]["replicas"]);
        Ok((old.iter().map(of).sum(), of(&tester.expect_new_replica_set()?)))
    };
    assert_eq!(replicas()?, (8, 5));
    // 23 in the proportion of 8 to 5; those that go do not count.
    tester.patch(&json!({"spec": {"replicas": 20}}))?;
    lab.wait("both have grown", || Ok(replicas()? == (14, 9)))?;
    tester.wait_for("the two still go", counts(23, Some(2)))?;
    tester.complete()?;
    let gone = tester.wait_for("all old ones go", counts(20, Some(16)))?;
    assert_eq!(number(&gone["status"]["availableReplicas"]), 20);
    assert_eq!(lab.finish_terminating_pods()?, 16);
    tester.wait_for("nobody goes", counts(20, Some(0)))?;
    Ok(())
}
