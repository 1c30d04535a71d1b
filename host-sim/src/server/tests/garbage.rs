//! Owners and dependents.

use super::*;

/// A Deployment with a ReplicaSet with two pods.
fn family() -> Cluster {
    let mut cluster = Cluster::new();
    let deployment = cluster.make(DEPLOYMENTS, deployment("web"));
    let replica_set = cluster.make(REPLICA_SETS, owned(replica_set("web-1"), &deployment));
    for name in ["p1", "p2"] {
        cluster.make(PODS, owned(pod(name), &replica_set));
    }
    cluster.settle();
    assert_eq!(cluster.names(PODS).len(), 2);
    cluster
}

fn bind(cluster: &mut Cluster, name: &str) {
    let binding = json!({"metadata": {"name": name}, "target": {"name": "n"}});
    assert_eq!(cluster.post(&format!("{PODS}/{name}/binding"), binding).0, 201);
}

#[test]
fn in_the_background_dependents_follow() {
    let mut cluster = family();
    let (status, _) =
        cluster.delete(&format!("{DEPLOYMENTS}/web"), json!({"propagationPolicy": "Background"}));
    assert_eq!(status, 200);
    assert_eq!(cluster.get(&format!("{DEPLOYMENTS}/web")).0, 404);
    cluster.settle();
    assert!(cluster.names(REPLICA_SETS).is_empty() && cluster.names(PODS).is_empty());
}

#[test]
fn each_generation_follows_after_a_while() {
    let mut cluster = family();
    cluster.server.delay_garbage_collection(20);
    cluster.delete(&format!("{DEPLOYMENTS}/web"), json!({"propagationPolicy": "Background"}));
    let start = cluster.now;
    for (millis, replica_sets, pods) in [(19, 1, 2), (20, 0, 2), (39, 0, 2), (40, 0, 0)] {
        cluster.server.settle(start.plus_millis(millis));
        let there = (cluster.names(REPLICA_SETS).len(), cluster.names(PODS).len());
        assert_eq!(there, (replica_sets, pods), "after {millis} ms");
    }
}

#[test]
fn in_the_foreground_the_owner_goes_last() {
    let mut cluster = family();
    bind(&mut cluster, "p1");
    cluster.delete(&format!("{DEPLOYMENTS}/web"), json!({"propagationPolicy": "Foreground"}));
    cluster.settle();
    let (_, waiting) = cluster.get(&format!("{DEPLOYMENTS}/web"));
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let (_, waiting) = cluster.get(&format!("{REPLICA_SETS}/web-1"));
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(cluster.names(PODS), ["p1"], "its node has not stopped it yet");
    cluster.delete(&format!("{PODS}/p1"), json!({"gracePeriodSeconds": 0}));
    cluster.settle();
    assert!(cluster.names(REPLICA_SETS).is_empty() && cluster.names(DEPLOYMENTS).is_empty());
}

#[test]
fn orphans_stay_without_their_owner() {
    let mut cluster = family();
    cluster.delete(&format!("{DEPLOYMENTS}/web"), json!({"propagationPolicy": "Orphan"}));
    cluster.settle();
    assert!(cluster.names(DEPLOYMENTS).is_empty());
    let (_, orphan) = cluster.get(&format!("{REPLICA_SETS}/web-1"));
    assert!(orphan["metadata"]["ownerReferences"].is_null());
    assert_eq!(cluster.names(PODS).len(), 2);
}

/// An owner with two pods.
fn owner_of_two(collection: &str, owner: Value) -> Cluster {
    let mut cluster = Cluster::new();
    let owner = cluster.make(collection, owner);
    for name in ["p1", "p2"] {
        cluster.make(PODS, owned(pod(name), &owner));
    }
    cluster.settle();
    assert_eq!(cluster.names(PODS).len(), 2);
    cluster
}

#[test]
fn a_deletion_does_with_the_pods_what_it_says_or_what_the_kind_has_always_done() {
    let owners = [
        (REPLICA_SETS, replica_set("web"), false),
        (CONTROLLERS, replication_controller("web"), true),
    ];
    for (collection, owner, orphans_by_default) in owners {
        let cases = [
            (json!({}), orphans_by_default),
            (json!({"propagationPolicy": "Background"}), false),
            (json!({"propagationPolicy": "Foreground"}), false),
            (json!({"propagationPolicy": "Orphan"}), true),
            (json!({"orphanDependents": true}), true),
            (json!({"orphanDependents": false}), false),
        ];
        for (options, stay) in cases {
            // The collection is deleted like one object.
            for path in [format!("{collection}/web"), collection.to_owned()] {
                let mut cluster = owner_of_two(collection, owner.clone());
                let (status, answer) = cluster.delete(&path, options.clone());
                assert!(matches!(status, 200 | 202), "{path} {options}: {answer}");
                cluster.settle();
                assert!(cluster.names(collection).is_empty(), "{path} {options}");
                let (_, pods) = cluster.get(PODS);
                let pods = pods["items"].as_array().unwrap();
                assert_eq!(pods.len(), if stay { 2 } else { 0 }, "{path} {options}");
                let released = |p: &Value| p["metadata"].get("ownerReferences").is_none();
                assert!(pods.iter().all(released), "{path} {options}");
            }
        }
    }
}

