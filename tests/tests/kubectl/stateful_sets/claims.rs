//! The claims of StatefulSets: made, bound, kept, or deleted.

use anyhow::{Result, ensure};
use picokube_tests::kubectl::Kubectl;
use picokube_tests::lab::{condition, text};
use picokube_tests::stateful_set::{
    DB, claim_spec, create, identities, images, items, manifest, rolled_out,
};
use serde_json::{Value, json};

use super::cluster;
use picokube_tests::kubectl::has_row;

const NONE: [&str; 0] = [];

/// A set of two pods with a claim each and a policy for them.
fn with_policy(when_deleted: &str, when_scaled: &str) -> Value {
    let mut set = manifest("app:1");
    set["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenDeleted": when_deleted, "whenScaled": when_scaled});
    set
}

/// Whose each claim is: the kinds of its owners, by the name of the claim.
fn owners(kubectl: &Kubectl<'_>) -> Result<Vec<String>> {
    let claims = items(kubectl, "pvc")?;
    let owners = claims.iter().map(|claim| {
        let owners = claim["metadata"]["ownerReferences"].as_array();
        let kinds = owners.into_iter().flatten().map(|owner| text(&owner["kind"]));
        kinds.collect::<Vec<_>>().join(" ")
    });
    Ok(owners.collect())
}

#[test]
fn claims_are_made_bound_and_kept() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    create(&kubectl, &manifest("app:1"))?;
    let table = kubectl.ok(&["get", "pvc"])?;
    for claim in ["data-db-0", "data-db-1"] {
        ensure!(has_row(&table, &[claim, "Bound"]), "{table}");
    }
    let labelled = kubectl.ok(&["get", "pvc", "--selector=app=db", "--output=name"])?;
    assert_eq!(labelled.lines().count(), 2, "{labelled}");
    let volume = ".spec.volumes[?(@.name==\"data\")].persistentVolumeClaim.claimName";
    assert_eq!(kubectl.field("pod/db-1", volume)?, "data-db-1");
    assert_eq!(owners(&kubectl)?, ["", ""]);
    let before = identities(&kubectl, "pvc")?;

    kubectl.ok(&["scale", DB, "--replicas=1"])?;
    cluster.wait_until("one pod is left", || Ok(images(&kubectl)?.len() == 1))?;
    assert_eq!(identities(&kubectl, "pvc")?, before);
    kubectl.ok(&["delete", DB, "--cascade=foreground", "--timeout=10m"])?;
    assert_eq!(images(&kubectl)?, NONE);
    assert_eq!(identities(&kubectl, "pvc")?, before);
    // Nobody owns them, so nothing will delete them either; pods of the same names find them.
    assert_eq!(owners(&kubectl)?, ["", ""]);
    create(&kubectl, &manifest("app:1"))?;
    assert_eq!(identities(&kubectl, "pvc")?, before);
    Ok(())
}

#[test]
fn claims_go_with_the_pods_that_are_scaled_away() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    create(&kubectl, &with_policy("Retain", "Delete"))?;
    let before = identities(&kubectl, "pvc")?;
    assert_eq!(owners(&kubectl)?, ["", ""]);
    kubectl.ok(&["scale", DB, "--replicas=1"])?;
    cluster.wait_until("its claim has gone with the pod", || {
        Ok(identities(&kubectl, "pvc")?.len() == 1 && images(&kubectl)?.len() == 1)
    })?;
    assert_eq!(identities(&kubectl, "pvc")?.first(), before.first());
    kubectl.ok(&["scale", DB, "--replicas=2"])?;
    rolled_out(&kubectl)?;
    let after = identities(&kubectl, "pvc")?;
    assert_eq!((after.len(), after.first()), (2, before.first()));
    ensure!(after.last() != before.last(), "it is the claim that was deleted: {after:?}");
    // The set goes without its claims.
    kubectl.ok(&["delete", DB, "--cascade=foreground", "--timeout=10m"])?;
    assert_eq!(identities(&kubectl, "pvc")?, after);
    assert_eq!(owners(&kubectl)?, ["", ""]);
    Ok(())
}

#[test]
fn claims_go_with_the_set() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    create(&kubectl, &with_policy("Delete", "Retain"))?;
    cluster.wait_until("they are the set's", || Ok(owners(&kubectl)? == ["StatefulSet"; 2]))?;
    kubectl.ok(&["scale", DB, "--replicas=1"])?;
    cluster.wait_until("one pod is left", || Ok(images(&kubectl)?.len() == 1))?;
    assert_eq!(owners(&kubectl)?, ["StatefulSet"; 2]);
    kubectl.ok(&["delete", DB, "--timeout=10m"])?;
    cluster.wait_until("nothing is left", || {
        Ok(identities(&kubectl, "pvc")?.is_empty() && images(&kubectl)?.is_empty())
    })
}

#[test]
fn the_policy_may_change() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    create(&kubectl, &with_policy("Delete", "Delete"))?;
    cluster.wait_until("they are the set's", || Ok(owners(&kubectl)? == ["StatefulSet"; 2]))?;
    let policy = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
    let patch = json!({"spec": {"persistentVolumeClaimRetentionPolicy": policy}});
    kubectl.ok(&["patch", DB, "--patch", &patch.to_string()])?;
    cluster.wait_until("they are nobody's", || Ok(owners(&kubectl)? == ["", ""]))
}

#[test]
fn a_pod_whose_claim_is_never_bound_stays_pending() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    let mut set = manifest("app:1");
    let mut spec = claim_spec();
    spec["storageClassName"] = json!("never");
    set["spec"]["volumeClaimTemplates"][0]["spec"] = spec;
    kubectl.ok_with(&["create", "--filename=-"], &set.to_string())?;
    cluster.wait_until("the scheduler has looked at its pod", || {
        let pods = items(&kubectl, "pods")?;
        Ok(pods.iter().any(|pod| condition(pod, "PodScheduled")["reason"] == "Unschedulable"))
    })?;
    cluster.wait_until("its status tells of the pod", || {
        Ok(kubectl.field(DB, ".status.replicas")? == "1")
    })?;
    // The next comes only when this one is ready.
    assert_eq!(images(&kubectl)?, ["db-0 app:1"]);
    assert_eq!(kubectl.field("pod/db-0", ".status.phase")?, "Pending");
    let table = kubectl.ok(&["get", "pvc"])?;
    ensure!(has_row(&table, &["data-db-0", "Pending"]) && !table.contains("data-db-1"), "{table}");
    let table = kubectl.ok(&["get", "sts"])?;
    ensure!(has_row(&table, &["db", "0/2"]), "{table}");
    Ok(())
}
