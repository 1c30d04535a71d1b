//! Conformance tests of Deployments (`[sig-apps] Deployment`), with simulated nodes.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, condition, is_observed, name, number, text};
use crate::picokube::Picokube;

use super::objects::{deployment, image_patch, replica_set};
use super::tester::Tester;

const REVISION: &str = "deployment.kubernetes.io/revision";

fn is_available(replicas: i64) -> impl Fn(&Value) -> bool {
    move |deployment| {
        let status = &deployment["status"];
        is_observed(deployment)
            && number(&status["updatedReplicas"]) == replicas
            && number(&status["replicas"]) == replicas
            && number(&status["availableReplicas"]) == replicas
    }
}

/// A ReplicaSet that is there before the Deployment, with pods of an older image.
fn older_replica_set(lab: &Lab<'_>, replicas: i64) -> Result<()> {
    let mut older = replica_set("older", replicas);
    older["spec"]["template"]["spec"]["containers"][0]["image"] = json!("older");
    older["metadata"]["annotations"] = json!({REVISION: "3546343826724305832"});
    lab.create("replicasets", &older)?;
    lab.wait_for("replicasets/older", "it is ready", |set| {
        number(&set["status"]["readyReplicas"]) == replicas
    })?;
    Ok(())
}

/// RollingUpdateDeployment should delete old pods and create new ones
pub fn rolling_update_deployment_should_delete_old_pods_and_create_new_ones(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "d-rolling-update")?;
    older_replica_set(&lab, 1)?;
    let tester = Tester::new(&lab, &deployment("rolling", 1))?;
    let rolled_out = tester.wait_for("it is rolled out", is_available(1))?;
    let revision = &rolled_out["metadata"]["annotations"][REVISION];
    assert_eq!(revision, "3546343826724305833", "one more than that of the adopted ReplicaSet");
    let old = tester.old_replica_sets()?;
    assert_eq!(old.len(), 1);
    assert_eq!((name(&old[0]), number(&old[0]["spec"]["replicas"])), ("older", 0));
    lab.wait("the old pod is gone", || Ok(lab.list("pods")?.len() == 1))
}

/// RecreateDeployment should delete old pods and create new ones
pub fn recreate_deployment_should_delete_old_pods_and_create_new_ones(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "d-recreate")?;
    let mut wanted = deployment("recreate", 3);
    wanted["spec"]["strategy"] = json!({"type": "Recreate"});
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for("it is rolled out", is_available(3))?;
    tester.set_image("httpd")?;
    lab.wait("it is rolled out", || {
        let pods = lab.list("pods")?;
        let images: Vec<&str> =
            pods.iter().map(|pod| text(&pod["spec"]["containers"][0]["image"])).collect();
        let (old, new) = (images.contains(&"fakeimage"), images.contains(&"httpd"));
        ensure!(!(old && new), "new pods beside old ones: {images:?}");
        let deployment = tester.get()?;
        Ok(is_available(3)(&deployment) && images == ["httpd"; 3])
    })
}

/// deployment should delete old replica sets
pub fn deployment_should_delete_old_replica_sets(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "d-cleanup")?;
    older_replica_set(&lab, 1)?;
    let mut wanted = deployment("cleanup", 1);
    wanted["spec"]["revisionHistoryLimit"] = json!(0);
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for("it is rolled out", is_available(1))?;
    lab.wait("the old ReplicaSet is gone", || Ok(lab.list("replicasets")?.len() == 1))?;
    ensure!(tester.old_replica_sets()?.is_empty(), "the wrong one went");
    Ok(())
}

/// deployment should support rollover
pub fn deployment_should_support_rollover(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "d-rollover")?;
    older_replica_set(&lab, 1)?;
    let mut wanted = deployment("rollover", 1);
    wanted["spec"]["minReadySeconds"] = json!(1);
    wanted["spec"]["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 0, "maxSurge": 1});
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("redis-slave:no-image");
    let tester = Tester::new(&lab, &wanted)?;
    lab.wait("the new ReplicaSet was scaled up", || {
        Ok(tester.new_replica_set()?.is_some_and(|set| number(&set["spec"]["replicas"]) == 1))
    })?;
    let stuck = tester.expect_new_replica_set()?;
    tester.set_image("works")?;
    lab.wait("the rollover is complete", || {
        let sets = tester.replica_sets()?;
        let available: i64 =
            sets.iter().map(|set| number(&set["status"]["availableReplicas"])).sum();
        // The first ReplicaSet is a Deployment's only from its adoption on.
        ensure!(available >= 1 || sets.len() < 2, "nobody is available: {sets:#?}");
        Ok(is_available(1)(&tester.get()?))
    })?;
    let old = tester.old_replica_sets()?;
    assert_eq!(old.len(), 2);
    ensure!(old.iter().any(|set| name(set) == name(&stuck)), "it was not let go");
    for set in old {
        assert_eq!(number(&set["spec"]["replicas"]), 0, "{}", name(&set));
    }
    Ok(())
}

