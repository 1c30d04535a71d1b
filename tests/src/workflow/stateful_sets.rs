//! StatefulSets: pods that come, change and go in order.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::kubectl::{Kubectl, has_row};
use crate::lab::Lab;
use crate::picokube::Picokube;
use crate::stateful_set::{DB, create, identities, images, items, rolled_out, set_of, told};

const IMAGE: &str = ".spec.template.spec.containers[0].image";

/// kubectl in a namespace of its own.
fn in_namespace<'a>(cluster: &'a Picokube, namespace: &str) -> Result<Kubectl<'a>> {
    Lab::new(cluster, namespace)?;
    Kubectl::in_namespace(cluster, namespace)
}

/// Create, scale up and down, describe.
pub fn pods_of_a_stateful_set_come_and_go_in_order(cluster: &Picokube) -> Result<()> {
    let kubectl = in_namespace(cluster, "sts-order")?;
    create(&kubectl, &set_of("app:1", 3))?;
    assert_eq!(images(&kubectl)?, ["db-0 app:1", "db-1 app:1", "db-2 app:1"]);
    let table = kubectl.ok(&["get", "sts"])?;
    ensure!(has_row(&table, &["db", "3/3"]), "{table}");
    let hostname = kubectl.field("pod/db-1", ".spec.hostname")?;
    assert_eq!(
        (hostname.as_str(), kubectl.field("pod/db-1", ".spec.subdomain")?.as_str()),
        ("db-1", "db")
    );
    let index = kubectl.ok(&[
        "get",
        "pods",
        "--selector=apps.kubernetes.io/pod-index=2",
        "--output=name",
    ])?;
    assert_eq!(index.trim(), "pod/db-2");

    kubectl.ok(&["scale", DB, "--replicas=4"])?;
    rolled_out(&kubectl)?;
    let of =
        |verb: &str, ordinal: u8| format!("{verb} Pod db-{ordinal} in StatefulSet db successful");
    cluster.wait_until("the events of creation are there", || {
        Ok(told(&kubectl, "SuccessfulCreate")?.len() == 4)
    })?;
    assert_eq!(
        told(&kubectl, "SuccessfulCreate")?,
        [0, 1, 2, 3].map(|ordinal| of("create", ordinal))
    );

    let said = kubectl.ok(&["scale", DB, "--current-replicas=4", "--replicas=1"])?;
    assert_eq!(said.trim(), "statefulset.apps/db scaled");
    cluster.wait_until("the highest have gone", || Ok(images(&kubectl)? == ["db-0 app:1"]))?;
    cluster.wait_until("the events of deletion are there", || {
        Ok(told(&kubectl, "SuccessfulDelete")?.len() == 3)
    })?;
    assert_eq!(told(&kubectl, "SuccessfulDelete")?, [3, 2, 1].map(|ordinal| of("delete", ordinal)));
    let text = kubectl.ok(&["describe", DB])?;
    ensure!(text.contains("delete Pod db-1 in StatefulSet db successful"), "{text}");
    Ok(())
}

/// Of a StatefulSet.
pub fn a_deleted_pod_comes_back_under_its_name(cluster: &Picokube) -> Result<()> {
    let kubectl = in_namespace(cluster, "sts-deleted-pod")?;
    create(&kubectl, &set_of("app:1", 2))?;
    let before = identities(&kubectl, "pods")?;
    kubectl.ok(&["delete", "pod/db-0", "--timeout=10m"])?;
    cluster.wait_until("both are there again", || {
        Ok(identities(&kubectl, "pods")?.len() == 2
            && kubectl.field(DB, ".status.readyReplicas")? == "2")
    })?;
    let after = identities(&kubectl, "pods")?;
    ensure!(after.first() != before.first(), "it is the pod that was deleted: {after:?}");
    assert_eq!(after.last(), before.last());
    Ok(())
}

