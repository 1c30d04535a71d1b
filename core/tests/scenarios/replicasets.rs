//! ReplicaSets on their own: pods adopted, released, replaced, chosen for deletion.

use serde_json::{Value, json};

use crate::cluster::{Accident, Cluster, with_cluster};
use crate::user::replica_set;

fn pod(name: &str, app: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "app", "image": "app:v1"}]}})
}

fn owner(cluster: &Cluster<'_>, pod: &str) -> Value {
    cluster.server.get("pods", pod).unwrap()["metadata"]["ownerReferences"][0]["name"].clone()
}

fn status(cluster: &Cluster<'_>) -> Value {
    cluster.server.get("replicasets", "db").unwrap()["status"].clone()
}

#[test]
fn orphans_that_match_are_adopted_and_others_left_alone() {
    with_cluster(|cluster| {
        cluster.create("pods", pod("lost", "db"));
        cluster.create("pods", pod("stranger", "web"));
        let mut owned = pod("taken", "db");
        owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job",
            "name": "job", "uid": "00000000-0000-4000-8000-00000000dead", "controller": true}]);
        cluster.create("pods", owned);
        cluster.create("replicasets", replica_set("db", 3));
        cluster.rollout();
        assert_eq!(owner(cluster, "lost"), json!("db"));
        assert_eq!(owner(cluster, "stranger"), json!(null));
        assert_eq!(owner(cluster, "taken"), json!("job"));
        assert_eq!(cluster.events("SuccessfulCreate").len(), 2);
        assert_eq!(status(cluster)["readyReplicas"], json!(3));
        cluster.assert_economy();
    });
}

/// As if it had never been: the API server refuses such a selector.
#[test]
fn a_selector_that_is_none_creates_nothing() {
    with_cluster(|cluster| {
        let mut set = replica_set("db", 3);
        let selector = json!({"matchExpressions": [{"key": "app", "operator": "Resembles"}]});
        set["spec"]["selector"] = selector;
        cluster.create("replicasets", set);
        cluster.run(picokube_core::time::Duration::from_secs(20));
        assert_eq!(cluster.pods(|_| true).len(), 0);
    });
}

#[test]
fn a_pod_that_cannot_be_adopted_does_not_keep_others_from_it() {
    for lost in ["one", "two", "three"] {
        with_cluster(|cluster| {
            for name in ["one", "two", "three"] {
                cluster.create("pods", pod(name, "db"));
            }
            cluster.settle();
            cluster.accident = Some((format!("pods/{lost}"), Accident::LostBefore));
            cluster.create("replicasets", replica_set("db", 3));
            let earlier = cluster.server.log.len();
            cluster.rollout();
            assert_eq!(cluster.accident, None, "it has happened");
            let log = &cluster.server.log[earlier..];
            let patched: Vec<&str> = log
                .iter()
                .filter(|(method, target, _)| method == "PATCH" && target.contains("/pods/"))
                .filter_map(|(_, target, _)| target.split(['/', '?']).nth(6))
                .take(3)
                .collect();
            // The one that was lost comes last, when all is tried again.
            assert_eq!(patched.last(), Some(&lost), "{log:?}");
            assert_eq!(cluster.pods(|_| true).len(), 3);
            assert_eq!(status(cluster)["readyReplicas"], json!(3));
        });
    }
}

#[test]
fn a_pod_that_no_longer_matches_is_released_and_replaced() {
    with_cluster(|cluster| {
        cluster.create("replicasets", replica_set("db", 2));
        cluster.rollout();
        let name = cluster.pods(|_| true)[0].clone();
        cluster.patch("pods", &name, &json!({"metadata": {"labels": {"app": "debug"}}}));
        cluster.rollout();
        assert_eq!(owner(cluster, &name), json!(null));
        assert_eq!(cluster.pods(|_| true).len(), 3);
        cluster.patch("pods", &name, &json!({"metadata": {"labels": {"app": "db"}}}));
        cluster.rollout();
        assert_eq!(cluster.pods(|_| true).len(), 2);
        assert_eq!(cluster.events("SuccessfulDelete").len(), 1);
        cluster.assert_economy();
    });
}

