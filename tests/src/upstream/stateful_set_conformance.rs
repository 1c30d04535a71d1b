//! Conformance tests of StatefulSets (`[sig-apps] StatefulSet`), with simulated nodes.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, condition, number, text};
use crate::picokube::Picokube;

use super::objects::{IMAGE, stateful_set};
use super::stateful_set_tester::SetTester;

const NEW: &str = "new-image";

/// should perform rolling updates and roll backs of template modifications
pub fn should_perform_rolling_updates_and_roll_backs_of_template_modifications(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "sts-rolling-updates")?;
    let tester = SetTester::ready(&lab, &stateful_set("ss", 3))?;
    let first = tester.wait_until_updated()?["status"]["currentRevision"].clone();
    assert_eq!(tester.revisions()?, [text(&first); 3]);
    for image in [NEW, IMAGE] {
        // With one that is not ready, the update is known and waits.
        tester.behave(1, Some("never-ready"))?;
        tester.wait_for_count_of_ready(2)?;
        tester.set_image(image)?;
        let set = tester.wait_until_observed()?;
        let (current, update) =
            (&set["status"]["currentRevision"], &set["status"]["updateRevision"]);
        ensure!(current != update, "{current} is the revision of both templates");
        assert_eq!(tester.revisions()?, [text(current); 3]);
        tester.behave(1, None)?;
        let set = tester.wait_until_updated()?;
        assert_eq!(tester.images()?, [image; 3]);
        assert_eq!(tester.revisions()?, [text(&set["status"]["updateRevision"]); 3]);
        // The events of the second round are counted in those of the first.
        tester.wait_until_told("SuccessfulDelete", &[2, 1, 0])?;
    }
    assert_eq!(tester.get()?["status"]["currentRevision"], first, "it was rolled back to another");
    Ok(())
}

/// should perform canary updates and phased rolling updates of template modifications
pub fn should_perform_canary_updates_and_phased_rolling_updates_of_template_modifications(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "sts-canary")?;
    let mut wanted = stateful_set("ss", 3);
    wanted["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}});
    let tester = SetTester::ready(&lab, &wanted)?;
    tester.wait_until_updated()?;
    // Not applied while the partition is beyond all pods.
    tester.set_image(NEW)?;
    let set = tester.wait_until_observed()?;
    ensure!(set["status"]["currentRevision"] != set["status"]["updateRevision"], "{set:#}");
    assert_eq!(tester.images()?, [IMAGE; 3]);

    let updated = |wanted: i64| {
        move |set: &Value| {
            let status = &set["status"];
            number(&status["updatedReplicas"]) == wanted && number(&status["readyReplicas"]) == 3
        }
    };
    tester.set_partition(2)?;
    tester.wait_for("the canary is there", updated(1))?;
    assert_eq!(tester.images()?, [IMAGE, IMAGE, NEW]);
    // Each comes back as it was.
    for ordinal in [2, 0] {
        tester.replace(ordinal)?;
        assert_eq!(tester.images()?, [IMAGE, IMAGE, NEW]);
    }
    tester.wait_for("all are ready again", updated(1))?;
    tester.set_partition(1)?;
    tester.wait_for("the second phase is over", updated(2))?;
    assert_eq!(tester.images()?, [IMAGE, NEW, NEW]);
    tester.set_partition(0)?;
    tester.wait_until_updated()?;
    assert_eq!(tester.images()?, [NEW; 3]);
    Ok(())
}

/// Scaling should happen in predictable order and halt if any stateful pod is unhealthy
pub fn scaling_should_happen_in_predictable_order_and_halt_if_any_stateful_pod_is_unhealthy(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "sts-scaling-order")?;
    let tester = SetTester::ready(&lab, &stateful_set("ss", 1))?;
    tester.behave(0, Some("never-ready"))?;
    tester.wait_for_count_of_ready(0)?;
    tester.set_replicas(3)?;
    tester.wait_until_observed()?;
    assert_eq!(tester.ordinals()?, [0]);
    tester.behave(0, None)?;
    tester.wait_for_ready(3)?;
    tester.wait_until_told("SuccessfulCreate", &[0, 1, 2])?;

    for ordinal in 0..3 {
        tester.behave(ordinal, Some("never-ready"))?;
    }
    tester.wait_for_count_of_ready(0)?;
    tester.set_replicas(0)?;
    tester.wait_until_observed()?;
    assert_eq!(tester.ordinals()?, [0, 1, 2]);
    for ordinal in 0..3 {
        tester.behave(ordinal, None)?;
    }
    tester.wait_for_replicas(0)?;
    tester.wait_until_told("SuccessfulDelete", &[2, 1, 0])
}

