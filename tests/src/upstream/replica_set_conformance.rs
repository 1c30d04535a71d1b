//! Conformance tests of ReplicaSets (`[sig-apps] ReplicaSet`), with simulated nodes.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, condition, name, number, text};
use crate::picokube::Picokube;

use super::objects::{IMAGE, controller_of, matching_pod, replica_set};
use super::replica_set::RS;

fn is_ready(replicas: i64) -> impl Fn(&Value) -> bool {
    move |set| number(&set["status"]["readyReplicas"]) == replicas
}

/// should serve a basic image on each replica with a public image
pub fn should_serve_a_basic_image_on_each_replica_with_a_public_image(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "rs-basic-image")?;
    lab.create("replicasets", &replica_set("rs", 2))?;
    let set = lab.wait_for(RS, "both are ready", is_ready(2))?;
    let pods = lab.pods_of(&set)?;
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        assert_eq!(pod["status"]["phase"], "Running");
        ensure!(!text(&pod["status"]["podIP"]).is_empty(), "nobody could reach {}", name(pod));
        ensure!(name(pod).starts_with("rs-"), "{}", name(pod));
    }
    Ok(())
}

/// should adopt matching pods on creation and release no longer matching pods
pub fn should_adopt_matching_pods_on_creation_and_release_no_longer_matching_pods(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "rs-adopt-release")?;
    lab.create("pods", &matching_pod("pod-adoption-release"))?;
    let pod = "pods/pod-adoption-release";
    lab.wait_for(pod, "it runs", |pod| pod["status"]["phase"] == "Running")?;
    let set = lab.create("replicasets", &replica_set("rs", 1))?;
    let uid = &set["metadata"]["uid"];
    lab.wait_for(pod, "it was adopted", |pod| {
        controller_of(pod).is_some_and(|reference| reference["uid"] == *uid)
    })?;
    assert_eq!(lab.list("pods")?.len(), 1, "a pod was made");
    lab.patch(pod, &json!({"metadata": {"labels": {"name": "not-matching-name"}}}))?;
    lab.wait_for(pod, "it was released", |pod| controller_of(pod).is_none())?;
    lab.wait("it was replaced", || Ok(lab.pods_of(&set)?.len() == 1))
}

/// Replicaset should have a working scale subresource
pub fn replicaset_should_have_a_working_scale_subresource(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "rs-scale")?;
    lab.create("replicasets", &replica_set("rs", 1))?;
    lab.wait_for(RS, "it is ready", is_ready(1))?;
    let scale = "replicasets/rs/scale";
    let seen = lab.get(scale)?;
    assert_eq!((number(&seen["spec"]["replicas"]), number(&seen["status"]["replicas"])), (1, 1));
    let updated = lab.update(scale, |scale| scale["spec"]["replicas"] = json!(2))?;
    assert_eq!(updated["spec"]["replicas"], 2);
    assert_eq!(lab.get(RS)?["spec"]["replicas"], 2);
    lab.patch(scale, &json!({"spec": {"replicas": 4}}))?;
    assert_eq!(lab.get(RS)?["spec"]["replicas"], 4);
    lab.wait_for(RS, "four are ready", is_ready(4))?;
    Ok(())
}

/// Replace and Patch tests
pub fn replace_and_patch_tests(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "rs-replace-patch")?;
    lab.create("replicasets", &replica_set("rs", 1))?;
    lab.wait_for(RS, "it is ready", is_ready(1))?;
    lab.update(RS, |set| {
        set["metadata"]["labels"]["test-rs"] = json!("replaced");
        set["spec"]["replicas"] = json!(2);
    })?;
    lab.wait_for(RS, "two are ready", is_ready(2))?;
    // The patch names another container than the template has: it becomes the first.
    let patched = lab.patch_strategically(
        RS,
        &json!({
            "metadata": {"labels": {"test-rs": "patched"}},
            "spec": {"replicas": 3, "template": {"spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "test-rs", "image": "pause:3"}],
            }}},
        }),
    )?;
    let containers = patched["spec"]["template"]["spec"]["containers"].as_array();
    let images: Vec<&str> =
        containers.into_iter().flatten().map(|container| text(&container["image"])).collect();
    assert_eq!(images, ["pause:3", IMAGE]);
    let patched = lab.wait_for(RS, "three are ready", is_ready(3))?;
    assert_eq!(patched["metadata"]["labels"]["test-rs"], "patched");
    let pods = lab.pods_of(&patched)?;
    let is_new = |pod: &&Value| pod["spec"]["containers"][0]["image"] == "pause:3";
    assert_eq!(pods.iter().filter(is_new).count(), 1, "a template is for new pods only");
    Ok(())
}

/// should list and delete a collection of ReplicaSets
pub fn should_list_and_delete_a_collection_of_replica_sets(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "rs-collection")?;
    let mut wanted = replica_set("rs", 3);
    wanted["metadata"]["labels"] = json!({"e2e": "rs-collection"});
    lab.create("replicasets", &wanted)?;
    lab.wait_for(RS, "three are ready", is_ready(3))?;
    let query = "labelSelector=e2e%3Drs-collection";
    let everywhere = cluster.get(&format!("/apis/apps/v1/replicasets?{query}"))?.json()?;
    assert_eq!(everywhere["items"].as_array().map(Vec::len), Some(1));
    lab.ask("DELETE", &format!("replicasets?{query}"), &json!({}))?;
    lab.wait("nothing is left", || {
        Ok(lab.list(&format!("replicasets?{query}"))?.is_empty() && lab.list("pods")?.is_empty())
    })
}

/// should validate Replicaset Status endpoints
pub fn should_validate_replicaset_status_endpoints(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "rs-status")?;
    lab.create("replicasets", &replica_set("rs", 1))?;
    lab.wait_for(RS, "it is ready", is_ready(1))?;
    let status = lab.get("replicasets/rs/status")?;
    assert_eq!(status["status"]["readyReplicas"], 1);
    lab.update("replicasets/rs/status", |set| {
        set["status"]["conditions"] = json!([{
            "type": "StatusUpdate",
            "status": "True",
            "reason": "E2E",
            "message": "Set from e2e test",
        }]);
    })?;
    let seen = lab.wait_for(RS, "the condition is there", |set| {
        condition(set, "StatusUpdate")["reason"] == "E2E"
    })?;
    assert_eq!(seen["spec"]["replicas"], 1, "the status endpoint changes nothing else");
    let conditions = json!([{"type": "StatusPatched", "status": "True"}]);
    lab.patch("replicasets/rs/status", &json!({"status": {"conditions": conditions}}))?;
    let patched = lab.wait_for(RS, "the condition was patched", |set| {
        condition(set, "StatusPatched")["status"] == "True"
    })?;
    ensure!(condition(&patched, "StatusUpdate").is_null(), "a merge patch replaces a list");
    // The controller goes on, and leaves conditions alone that are none of its business.
    lab.patch(RS, &json!({"spec": {"replicas": 2}}))?;
    let set = lab.wait_for(RS, "two are ready", is_ready(2))?;
    ensure!(!condition(&set, "StatusPatched").is_null(), "it is gone");
    lab.staying_pods()?.first().context("no pods")?;
    Ok(())
}
