//! What upstream tests of StatefulSets in `test/e2e/apps` beside conformance: adoption, order, strategies,
//! `minReadySeconds` and ordinals. The tests' names are cut where they repeat their subject.

use anyhow::Result;
use serde_json::{Value, json};

use crate::lab::{Lab, condition, is_observed, name, number, text};
use crate::picokube::Picokube;

use super::objects::{IMAGE, controller_of, stateful_set};
use super::stateful_set_tester::SetTester;

const NEW: &str = "new-image";

/// should adopt matching orphans and release non-matching pods
pub fn should_adopt_matching_orphans_and_release_non_matching_pods(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "sts-adopt-release")?;
    let tester = SetTester::ready(&lab, &stateful_set("ss", 1))?;
    let (pod, uid) = (tester.pod(0), tester.get()?["metadata"]["uid"].clone());
    let is_adopted = |pod: &Value| {
        controller_of(pod)
            .is_some_and(|owner| owner["kind"] == "StatefulSet" && owner["uid"] == uid)
    };
    let before = lab.wait_for(&pod, "it is the set's", is_adopted)?;
    lab.patch(&pod, &json!({"metadata": {"ownerReferences": null}}))?;
    lab.wait_for(&pod, "it was adopted", is_adopted)?;
    lab.patch(&pod, &json!({"metadata": {"labels": null}}))?;
    // Its name is taken, so that no other can take its place.
    lab.wait_for(&pod, "it was released", |pod| controller_of(pod).is_none())?;
    lab.patch(&pod, &json!({"metadata": {"labels": before["metadata"]["labels"]}}))?;
    let after = lab.wait_for(&pod, "it was adopted", is_adopted)?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    tester.wait_for_ready(1)?;
    Ok(())
}

/// should not deadlock when a pod's predecessor fails
pub fn should_not_deadlock_when_a_pods_predecessor_fails(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-predecessor")?;
    let tester = SetTester::new(&lab, &stateful_set("ss", 2))?;
    tester.wait_for_replicas(1)?;
    lab.report_ready(&tester.pods()?)?;
    tester.wait_for_replicas(2)?;
    // The healthy one goes, and comes back although the other is not healthy.
    let first = lab.get(&tester.pod(0))?["metadata"]["uid"].clone();
    lab.ask("DELETE", &tester.pod(0), &json!({"gracePeriodSeconds": 0}))?;
    lab.wait("it is back", || {
        let pods = tester.pods()?;
        Ok(pods.len() == 2 && pods.iter().all(|pod| pod["metadata"]["uid"] != first))
    })?;
    lab.report_ready(&tester.pods()?)?;
    tester.wait_for_ready(2)?;
    Ok(())
}

/// should implement legacy replacement when the update strategy is OnDelete
pub fn should_implement_legacy_replacement_when_the_update_strategy_is_on_delete(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "sts-on-delete")?;
    let mut wanted = stateful_set("ss", 3);
    wanted["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    let tester = SetTester::ready(&lab, &wanted)?;
    tester.set_image(NEW)?;
    tester.wait_until_observed()?;
    assert_eq!(tester.images()?, [IMAGE; 3]);
    tester.replace(1)?;
    assert_eq!(tester.images()?, [IMAGE, NEW, IMAGE]);
    for ordinal in [0, 2] {
        tester.replace(ordinal)?;
    }
    // As in Kubernetes, `currentRevision` stays what it was with this strategy.
    tester.wait_for("all are counted", |set| number(&set["status"]["updatedReplicas"]) == 3)?;
    tester.wait_for_ready(3)?;
    assert_eq!(tester.images()?, [NEW; 3]);
    Ok(())
}