/// Burst scaling should run to completion even with unhealthy pods
pub fn burst_scaling_should_run_to_completion_even_with_unhealthy_pods(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "sts-burst-scaling")?;
    let mut wanted = stateful_set("ss", 1);
    wanted["spec"]["podManagementPolicy"] = json!("Parallel");
    let tester = SetTester::ready(&lab, &wanted)?;
    tester.behave(0, Some("never-ready"))?;
    tester.wait_for_count_of_ready(0)?;
    tester.set_replicas(3)?;
    tester.wait_for_replicas(3)?;
    tester.behave(0, None)?;
    tester.wait_for_ready(3)?;
    for ordinal in 0..3 {
        tester.behave(ordinal, Some("never-ready"))?;
    }
    tester.wait_for_count_of_ready(0)?;
    tester.set_replicas(0)?;
    tester.wait_for_replicas(0)?;
    Ok(())
}

/// Should recreate evicted statefulset
///
/// Upstream's pod is refused by its node because of a port that is taken; simulated nodes evict it.
pub fn should_recreate_evicted_statefulset(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-evicted")?;
    let tester = SetTester::ready(&lab, &stateful_set("ss", 1))?;
    let evicted = lab.get(&tester.pod(0))?["metadata"]["uid"].clone();
    tester.behave(0, Some("evict"))?;
    let pod = tester.wait_for_another(0, &evicted)?;
    assert_eq!(pod["status"]["phase"], "Running");
    tester.wait_for_ready(1)?;
    Ok(())
}

/// should have a working scale subresource
pub fn should_have_a_working_scale_subresource(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-scale")?;
    let tester = SetTester::ready(&lab, &stateful_set("ss", 1))?;
    let scale = "statefulsets/ss/scale";
    let seen = lab.get(scale)?;
    assert_eq!((number(&seen["spec"]["replicas"]), number(&seen["status"]["replicas"])), (1, 1));
    assert_eq!(seen["status"]["selector"], "name=test");
    let updated = lab.update(scale, |scale| scale["spec"]["replicas"] = json!(2))?;
    assert_eq!(updated["spec"]["replicas"], 2);
    assert_eq!(tester.get()?["spec"]["replicas"], 2);
    lab.patch(scale, &json!({"spec": {"replicas": 4}}))?;
    assert_eq!(tester.get()?["spec"]["replicas"], 4);
    tester.wait_for_ready(4)?;
    Ok(())
}

/// should list, patch and delete a collection of StatefulSets
pub fn should_list_patch_and_delete_a_collection_of_stateful_sets(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "sts-collection")?;
    let mut wanted = stateful_set("ss", 1);
    wanted["metadata"]["labels"] = json!({"test-ss": "created"});
    let tester = SetTester::ready(&lab, &wanted)?;
    let patched = lab.patch_strategically(
        &tester.object,
        &json!({
            "metadata": {"labels": {"test-ss": "patched"}},
            "spec": {"replicas": 2, "template": {"spec": {
                "containers": [{"name": "fake-name", "image": "pause:3"}],
            }}},
        }),
    )?;
    assert_eq!(patched["metadata"]["labels"]["test-ss"], "patched");
    let set = tester.wait_until_updated()?;
    assert_eq!(number(&set["status"]["readyReplicas"]), 2);
    assert_eq!(tester.images()?, ["pause:3"; 2]);
    let query = "labelSelector=test-ss%3Dpatched";
    let everywhere = cluster.get(&format!("/apis/apps/v1/statefulsets?{query}"))?.json()?;
    assert_eq!(everywhere["items"].as_array().map(Vec::len), Some(1));
    lab.ask("DELETE", &format!("statefulsets?{query}"), &json!({}))?;
    lab.wait("nothing is left", || {
        Ok(lab.list("statefulsets")?.is_empty()
            && lab.list("pods")?.is_empty()
            && lab.list("controllerrevisions")?.is_empty())
    })
}

/// should validate Statefulset Status endpoints
pub fn should_validate_statefulset_status_endpoints(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-status")?;
    let tester = SetTester::ready(&lab, &stateful_set("ss", 1))?;
    let status = "statefulsets/ss/status";
    assert_eq!(lab.get(status)?["status"]["readyReplicas"], 1);
    let conditions = json!([{"type": "StatusUpdate", "status": "True", "reason": "E2E"}]);
    lab.update(status, |set| set["status"]["conditions"] = conditions.clone())?;
    let seen = tester.wait_for("the condition is there", |set| {
        condition(set, "StatusUpdate")["reason"] == "E2E"
    })?;
    assert_eq!(seen["spec"]["replicas"], 1, "the status endpoint changes nothing else");
    let conditions = json!([{"type": "StatusPatched", "status": "True"}]);
    lab.patch(status, &json!({"status": {"conditions": conditions}}))?;
    let patched = tester.wait_for("the condition was patched", |set| {
        condition(set, "StatusPatched")["status"] == "True"
    })?;
    ensure!(condition(&patched, "StatusUpdate").is_null(), "a merge patch replaces a list");
    // The controller goes on, and leaves conditions alone that are none of its business.
    tester.set_replicas(2)?;
    let set = tester.wait_for_ready(2)?;
    ensure!(!condition(&set, "StatusPatched").is_null(), "it is gone");
    tester.pods()?.first().context("no pods")?;
    Ok(())
}
