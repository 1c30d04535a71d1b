//! Deletion: grace, finalizers and preconditions.

use super::*;

fn bound(cluster: &mut Cluster, name: &str) {
    cluster.make(PODS, pod(name));
    let binding = json!({"metadata": {"name": name}, "target": {"name": "node-1"}});
    assert_eq!(cluster.post(&format!("{PODS}/{name}/binding"), binding).0, 201);
}

#[test]
fn a_pod_on_a_node_gets_its_grace_period() {
    let mut cluster = Cluster::new();
    bound(&mut cluster, "a");
    let path = format!("{PODS}/a");
    let (status, pending) = cluster.delete(&path, json!({}));
    assert_eq!(status, 200);
    assert_eq!(pending["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(pending["metadata"]["deletionTimestamp"], "2025-11-16T00:40:30Z");
    assert_eq!(pending["metadata"]["generation"], 2);
    let (_, longer) = cluster.delete(&path, json!({"gracePeriodSeconds": 60}));
    assert_eq!(longer, pending, "a grace period never grows");
    cluster.advance(2);
    let (_, shorter) = cluster.delete(&path, json!({"gracePeriodSeconds": 10}));
    assert_eq!(shorter["metadata"]["deletionTimestamp"], "2025-11-16T00:40:10Z");
    assert_eq!(
        cluster.post(PODS, pod("a")).1["message"],
        "object is being deleted: pods \"a\" already exists"
    );
    assert_eq!(cluster.delete(&path, json!({"gracePeriodSeconds": 0})).0, 200);
    assert_eq!(cluster.get(&path).0, 404);
}

#[test]
fn a_pod_without_a_node_goes_at_once_in_two_events() {
    let mut cluster = Cluster::new();
    cluster.make(PODS, pod("a"));
    let version = cluster.server.store().revision();
    let path = format!("{PODS}?watch=1&resourceVersion={version}");
    let mut watch = cluster.watch(&path).ok().unwrap();
    cluster.delete(&format!("{PODS}/a"), json!({}));
    assert_eq!(watch.summary(&cluster), ["MODIFIED a", "DELETED a"]);
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_gone() {
    let mut cluster = Cluster::new();
    let mut object = config_map("c");
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    cluster.make(CONFIG_MAPS, object);
    let path = format!("{CONFIG_MAPS}/c");
    let (status, pending) = cluster.delete(&path, json!({}));
    assert_eq!(
        (status, pending["metadata"]["deletionGracePeriodSeconds"].clone()),
        (200, json!(0))
    );
    let add = json!({"metadata": {"finalizers": ["example.com/one", "example.com/new"]}});
    assert_eq!(cluster.merge(&path, add).0, 422, "no new finalizers on the way out");
    let keep_one = json!({"metadata": {"finalizers": ["example.com/two"]}});
    assert_eq!(cluster.merge(&path, keep_one).0, 200);
    assert_eq!(cluster.get(&path).0, 200);
    assert_eq!(cluster.merge(&path, json!({"metadata": {"finalizers": null}})).0, 200);
    assert_eq!(cluster.get(&path).0, 404);
}

#[test]
fn preconditions_have_to_hold() {
    let mut cluster = Cluster::new();
    let made = cluster.make(CONFIG_MAPS, config_map("c"));
    let path = format!("{CONFIG_MAPS}/c");
    let with = |preconditions: Value| json!({"preconditions": preconditions});
    assert_eq!(cluster.delete(&path, with(json!({"uid": "other"}))).0, 409);
    assert_eq!(cluster.delete(&path, with(json!({"resourceVersion": "1"}))).0, 409);
    let uid = made["metadata"]["uid"].clone();
    let (status, success) = cluster.delete(&path, with(json!({"uid": uid})));
    assert_eq!((status, success["status"].as_str()), (200, Some("Success")));
    assert_eq!(success["details"]["uid"], uid);
    assert_eq!(cluster.delete(&path, json!({})).0, 404);
}

#[test]
fn a_collection_is_deleted_by_selector() {
    let mut cluster = Cluster::new();
    for name in ["a", "b", "c"] {
        cluster.make(PODS, pod(name));
    }
    cluster.merge(&format!("{PODS}/b"), json!({"metadata": {"labels": {"app": "db"}}}));
    assert_eq!(cluster.delete(&format!("{PODS}?labelSelector=app%3Dweb"), json!({})).0, 200);
    assert_eq!(cluster.names(PODS), ["b"]);
}

#[test]
fn an_eviction_is_a_deletion() {
    let mut cluster = Cluster::new();
    bound(&mut cluster, "a");
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    assert_eq!(cluster.post(&format!("{PODS}/a/eviction"), eviction.clone()).0, 201);
    assert!(cluster.get(&format!("{PODS}/a")).1["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(cluster.post(&format!("{PODS}/none/eviction"), eviction).0, 400);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let mut cluster = Cluster::new();
    cluster.make(CONFIG_MAPS, config_map("c"));
    let path = format!("{CONFIG_MAPS}/c");
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    assert_eq!(cluster.delete(&path, both).0, 422);
    assert_eq!(cluster.delete(&path, json!({"propagationPolicy": "Sideways"})).0, 422);
}