/// MinReadySeconds should be honored when enabled
pub fn min_ready_seconds_should_be_honored_when_enabled(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-min-ready")?;
    let mut wanted = stateful_set("ss", 2);
    wanted["spec"]["minReadySeconds"] = json!(3600);
    let tester = SetTester::new(&lab, &wanted)?;
    tester.wait_for_replicas(1)?;
    lab.report_ready(&tester.pods()?)?;
    // Ready is not enough for the next to come.
    let set = tester.wait_for_count_of_ready(1)?;
    assert_eq!(number(&set["status"]["availableReplicas"]), 0);
    assert_eq!(tester.ordinals()?, [0]);
    for (available, replicas) in [(1, 2), (2, 2)] {
        for pod in tester.pods()? {
            lab.report_pod_ready_since(&pod, "2020-01-01T00:00:00Z")?;
        }
        tester.wait_for("it is available", |set| {
            let counts = ["availableReplicas", "replicas"].map(|f| number(&set["status"][f]));
            counts == [available, replicas]
        })?;
    }
    Ok(())
}

/// A set of pods from this ordinal on, ready.
fn from<'l, 'a>(lab: &'l Lab<'a>, start: i64) -> Result<SetTester<'l, 'a>> {
    let mut wanted = stateful_set("ss", 2);
    wanted["spec"]["ordinals"] = json!({"start": start});
    SetTester::ready(lab, &wanted)
}

fn wait_for_ordinals(tester: &SetTester<'_, '_>, wanted: &[i64]) -> Result<()> {
    tester.lab.wait("the ordinals have moved", || Ok(tester.ordinals()? == wanted))?;
    tester.wait_for_ready(wanted.len() as i64)?;
    assert_eq!(tester.ordinals()?, wanted);
    Ok(())
}

/// Increasing .start.ordinal
pub fn increasing_start_ordinal(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-increasing-start")?;
    let tester = from(&lab, 2)?;
    assert_eq!(tester.ordinals()?, [2, 3]);
    tester.patch(&json!({"spec": {"ordinals": {"start": 4}}}))?;
    wait_for_ordinals(&tester, &[4, 5])
}

/// Decreasing .start.ordinal
pub fn decreasing_start_ordinal(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-decreasing-start")?;
    let tester = from(&lab, 3)?;
    tester.patch(&json!({"spec": {"ordinals": {"start": 2}}}))?;
    wait_for_ordinals(&tester, &[2, 3])
}

/// Removing .start.ordinal
pub fn removing_start_ordinal(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-removing-start")?;
    let tester = from(&lab, 3)?;
    tester.patch(&json!({"spec": {"ordinals": null}}))?;
    wait_for_ordinals(&tester, &[0, 1])
}

/// should perform rolling updates with maxUnavailable
pub fn should_perform_rolling_updates_with_max_unavailable(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-max-unavailable")?;
    let mut wanted = stateful_set("ss", 4);
    wanted["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}});
    let tester = SetTester::new(&lab, &wanted)?;
    lab.wait("all are ready", || {
        lab.report_ready(&tester.pods()?)?;
        Ok(number(&tester.get()?["status"]["readyReplicas"]) == 4)
    })?;
    tester.set_image(NEW)?;
    // Two at once; the others stay while these are not ready.
    tester.wait_until_told("SuccessfulDelete", &[3, 2])?;
    tester.wait_for("one is there again", |set| {
        let fields = ["replicas", "readyReplicas", "updatedReplicas"];
        is_observed(set) && fields.map(|field| number(&set["status"][field])) == [3, 2, 1]
    })?;
    let pods = tester.pods()?;
    let ready = pods.iter().filter(|pod| condition(pod, "Ready")["status"] == "True");
    let ready: Vec<_> =
        ready.map(|pod| (name(pod), text(&pod["spec"]["containers"][0]["image"]))).collect();
    assert_eq!(ready, [("ss-0", IMAGE), ("ss-1", IMAGE)]);
    lab.wait("all are updated", || {
        lab.report_ready(&tester.pods()?)?;
        let status = tester.get()?["status"].clone();
        Ok(["readyReplicas", "updatedReplicas"].iter().all(|field| number(&status[field]) == 4))
    })?;
    assert_eq!(tester.images()?, [NEW; 4]);
    Ok(())
}