/// deployment should support proportional scaling
pub fn deployment_should_support_proportional_scaling(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "d-proportional")?;
    let mut wanted = deployment("proportional", 10);
    wanted["spec"]["strategy"]["rollingUpdate"] = json!({"maxSurge": 3, "maxUnavailable": 2});
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for("it is rolled out", is_available(10))?;
    tester.set_image("webserver:404")?;
    let replicas = || -> Result<(i64, i64)> {
        let of = |set: &Value| number(&set["spec"]["replicas"]);
        let old: i64 = tester.old_replica_sets()?.iter().map(of).sum();
        Ok((old, tester.new_replica_set()?.as_ref().map_or(0, of)))
    };
    lab.wait("eight old ones and five new ones", || Ok(replicas()? == (8, 5)))?;
    tester.wait_for("all 13 are there", |deployment| {
        let status = &deployment["status"];
        is_observed(deployment)
            && number(&status["replicas"]) == 13
            && number(&status["availableReplicas"]) == 8
    })?;
    tester.patch(&json!({"spec": {"replicas": 30}}))?;
    lab.wait("20 old ones and 13 new ones", || Ok(replicas()? == (20, 13)))
}

/// Deployment should have a working scale subresource
pub fn deployment_should_have_a_working_scale_subresource(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "d-scale")?;
    let tester = Tester::new(&lab, &deployment("scaled", 1))?;
    tester.wait_for("it is rolled out", is_available(1))?;
    let scale = "deployments/scaled/scale";
    let seen = lab.get(scale)?;
    assert_eq!((number(&seen["spec"]["replicas"]), number(&seen["status"]["replicas"])), (1, 1));
    lab.update(scale, |scale| scale["spec"]["replicas"] = json!(2))?;
    assert_eq!(tester.get()?["spec"]["replicas"], 2);
    lab.patch(scale, &json!({"spec": {"replicas": 4}}))?;
    assert_eq!(tester.get()?["spec"]["replicas"], 4);
    tester.wait_for("four are available", is_available(4))?;
    Ok(())
}

/// should run the lifecycle of a Deployment
pub fn should_run_the_lifecycle_of_a_deployment(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "d-lifecycle")?;
    let mut wanted = deployment("test-deployment", 2);
    wanted["metadata"]["labels"] = json!({"test-deployment-static": "true"});
    let tester = Tester::new(&lab, &wanted)?;
    tester.wait_for("two are available", is_available(2))?;

    let mut patch = image_patch("pause:3");
    patch["metadata"] = json!({"labels": {"test-deployment": "patched"}});
    patch["spec"]["replicas"] = json!(1);
    tester.patch(&patch)?;
    let patched = tester.wait_for("one is available", is_available(1))?;
    assert_eq!(patched["metadata"]["labels"]["test-deployment"], "patched");

    let query = "labelSelector=test-deployment-static%3Dtrue";
    let everywhere = cluster.get(&format!("/apis/apps/v1/deployments?{query}"))?.json()?;
    let found = everywhere["items"].as_array().cloned().unwrap_or_default();
    assert_eq!(found.iter().map(name).collect::<Vec<_>>(), ["test-deployment"]);

    lab.update("deployments/test-deployment", |deployment| {
        deployment["metadata"]["labels"]["test-deployment"] = json!("updated");
        deployment["spec"]["replicas"] = json!(2);
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("httpd:2");
    })?;
    tester.wait_for("two are available", is_available(2))?;

    // Whoever writes a wrong count into the status sees it mended.
    let wrong = json!({"metadata": {"labels": {"test-deployment": "patched-status"}},
        "status": {"readyReplicas": 0, "availableReplicas": 0}});
    let answer = lab.patch("deployments/test-deployment/status", &wrong)?;
    assert_eq!(number(&answer["status"]["readyReplicas"]), 0);
    tester.wait_for("two are available again", is_available(2))?;
    let status = lab.get("deployments/test-deployment/status")?;
    assert_eq!(number(&status["status"]["readyReplicas"]), 2);

    lab.ask("DELETE", &format!("deployments?{query}"), &json!({}))?;
    lab.wait("nothing is left", || {
        let left = lab.list("deployments")?.len() + lab.list("replicasets")?.len();
        Ok(left + lab.list("pods")?.len() == 0)
    })
}

/// should validate Deployment Status endpoints
pub fn should_validate_deployment_status_endpoints(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "d-status")?;
    let tester = Tester::new(&lab, &deployment("status", 1))?;
    tester.wait_for("it is rolled out", is_available(1))?;
    let status = lab.get("deployments/status/status")?;
    ensure!(status["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty()));
    lab.update("deployments/status/status", |deployment| {
        if let Some(conditions) = deployment["status"]["conditions"].as_array_mut() {
            conditions.push(json!({
                "type": "StatusUpdate",
                "status": "True",
                "reason": "E2E",
                "message": "Set from e2e test",
            }));
        }
    })?;
    tester.wait_for("the condition is there", |deployment| {
        condition(deployment, "StatusUpdate")["reason"] == "E2E"
    })?;
    let conditions = json!([{"type": "StatusPatched", "status": "True"}]);
    lab.patch("deployments/status/status", &json!({"status": {"conditions": conditions}}))?;
    let patched = tester.wait_for("the condition was patched", |deployment| {
        condition(deployment, "StatusPatched")["status"] == "True"
    })?;
    ensure!(condition(&patched, "StatusUpdate").is_null(), "a merge patch replaces a list");
    // The controller puts its own conditions back and leaves the others alone.
    tester.patch(&json!({"spec": {"replicas": 2}}))?;
    let mended = tester.wait_for("its own conditions are back", |deployment| {
        condition(deployment, "Available")["status"] == "True" && is_available(2)(deployment)
    })?;
    ensure!(!condition(&mended, "StatusPatched").is_null(), "it is gone");
    Ok(())
}
