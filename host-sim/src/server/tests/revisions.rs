//! Tests of ControllerRevisions: what controllers keep of the past.

use super::*;

const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";

fn revision(name: &str, number: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"name": name, "labels": {"app": "db", "controller.kubernetes.io/hash": name}},
        "data": {"spec": {"template": {"$patch": "replace", "spec": {"any": [{"thing": null}]}}}},
        "revision": number,
    })
}

#[test]
fn a_revision_holds_any_object_and_keeps_it() {
    let mut cluster = Cluster::new();
    let made = cluster.make(REVISIONS, revision("db-1", 1));
    assert_eq!(made["data"], revision("db-1", 1)["data"]);
    let path = format!("{REVISIONS}/db-1");
    let mut next = made.clone();
    next["revision"] = json!(3);
    let (status, next) = cluster.put(&path, next);
    assert_eq!((status, &next["revision"]), (200, &json!(3)));
    let mut changed = next.clone();
    changed["data"] = json!({"a": 1});
    let (status, refused) = cluster.put(&path, changed);
    assert_eq!(status, 422);
    assert_eq!(
        refused["message"],
        "ControllerRevision.apps \"db-1\" is invalid: data: Invalid value: {\"a\":1}: field is \
         immutable"
    );
    let (status, refused) = cluster.merge(&path, json!({"revision": -1}));
    assert_eq!(status, 422);
    assert_eq!(
        refused["message"],
        "ControllerRevision.apps \"db-1\" is invalid: revision: Invalid value: -1: must be greater \
         than or equal to 0"
    );
}

#[test]
fn a_revision_is_adopted_and_released_by_patches() {
    let mut cluster = Cluster::new();
    let set = cluster.make(STATEFUL_SETS, stateful_set("db"));
    let made = cluster.make(REVISIONS, revision("db-1", 1));
    let path = format!("{REVISIONS}/db-1");
    let uid = &made["metadata"]["uid"];
    let adopt = json!({"metadata": {"uid": uid, "ownerReferences": [{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db",
        "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]}});
    for patch in [adopt.clone(), adopt] {
        let (status, adopted) = cluster.strategic(&path, patch);
        assert_eq!(status, 200, "{adopted}");
        assert_eq!(adopted["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
        assert_eq!(adopted["data"], made["data"]);
    }
    let release = json!({"metadata": {"uid": uid, "ownerReferences": [
        {"$patch": "delete", "uid": set["metadata"]["uid"]}]}});
    let (status, released) = cluster.strategic(&path, release);
    assert_eq!(status, 200, "{released}");
    assert!(released["metadata"]["ownerReferences"].is_null());
    let other = json!({"metadata": {"uid": "other", "labels": {"a": "b"}}});
    assert_eq!(cluster.strategic(&path, other).0, 409);
}

#[test]
fn revisions_are_found_and_deleted_by_their_labels_and_go_with_their_owner() {
    let mut cluster = Cluster::new();
    let set = cluster.make(STATEFUL_SETS, stateful_set("db"));
    cluster.make(REVISIONS, owned(revision("db-1", 1), &set));
    cluster.make(REVISIONS, owned(revision("db-2", 2), &set));
    cluster.make(REVISIONS, revision("db-3", 3));
    let mut other = revision("web-1", 1);
    other["metadata"]["labels"]["app"] = json!("web");
    cluster.make(REVISIONS, other);
    let of_db = format!("{REVISIONS}?labelSelector=app%3Ddb");
    assert_eq!(cluster.names(&of_db), ["db-1", "db-2", "db-3"]);
    cluster.delete(&format!("{STATEFUL_SETS}/db"), json!({"propagationPolicy": "Background"}));
    cluster.settle();
    assert_eq!(cluster.names(REVISIONS), ["db-3", "web-1"]);
    assert_eq!(cluster.delete(&of_db, json!({})).0, 200);
    assert_eq!(cluster.names(REVISIONS), ["web-1"]);
}
