//! Integration tests of StatefulSets, where the test plays the kubelet. All but the one about the strategy
//! `Recreate`, which 1.34 does not have.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, name, number, text};
use crate::picokube::Picokube;

use super::objects::{IMAGE, stateful_set, stateful_set_with_claims};
use super::stateful_set_tester::SetTester;

const FINALIZER: &str = "fake.example.com/blockDeletion";

/// Upstream's `newSTS`: all pods at once, with claims.
fn burst(replicas: i64) -> Value {
    let mut set = stateful_set_with_claims("sts", replicas);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set
}

fn stable<'l, 'a>(lab: &'l Lab<'a>, set: &Value) -> Result<SetTester<'l, 'a>> {
    let tester = SetTester::new(lab, set)?;
    tester.wait_for_replicas(number(&set["spec"]["replicas"]))?;
    Ok(tester)
}

/// A set is updated with the spec that it was created with.
pub fn test_volume_template_noop_update(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-volume-template-noop")?;
    let mut wanted = burst(3);
    let template = &mut wanted["spec"]["volumeClaimTemplates"][0];
    template["apiVersion"] = json!("v1");
    template["kind"] = json!("PersistentVolumeClaim");
    template["spec"]["storageClassName"] = json!("my-storage-class");
    let tester = SetTester::new(&lab, &wanted)?;
    lab.update(&tester.object, |set| set["spec"] = wanted["spec"].clone())?;
    assert_eq!(tester.get()?["metadata"]["generation"], 1);
    Ok(())
}

/// `spec.replicas` goes up and down.
pub fn test_spec_replicas_change(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-spec-replicas-change")?;
    let tester = stable(&lab, &burst(2))?;
    for replicas in [3, 0, 2] {
        tester.set_replicas(replicas)?;
        tester.wait_for_replicas(replicas)?;
    }
    // Any other change of the spec is observed as well.
    let before = number(&tester.get()?["metadata"]["generation"]);
    let annotation = json!({"metadata": {"annotations": {"test": "annotation"}}});
    let after = tester.patch(&json!({"spec": {"template": annotation}}))?;
    ensure!(number(&after["metadata"]["generation"]) > before, "the generation did not move");
    tester.wait_until_observed()?;
    Ok(())
}

/// Pods that have ended are replaced; one that is being deleted is waited for.
pub fn test_deleting_and_terminating_pods(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-deleting-and-terminating")?;
    let tester = stable(&lab, &burst(3))?;
    let before = tester.pods()?;
    let [deleting, failed, succeeded] = &before[..] else { bail!("{} pods", before.len()) };
    lab.patch(&tester.pod(0), &json!({"metadata": {"finalizers": [FINALIZER]}}))?;
    lab.ask("DELETE", &tester.pod(0), &json!({}))?;
    for (ordinal, phase) in [(1, "Failed"), (2, "Succeeded")] {
        let status = json!({"status": {"phase": phase}});
        lab.patch(&format!("{}/status", tester.pod(ordinal)), &status)?;
    }
    let is_there = |pods: &[Value], pod: &Value| {
        pods.iter().any(|other| other["metadata"]["uid"] == pod["metadata"]["uid"])
    };
    lab.wait("what has ended was replaced", || {
        let pods = lab.list("pods")?;
        ensure!(is_there(&pods, deleting), "what was being deleted is gone");
        Ok(pods.len() == 3 && !is_there(&pods, failed) && !is_there(&pods, succeeded))
    })?;
    lab.patch(&tester.pod(0), &json!({"metadata": {"finalizers": null}}))?;
    lab.wait("what was deleted is replaced", || {
        let pods = lab.list("pods")?;
        Ok(pods.len() == 3 && !is_there(&pods, deleting))
    })
}

/// Replicas, ready and available are counted apart.
pub fn test_stateful_set_available(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-available")?;
    let mut wanted = burst(4);
    wanted["spec"]["minReadySeconds"] = json!(3600);
    let tester = stable(&lab, &wanted)?;
    let pods = tester.pods()?;
    let [_, second, third, fourth] = &pods[..] else { bail!("{} pods", pods.len()) };
    lab.report_pod_ready(second)?;
    for pod in [third, fourth] {
        lab.report_pod_ready_since(pod, "2020-01-01T00:00:00Z")?;
    }
    tester.wait_for("4, 3 and 2 are counted", |set| {
        let fields = ["replicas", "readyReplicas", "availableReplicas"];
        fields.map(|field| number(&set["status"][field])) == [4, 3, 2]
    })?;
    Ok(())
}

/// Pods are counted although others are refused: upstream by an admission plugin, here by a quota.
pub fn test_stateful_set_status_with_pod_fail(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-pod-fail")?;
    lab.create(
        "resourcequotas",
        &json!({"metadata": {"name": "two"}, "spec": {"hard": {"pods": "2"}}}),
    )?;
    let tester = SetTester::new(&lab, &burst(4))?;
    tester.wait_for("two are counted", |set| number(&set["status"]["replicas"]) == 2)?;
    assert_eq!(lab.list("pods")?.len(), 2);
    Ok(())
}

