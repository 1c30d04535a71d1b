//! What upstream tests of StatefulSets' claims in `test/e2e/apps`.

use anyhow::Result;
use serde_json::{Value, json};

use crate::lab::{Lab, name, number};
use crate::picokube::Picokube;

use super::objects::{controller_of, stateful_set_with_claims};
use super::stateful_set_tester::SetTester;

/// A set of three pods with claims, and a policy for these.
fn with_policy(policy: &Value) -> Value {
    let mut set = stateful_set_with_claims("ss", 3);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = policy.clone();
    set
}

/// Waits until the claims of these ordinals are there, and no others.
fn wait_for_claims(lab: &Lab<'_>, ordinals: &[i64]) -> Result<()> {
    let wanted: Vec<_> = ordinals.iter().map(|ordinal| format!("data-ss-{ordinal}")).collect();
    lab.wait(&format!("the claims are {wanted:?}"), || {
        let claims = lab.list("persistentvolumeclaims")?;
        Ok(claims.iter().map(name).eq(wanted.iter().map(String::as_str)))
    })
}

fn scale(tester: &SetTester<'_, '_>, replicas: i64) -> Result<()> {
    tester.set_replicas(replicas)?;
    tester.wait_for_replicas(replicas)?;
    tester.wait_for_ready(replicas).map(|_| ())
}

/// Gives the claim of an ordinal to a ConfigMap.
fn give_away(lab: &Lab<'_>, ordinal: i64) -> Result<()> {
    let dummy = lab.create("configmaps", &json!({"metadata": {"name": "dummy-controller"}}))?;
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "dummy-controller",
        "uid": dummy["metadata"]["uid"], "controller": true}]);
    lab.patch(&claim(ordinal), &json!({"metadata": {"ownerReferences": owner}})).map(|_| ())
}

fn claim(ordinal: i64) -> String {
    format!("persistentvolumeclaims/data-ss-{ordinal}")
}

/// should delete PVCs with a WhenDeleted policy
pub fn should_delete_pvcs_with_a_when_deleted_policy(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-when-deleted")?;
    let tester = SetTester::ready(&lab, &with_policy(&json!({"whenDeleted": "Delete"})))?;
    wait_for_claims(&lab, &[0, 1, 2])?;
    lab.delete(&tester.object, "Background")?;
    wait_for_claims(&lab, &[])
}

/// should delete PVCs with a OnScaledown policy
pub fn should_delete_pvcs_with_a_on_scaledown_policy(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-on-scaledown")?;
    let tester = SetTester::ready(&lab, &with_policy(&json!({"whenScaled": "Delete"})))?;
    wait_for_claims(&lab, &[0, 1, 2])?;
    scale(&tester, 1)?;
    wait_for_claims(&lab, &[0])
}

/// should not delete PVC with OnScaledown policy if another controller owns the PVC
pub fn should_not_delete_pvc_with_on_scaledown_policy_if_another_controller_owns_the_pvc(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::new(cluster, "sts-on-scaledown-foreign")?;
    let tester = SetTester::ready(&lab, &with_policy(&json!({})))?;
    give_away(&lab, 1)?;
    tester.patch(
        &json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}),
    )?;
    scale(&tester, 0)?;
    wait_for_claims(&lab, &[1])?;
    lab.patch(&claim(1), &json!({"metadata": {"ownerReferences": null}}))?;
    scale(&tester, 2)?;
    wait_for_claims(&lab, &[0, 1])?;
    scale(&tester, 1)?;
    wait_for_claims(&lab, &[0])
}

/// should delete PVCs after adopting pod (WhenDeleted)
pub fn should_delete_pvcs_after_adopting_pod_when_deleted(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-adopting-when-deleted")?;
    let tester = adopted(&lab, &json!({"whenDeleted": "Delete"}))?;
    lab.wait("the claims are the new set's", || {
        let uid = tester.get()?["metadata"]["uid"].clone();
        let claims = lab.list("persistentvolumeclaims")?;
        Ok(claims.iter().all(|one| controller_of(one).is_some_and(|owner| owner["uid"] == uid)))
    })?;
    lab.delete(&tester.object, "Background")?;
    wait_for_claims(&lab, &[])
}

