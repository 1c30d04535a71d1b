//! Pods that come, change and go in order.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{DB, cluster, create, identities, images, items, rolled_out, set_of, told};
use crate::has_row;

const IMAGE: &str = ".spec.template.spec.containers[0].image";

#[test]
fn pods_come_and_go_in_order() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
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

#[test]
fn a_deleted_pod_comes_back_under_its_name() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
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

#[test]
fn rollouts_have_a_history_and_are_undone() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
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

#[test]
fn restart_replaces_every_pod() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
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

#[test]
fn a_partition_makes_a_canary() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
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

#[test]
fn pods_left_behind_are_adopted() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
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

#[test]
fn revisions_of_kubernetes_own_controller_are_taken_over() -> Result<()> {
    let cluster = cluster()?;
    let kubectl = cluster.kubectl()?;
    let set = set_of("app:1", 1);
    // What its encoding looks like, with a name that ours would not give.
    let would_be = ["create", "--dry-run=server", "--output=json", "--filename=-"];
    let stored: Value = serde_json::from_str(&kubectl.ok_with(&would_be, &set.to_string())?)?;
    let mut template = stored["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    template["metadata"]["creationTimestamp"] = json!(null);
    let revision = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "db-6b5d4b7c4d", "labels": {"app": "db"}},
        "data": {"spec": {"template": template}},
        "revision": 7,
    });
    cluster.create(super::REVISIONS, &revision)?;
    create(&kubectl, &set)?;
    assert_eq!(kubectl.field(DB, ".status.updateRevision")?, "db-6b5d4b7c4d");
    assert_eq!(identities(&kubectl, "controllerrevisions")?.len(), 1);
    let owner = ".metadata.ownerReferences[0].name";
    assert_eq!(kubectl.field("controllerrevision/db-6b5d4b7c4d", owner)?, "db");
    Ok(())
}
