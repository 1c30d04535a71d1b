//! Pods that never become ready hold up the update that would mend them, unless the set says otherwise
//! (kubernetes/kubernetes#67250).

use anyhow::{Result, ensure};
use picokube_tests::kubectl::Kubectl;
use picokube_tests::picokube::Picokube;
use picokube_tests::stateful_set::{DB, create, identities, images, items, rolled_out, set_of};

use super::cluster;

const ANNOTATE: [&str; 3] = ["annotate", DB, "picokube.dev/replace-broken-pods=true"];

/// Waits until the pod of an ordinal is there with an image that it cannot pull.
fn wait_until_broken(cluster: &Picokube, kubectl: &Kubectl<'_>, pod: &str) -> Result<()> {
    cluster.wait_until("its image cannot be pulled", || {
        let reason = ".status.containerStatuses[0].state.waiting.reason";
        let path = format!("--output=jsonpath={{{reason}}}");
        let said = kubectl.ok(&["get", pod, "--ignore-not-found", &path])?;
        Ok(said == "ImagePullBackOff")
    })
}

/// Waits until the controller has acted on the latest template: it says so after it has deleted what it does.
fn wait_until_observed(cluster: &Picokube, kubectl: &Kubectl<'_>) -> Result<()> {
    cluster.wait_until("the set is observed", || {
        let generation = kubectl.field(DB, ".metadata.generation")?;
        Ok(kubectl.field(DB, ".status.observedGeneration")? == generation)
    })
}

fn are_going(kubectl: &Kubectl<'_>) -> Result<bool> {
    let pods = items(kubectl, "pods")?;
    Ok(pods.iter().any(|pod| !pod["metadata"]["deletionTimestamp"].is_null()))
}

#[test]
fn a_broken_pod_stays_until_it_may_be_replaced() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    kubectl.ok_with(&["create", "--filename=-"], &set_of("app:bad", 2).to_string())?;
    wait_until_broken(&cluster, &kubectl, "pod/db-0")?;
    let broken = identities(&kubectl, "pods")?;

    kubectl.ok(&["set", "image", DB, "app=app:2"])?;
    wait_until_observed(&cluster, &kubectl)?;
    assert_eq!(identities(&kubectl, "pods")?, broken);
    ensure!(!are_going(&kubectl)?, "it is being deleted");
    assert_eq!(images(&kubectl)?, ["db-0 app:bad"]);

    kubectl.ok(&ANNOTATE)?;
    rolled_out(&kubectl)?;
    assert_eq!(images(&kubectl)?, ["db-0 app:2", "db-1 app:2"]);
    Ok(())
}

#[test]
fn without_the_annotation_somebody_deletes_it() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    kubectl.ok_with(&["create", "--filename=-"], &set_of("app:never-ready", 1).to_string())?;
    cluster.wait_until("its pod runs", || {
        let pods = items(&kubectl, "pods")?;
        Ok(pods.iter().any(|pod| pod["status"]["phase"] == "Running"))
    })?;
    kubectl.ok(&["set", "image", DB, "app=app:2"])?;
    wait_until_observed(&cluster, &kubectl)?;
    assert_eq!(images(&kubectl)?, ["db-0 app:never-ready"]);
    ensure!(!are_going(&kubectl)?, "it is being deleted");
    kubectl.ok(&["delete", "pod/db-0", "--timeout=10m"])?;
    rolled_out(&kubectl)?;
    assert_eq!(images(&kubectl)?, ["db-0 app:2"]);
    Ok(())
}

#[test]
fn a_bad_update_is_mended_by_the_next() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    create(&kubectl, &set_of("app:1", 3))?;
    kubectl.ok(&ANNOTATE)?;
    let before = identities(&kubectl, "pods")?;
    kubectl.ok(&["set", "image", DB, "app=app:bad"])?;
    wait_until_broken(&cluster, &kubectl, "pod/db-2")?;
    // A pod of the latest revision is not replaced, however broken; those that are ready stay as well.
    assert_eq!(images(&kubectl)?, ["db-0 app:1", "db-1 app:1", "db-2 app:bad"]);
    assert_eq!(identities(&kubectl, "pods")?[..2], before[..2]);
    kubectl.ok(&["rollout", "undo", DB])?;
    rolled_out(&kubectl)?;
    assert_eq!(images(&kubectl)?, ["db-0 app:1", "db-1 app:1", "db-2 app:1"]);
    assert_eq!(identities(&kubectl, "pods")?[..2], before[..2], "a ready pod was replaced");
    Ok(())
}