/// should delete PVCs after adopting pod (WhenScaled)
pub fn should_delete_pvcs_after_adopting_pod_when_scaled(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-adopting-when-scaled")?;
    let tester = adopted(&lab, &json!({"whenScaled": "Delete"}))?;
    scale(&tester, 2)?;
    wait_for_claims(&lab, &[0, 1])
}

/// A set that has adopted the pods and claims of another one of its name.
fn adopted<'l, 'a>(lab: &'l Lab<'a>, policy: &Value) -> Result<SetTester<'l, 'a>> {
    let wanted = with_policy(policy);
    let tester = SetTester::ready(lab, &wanted)?;
    let before = tester.pods()?;
    lab.delete(&tester.object, "Orphan")?;
    lab.wait("the pods are nobody's", || {
        Ok(!lab.has(&tester.object)?
            && tester.pods()?.iter().all(|pod| controller_of(pod).is_none()))
    })?;
    let tester = SetTester::ready(lab, &wanted)?;
    let uids =
        |pods: &[Value]| pods.iter().map(|pod| pod["metadata"]["uid"].clone()).collect::<Vec<_>>();
    assert_eq!(uids(&tester.pods()?), uids(&before), "the pods are others");
    Ok(tester)
}

/// should not delete PVCs when there is another controller
pub fn should_not_delete_pvcs_when_there_is_another_controller(cluster: &Picokube) -> Result<()> {
    let lab = Lab::new(cluster, "sts-another-controller")?;
    let policy = json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
    let tester = SetTester::ready(&lab, &with_policy(&policy))?;
    give_away(&lab, 1)?;
    scale(&tester, 0)?;
    wait_for_claims(&lab, &[1])?;
    let owned = lab.get(&claim(1))?;
    assert_eq!(owned["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    lab.delete(&tester.object, "Foreground")?;
    lab.wait("the set is gone", || Ok(!lab.has(&tester.object)?))?;
    wait_for_claims(&lab, &[1])
}

/// PVC should be recreated when pod is pending due to missing PVC
///
/// Upstream cordons the nodes for it; here nobody runs the pods.
pub fn pvc_should_be_recreated_when_pod_is_pending_due_to_missing_pvc(
    cluster: &Picokube,
) -> Result<()> {
    let lab = Lab::manual(cluster, "sts-missing-pvc")?;
    let mut wanted = stateful_set_with_claims("ss", 1);
    wanted["spec"]["podManagementPolicy"] = json!("Parallel");
    let tester = SetTester::new(&lab, &wanted)?;
    tester.wait_for_replicas(1)?;
    let before = lab.get(&claim(0))?["metadata"]["uid"].clone();
    lab.patch(&claim(0), &json!({"metadata": {"finalizers": null}}))?;
    lab.ask("DELETE", &claim(0), &json!({}))?;
    lab.wait("the claim is gone", || {
        let answer = lab.send("GET", &claim(0), &Value::Null)?;
        Ok(answer.status == 404 || answer.json()?["metadata"]["uid"] != before)
    })?;
    // A claim wakes nobody: as in Kubernetes, a later look at the set finds that it is missing.
    let mut looks = 0;
    lab.wait("there is another claim", || {
        looks += 1;
        let annotation = json!({"metadata": {"annotations": {"look": looks.to_string()}}});
        lab.patch(&tester.pod(0), &annotation)?;
        let answer = lab.send("GET", &claim(0), &Value::Null)?;
        Ok(answer.status == 200 && answer.json()?["metadata"]["uid"] != before)
    })?;
    assert_eq!(number(&tester.get()?["status"]["replicas"]), 1);
    Ok(())
}