#[test]
fn scaling_down_takes_the_pods_that_are_worth_least() {
    with_cluster(|cluster| {
        cluster.create("replicasets", replica_set("db", 4));
        cluster.rollout();
        let names = cluster.pods(|_| true);
        let cost = "controller.kubernetes.io/pod-deletion-cost";
        for (name, value) in names.iter().zip(["100", "-10", "5"]) {
            cluster.patch("pods", name, &json!({"metadata": {"annotations": {cost: value}}}));
        }
        cluster.patch("replicasets", "db", &json!({"spec": {"replicas": 2}}));
        cluster.rollout();
        assert_eq!(cluster.pods(|_| true), [names[0].clone(), names[2].clone()]);
        cluster.assert_economy();
    });
}

#[test]
fn failed_pods_are_replaced_and_kept() {
    with_cluster(|cluster| {
        cluster.create("replicasets", replica_set("db", 2));
        cluster.rollout();
        let name = cluster.pods(|_| true)[0].clone();
        cluster.pod(&name, Some("status"), &json!({"status": {"phase": "Failed"}}));
        cluster.rollout();
        assert_eq!(cluster.pods(|_| true).len(), 3);
        assert_eq!(status(cluster)["replicas"], json!(2));
        cluster.patch("replicasets", "db", &json!({"spec": {"replicas": 0}}));
        cluster.rollout();
        assert_eq!(cluster.pods(|_| true), [name]);
    });
}

#[test]
fn a_refused_pod_is_told_of_and_tried_again() {
    with_cluster(|cluster| {
        cluster.server.quota = Some(2);
        cluster.create("replicasets", replica_set("db", 5));
        cluster.run(picokube_core::time::Duration::from_secs(20));
        assert_eq!(cluster.pods(|_| true).len(), 2);
        let condition = status(cluster)["conditions"][0].clone();
        assert_eq!(condition["type"], json!("ReplicaFailure"));
        assert_eq!(condition["reason"], json!("FailedCreate"));
        let message = condition["message"].as_str().unwrap();
        assert!(message.ends_with("is forbidden: exceeded quota: q"), "{message}");
        let events = cluster.events("FailedCreate");
        assert!(events.len() >= 10, "{events:?}");
        assert!(events.iter().all(|event| event.starts_with("Error creating: pods \"A-")));
        cluster.server.quota = None;
        cluster.run(picokube_core::time::Duration::from_secs(2000));
        cluster.rollout();
        assert_eq!(cluster.pods(|_| true).len(), 5);
        assert_eq!(status(cluster)["conditions"], json!(null));
    });
}

#[test]
fn a_replica_set_that_is_gone_by_now_is_no_failure_to_create() {
    with_cluster(|cluster| {
        cluster.accident = Some(("/pods".into(), Accident::SourceGone));
        cluster.create("replicasets", replica_set("db", 2));
        cluster.run(picokube_core::time::Duration::from_secs(20));
        assert!(cluster.accident.is_none(), "no pod was asked for");
        assert_eq!(cluster.events("FailedCreate"), [""; 0]);
        assert_eq!(status(cluster)["conditions"], json!(null));
        assert_eq!(cluster.pods(|_| true).len(), 2);
    });
}

#[test]
fn pods_count_as_available_when_they_have_been_ready_long_enough() {
    with_cluster(|cluster| {
        let mut db = replica_set("db", 1);
        db["spec"]["minReadySeconds"] = json!(3);
        cluster.create("replicasets", db);
        cluster.rollout();
        let status_now = status(cluster);
        assert_eq!(status_now["readyReplicas"], json!(1));
        assert_eq!(status_now["availableReplicas"], json!(0));
        cluster.run(picokube_core::time::Duration::from_secs(5));
        assert_eq!(status(cluster)["availableReplicas"], json!(1));
        cluster.assert_economy();
    });
}

#[test]
fn a_namespace_that_goes_away_is_left_in_peace() {
    with_cluster(|cluster| {
        cluster.create("replicasets", replica_set("db", 3));
        cluster.server.terminating_namespace = true;
        cluster.run(picokube_core::time::Duration::from_secs(200));
        assert_eq!(cluster.events("FailedCreate").len(), 0);
        let tries = cluster.server.log.iter().filter(|(_, target, _)| target.ends_with("/pods"));
        assert_eq!(tries.count(), 3);
    });
}