/// Claims belong to the set, to the pods that are scaled away, or to nobody.
pub fn test_autodelete_owner_refs(cluster: &Picokube) -> Result<()> {
    for (at, (when_deleted, when_scaled)) in
        [("Retain", "Retain"), ("Retain", "Delete"), ("Delete", "Retain"), ("Delete", "Delete")]
            .into_iter()
            .enumerate()
    {
        let lab = Lab::manual(cluster, &format!("sts-autodelete-{at}"))?;
        let mut wanted = burst(3);
        wanted["spec"]["persistentVolumeClaimRetentionPolicy"] =
            json!({"whenDeleted": when_deleted, "whenScaled": when_scaled});
        let tester = stable(&lab, &wanted)?;
        let of_set = if when_deleted == "Delete" { vec!["StatefulSet"] } else { vec![] };
        let of_condemned = if when_scaled == "Delete" { vec!["Pod"] } else { of_set.clone() };
        lab.wait("the claims are the set's, or nobody's", || {
            Ok((0..3).all(|ordinal| owners(&lab, ordinal).is_ok_and(|owners| owners == of_set)))
        })?;
        // Who owns the claims of a pod that is scaled away can be seen as long as the pod stays.
        for ordinal in [1, 2] {
            lab.patch(&tester.pod(ordinal), &json!({"metadata": {"finalizers": [FINALIZER]}}))?;
        }
        tester.set_replicas(1)?;
        lab.wait("the claims have changed hands", || {
            let condemned = [1, 2].map(|ordinal| owners(&lab, ordinal));
            Ok(lab.terminating_pods()? == 2
                && condemned.iter().all(|owners| owners.as_ref().is_ok_and(|o| *o == of_condemned)))
        })?;
        assert_eq!(owners(&lab, 0)?, of_set);
    }
    Ok(())
}

/// The kinds of the owners of a pod's claim.
fn owners(lab: &Lab<'_>, ordinal: i64) -> Result<Vec<String>> {
    let claim = lab.get(&format!("persistentvolumeclaims/data-sts-{ordinal}"))?;
    let owners = claim["metadata"]["ownerReferences"].as_array();
    Ok(owners.into_iter().flatten().map(|owner| text(&owner["kind"]).to_owned()).collect())
}

/// Below the partition a pod that fails is made anew of the revision that it had.
pub fn test_deleting_pod_for_rolling_update_partition(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-deleting-pod-for-partition")?;
    let mut wanted = burst(2);
    wanted["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}});
    let tester = stable(&lab, &wanted)?;
    lab.report_ready(&tester.pods()?)?;
    tester.wait_for_ready(2)?;
    lab.patch(&tester.pod(0), &json!({"metadata": {"finalizers": [FINALIZER]}}))?;
    tester.set_image("new-image")?;
    let counts = |set: &Value| {
        ["replicas", "readyReplicas", "updatedReplicas"].map(|f| number(&set["status"][f]))
    };
    lab.wait("the second was made anew", || {
        lab.report_ready(&tester.pods()?)?;
        Ok(counts(&tester.get()?) == [2, 2, 1])
    })?;
    assert_eq!(tester.images()?, [IMAGE, "new-image"]);
    let first = lab.get(&tester.pod(0))?["metadata"]["uid"].clone();
    lab.patch(&format!("{}/status", tester.pod(0)), &json!({"status": {"phase": "Failed"}}))?;
    // The controller may have deleted it by now.
    lab.send("DELETE", &tester.pod(0), &json!({}))?;
    tester.wait_for_count_of_ready(1)?;
    lab.patch(&tester.pod(0), &json!({"metadata": {"finalizers": null}}))?;
    lab.wait("the first was made anew", || {
        let pods = tester.pods()?;
        lab.report_ready(&pods)?;
        let is_new = pods.iter().any(|pod| name(pod) == "sts-0" && pod["metadata"]["uid"] != first);
        Ok(is_new && counts(&tester.get()?) == [2, 2, 1])
    })?;
    assert_eq!(tester.images()?, [IMAGE, "new-image"]);
    Ok(())
}

/// Ordinals begin where `spec.ordinals.start` says.
pub fn test_stateful_set_start_ordinal(cluster: &Picokube) -> Result<()> {
    let cases = [
        (Value::Null, 3, 0),
        (json!({}), 3, 0),
        (json!({"start": 4}), 4, 4),
        (json!({"start": 2}), 7, 2),
    ];
    for (at, (ordinals, replicas, start)) in cases.into_iter().enumerate() {
        let lab = Lab::manual(cluster, &format!("sts-start-ordinal-{at}"))?;
        let mut wanted = burst(replicas);
        wanted["spec"]["ordinals"] = ordinals;
        let tester = stable(&lab, &wanted)?;
        assert_eq!(tester.ordinals()?, (start..start + replicas).collect::<Vec<_>>());
        for (pod, ordinal) in tester.pods()?.iter().zip(start..) {
            assert_eq!(name(pod), format!("sts-{ordinal}"));
            let index = &pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"];
            assert_eq!(text(index), ordinal.to_string());
        }
        tester.set_replicas(1)?;
        tester.wait_for_replicas(1)?;
        assert_eq!(tester.ordinals()?, [start]);
    }
    Ok(())
}

/// Pods have the set's service as their subdomain.
pub fn test_stateful_set_pod_subdomain(cluster: &Picokube) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-pod-subdomain")?;
    let mut wanted = stateful_set("sts", 3);
    wanted["spec"]["podManagementPolicy"] = json!("Parallel");
    wanted["spec"]["serviceName"] = json!("test-service");
    let tester = stable(&lab, &wanted)?;
    let pods = tester.pods()?;
    pods.first().context("no pods")?;
    for pod in &pods {
        assert_eq!(pod["spec"]["subdomain"], "test-service");
    }
    Ok(())
}