/// status, history, history --revision, undo, undo --to-revision.
pub fn rollouts_of_a_stateful_set_have_a_history_and_are_undone(cluster: &Picokube) -> Result<()> {
    let kubectl = in_namespace(cluster, "sts-history")?;
    create(&kubectl, &set_of("app:1", 2))?;
    kubectl.ok(&["set", "image", DB, "app=app:2"])?;
    let said = rolled_out(&kubectl)?;
    ensure!(said.contains("2 new pods have been updated"), "{said}");
    assert_eq!(images(&kubectl)?, ["db-0 app:2", "db-1 app:2"]);
    // The highest goes first.
    cluster.wait_until("the events of deletion are there", || {
        Ok(told(&kubectl, "SuccessfulDelete")?.len() == 2)
    })?;
    let first = told(&kubectl, "SuccessfulDelete")?.into_iter().next();
    assert_eq!(first.as_deref(), Some("delete Pod db-1 in StatefulSet db successful"));

    let history = kubectl.ok(&["rollout", "history", DB])?;
    ensure!(has_row(&history, &["1"]) && has_row(&history, &["2"]), "{history}");
    let of_first = kubectl.ok(&["rollout", "history", DB, "--revision=1"])?;
    ensure!(of_first.contains("app:1"), "{of_first}");
    cluster.wait_until("the update is complete", || {
        let revision = |which: &str| kubectl.field(DB, &format!(".status.{which}Revision"));
        Ok(revision("current")? == revision("update")?)
    })?;

    let said = kubectl.ok(&["rollout", "undo", DB])?;
    assert_eq!(said.trim(), "statefulset.apps/db rolled back");
    assert_eq!(kubectl.field(DB, IMAGE)?, "app:1");
    rolled_out(&kubectl)?;
    assert_eq!(images(&kubectl)?, ["db-0 app:1", "db-1 app:1"]);
    // The first revision is the latest again, under its own name.
    let revisions = items(&kubectl, "controllerrevisions")?;
    let mut numbers: Vec<_> = revisions.iter().filter_map(|one| one["revision"].as_i64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
    // Back to where it is changes nothing. kubectl notices only if its own version encodes templates so.
    let generation = kubectl.field(DB, ".metadata.generation")?;
    kubectl.ok(&["rollout", "undo", DB, "--to-revision=3"])?;
    assert_eq!(kubectl.field(DB, ".metadata.generation")?, generation);
    Ok(())
}

/// rollout restart.
pub fn restart_replaces_every_pod_of_a_stateful_set(cluster: &Picokube) -> Result<()> {
    let kubectl = in_namespace(cluster, "sts-restart")?;
    create(&kubectl, &set_of("app:1", 2))?;
    let before = identities(&kubectl, "pods")?;
    let said = kubectl.ok(&["rollout", "restart", DB])?;
    assert_eq!(said.trim(), "statefulset.apps/db restarted");
    rolled_out(&kubectl)?;
    let after = identities(&kubectl, "pods")?;
    assert_eq!(images(&kubectl)?, ["db-0 app:1", "db-1 app:1"]);
    ensure!(after.iter().all(|pod| !before.contains(pod)), "{before:?} became {after:?}");
    Ok(())
}

/// An update that reaches the highest ordinals only, until the partition is moved.
pub fn a_partition_makes_a_canary(cluster: &Picokube) -> Result<()> {
    let kubectl = in_namespace(cluster, "sts-canary")?;
    create(&kubectl, &set_of("app:1", 3))?;
    let partition = |at: u8| {
        let strategy = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": at}}}});
        kubectl.ok(&["patch", DB, "--patch", &strategy.to_string()])
    };
    partition(2)?;
    kubectl.ok(&["set", "image", DB, "app=app:2"])?;
    let said = rolled_out(&kubectl)?;
    ensure!(said.contains("1 new pods have been updated"), "{said}");
    let canary = ["db-0 app:1", "db-1 app:1", "db-2 app:2"];
    assert_eq!(images(&kubectl)?, canary);
    // Below the partition a pod comes back as it was.
    let before = identities(&kubectl, "pods")?;
    kubectl.ok(&["delete", "pod/db-0", "--timeout=10m"])?;
    cluster.wait_until("it is back", || {
        let pods = identities(&kubectl, "pods")?;
        Ok(pods.len() == 3 && pods != before)
    })?;
    assert_eq!(images(&kubectl)?, canary);

    partition(0)?;
    rolled_out(&kubectl)?;
    assert_eq!(images(&kubectl)?, ["db-0 app:2", "db-1 app:2", "db-2 app:2"]);
    Ok(())
}

/// delete --cascade=orphan, and a set of the same name afterwards.
pub fn pods_left_behind_by_a_stateful_set_are_adopted(cluster: &Picokube) -> Result<()> {
    let kubectl = in_namespace(cluster, "sts-adoption")?;
    let set = set_of("app:1", 2);
    create(&kubectl, &set)?;
    let kinds = ["pods", "controllerrevisions"];
    let before = kinds.map(|kind| identities(&kubectl, kind).ok());
    kubectl.ok(&["delete", DB, "--cascade=orphan", "--timeout=10m"])?;
    let owners = |kind: &str| -> Result<usize> {
        let all = items(&kubectl, kind)?;
        let owned = all.iter().filter(|one| one["metadata"].get("ownerReferences").is_some());
        Ok(owned.count())
    };
    for kind in kinds {
        cluster.wait_until("nobody owns them", || Ok(owners(kind)? == 0))?;
    }
    create(&kubectl, &set)?;
    cluster.wait_until("they are owned again", || {
        Ok(owners("pods")? == 2 && owners("controllerrevisions")? == 1)
    })?;
    assert_eq!(kinds.map(|kind| identities(&kubectl, kind).ok()), before);
    assert_eq!(kubectl.field(DB, ".status.readyReplicas")?, "2");
    kubectl.ok(&["delete", DB, "--cascade=foreground", "--timeout=10m"])?;
    for kind in kinds {
        assert_eq!(identities(&kubectl, kind)?, Vec::<String>::new());
    }
    Ok(())
}