#[test]
fn a_finalizer_says_what_becomes_of_the_pods_when_the_deletion_does_not() {
    for (finalizer, stay) in
        [("foregroundDeletion", false), ("orphan", true), ("example.com/hold", true)]
    {
        let mut owner = replication_controller("web");
        owner["metadata"]["finalizers"] = json!([finalizer]);
        let mut cluster = owner_of_two(CONTROLLERS, owner);
        let path = format!("{CONTROLLERS}/web");
        let (_, pending) = cluster.delete(&path, json!({}));
        let wanted = match finalizer {
            "example.com/hold" => json!([finalizer, "orphan"]),
            _ => json!([finalizer]),
        };
        assert_eq!(pending["metadata"]["finalizers"], wanted);
        cluster.settle();
        assert_eq!(cluster.names(PODS).len(), if stay { 2 } else { 0 }, "{finalizer}");
    }
}

#[test]
fn a_namespace_that_goes_takes_the_pods_of_its_replication_controllers_along() {
    let mut cluster = owner_of_two(CONTROLLERS, replication_controller("web"));
    let namespace = "/api/v1/namespaces/lab";
    cluster.make("/api/v1/namespaces", json!({"metadata": {"name": "lab"}}));
    let controllers = format!("{namespace}/replicationcontrollers");
    let owner = cluster.make(&controllers, replication_controller("web"));
    cluster.make(&format!("{namespace}/pods"), owned(pod("p1"), &owner));
    cluster.delete(namespace, json!({}));
    cluster.settle();
    assert_eq!(cluster.get(namespace).0, 404);
    assert_eq!(cluster.names(PODS).len(), 2, "those of another namespace stay");
}

#[test]
fn a_replication_controller_waits_in_the_foreground_for_its_pods() {
    let mut cluster = owner_of_two(CONTROLLERS, replication_controller("web"));
    bind(&mut cluster, "p1");
    let path = format!("{CONTROLLERS}/web");
    cluster.delete(&path, json!({"propagationPolicy": "Foreground"}));
    cluster.settle();
    let (_, waiting) = cluster.get(&path);
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(cluster.names(PODS), ["p1"], "its node has not stopped it yet");
    cluster.delete(&format!("{PODS}/p1"), json!({"gracePeriodSeconds": 0}));
    cluster.settle();
    assert!(cluster.names(CONTROLLERS).is_empty());
}

#[test]
fn an_object_with_another_owner_only_loses_the_reference() {
    let mut cluster = Cluster::new();
    let gone = cluster.make(CONFIG_MAPS, config_map("gone"));
    let stays = cluster.make(CONFIG_MAPS, config_map("stays"));
    let mut both = owned(config_map("child"), &gone);
    let second = owned(config_map("x"), &stays)["metadata"]["ownerReferences"][0].clone();
    both["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    both["metadata"]["ownerReferences"].as_array_mut().unwrap().push(second);
    cluster.make(CONFIG_MAPS, both);
    cluster.delete(&format!("{CONFIG_MAPS}/gone"), json!({}));
    cluster.settle();
    let (_, child) = cluster.get(&format!("{CONFIG_MAPS}/child"));
    let references = child["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    assert_eq!(references.len(), 1);
    assert_eq!(references[0]["uid"], stays["metadata"]["uid"]);
}

#[test]
fn an_owner_of_the_same_name_but_another_uid_is_no_owner() {
    let mut cluster = Cluster::new();
    let mut owner = cluster.make(CONFIG_MAPS, config_map("owner"));
    owner["metadata"]["uid"] = json!("11111111-1111-4111-8111-111111111111");
    cluster.make(CONFIG_MAPS, owned(config_map("child"), &owner));
    cluster.settle();
    assert_eq!(cluster.get(&format!("{CONFIG_MAPS}/child")).0, 404);
}

#[test]
fn an_owner_in_another_namespace_is_no_owner_and_that_is_told() {
    let mut cluster = Cluster::new();
    let owner = cluster.make("/api/v1/namespaces/kube-system/configmaps", config_map("owner"));
    let child = cluster.make(CONFIG_MAPS, owned(config_map("child"), &owner));
    cluster.settle();
    assert_eq!(cluster.get(&format!("{CONFIG_MAPS}/child")).0, 404);
    let (_, events) = cluster.get("/api/v1/namespaces/default/events");
    let [event] = events["items"].as_array().unwrap().as_slice() else { panic!("{events}") };
    assert_eq!(
        (&event["type"], &event["reason"]),
        (&json!("Warning"), &json!("OwnerRefInvalidNamespace"))
    );
    assert_eq!(event["involvedObject"]["uid"], child["metadata"]["uid"]);
    let uid = owner["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        event["message"],
        format!(
            "ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] does not exist \
             in namespace \"default\""
        )
    );
}

#[test]
fn an_owner_of_an_unknown_kind_may_well_exist() {
    let mut cluster = Cluster::new();
    let owner = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"},
    });
    cluster.make(CONFIG_MAPS, owned(config_map("child"), &owner));
    cluster.settle();
    assert_eq!(cluster.get(&format!("{CONFIG_MAPS}/child")).0, 200);
}
