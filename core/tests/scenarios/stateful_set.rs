//! StatefulSets: pods in order, updates, revisions, claims.

use picokube_core::time::Duration;
use serde_json::{Value, json};

use crate::stateful::{stateful_set, with, with_claim, with_stateful};

#[test]
fn pods_come_in_order_each_after_its_claim() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", with_claim(stateful_set("web", 3)));
        cluster.patient_rollout();
        assert_eq!(cluster.pod_history("ADDED"), ["web-0", "web-1", "web-2"]);
        let came: Vec<_> = cluster
            .server
            .history
            .iter()
            .filter(|(_, plural, change, _)| {
                *change == "ADDED" && ["pods", "persistentvolumeclaims"].contains(&plural.as_str())
            })
            .map(|(.., object)| object["metadata"]["name"].as_str().unwrap())
            .collect();
        let expected = ["data-web-0", "web-0", "data-web-1", "web-1", "data-web-2", "web-2"];
        assert_eq!(came, expected);
        let status = &cluster.server.get("statefulsets", "web").unwrap()["status"];
        for field in ["replicas", "readyReplicas", "availableReplicas", "currentReplicas"] {
            assert_eq!(status[field], json!(3), "{field}");
        }
        assert_eq!(status["currentRevision"], status["updateRevision"]);
        cluster.assert_rests("created");
    });
}

#[test]
fn pods_come_all_at_once_where_asked_for() {
    with_stateful(|cluster| {
        let set = with(stateful_set("web", 5), "podManagementPolicy", json!("Parallel"));
        cluster.create("statefulsets", with_claim(set));
        cluster.settle();
        assert_eq!(cluster.pods(|_| true).len(), 5);
        cluster.patient_rollout();
        cluster.scale_set("web", 2);
        cluster.settle();
        let leaving = cluster.pods(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
        assert_eq!(leaving.len(), 3);
        cluster.patient_rollout();
        assert_eq!(cluster.pods(|_| true).len(), 2);
        cluster.assert_rests("scaled");
    });
}

#[test]
fn pods_go_in_order_and_leave_their_claims() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", with_claim(stateful_set("web", 4)));
        cluster.patient_rollout();
        cluster.scale_set("web", 1);
        cluster.patient_rollout();
        assert_eq!(cluster.pod_history("DELETED"), ["web-3", "web-2", "web-1"]);
        assert_eq!(cluster.server.of("persistentvolumeclaims").count(), 4);
        cluster.assert_rests("scaled");
    });
}

#[test]
fn an_update_stops_at_its_partition() {
    with_stateful(|cluster| {
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
        cluster.create("statefulsets", with(stateful_set("web", 4), "updateStrategy", rolling));
        cluster.patient_rollout();
        cluster.set_image_of_set("web", "app:v2");
        cluster.patient_rollout();
        let expected = ["web-0 app:v1", "web-1 app:v1", "web-2 app:v2", "web-3 app:v2"];
        assert_eq!(cluster.images(), expected);
        assert_eq!(cluster.pod_history("DELETED"), ["web-3", "web-2"]);
        // Below the partition a lost pod comes back as it was.
        cluster.delete("pods", "web-0");
        cluster.patient_rollout();
        assert_eq!(cluster.images(), expected);
        cluster.patch(
            "statefulsets",
            "web",
            &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}),
        );
        cluster.patient_rollout();
        assert!(cluster.images().iter().all(|it| it.ends_with("v2")), "{:?}", cluster.images());
        assert_eq!(cluster.revisions(), [(1, "app:v1".into()), (2, "app:v2".into())]);
        cluster.assert_rests("updated");
    });
}

#[test]
fn a_rollback_renews_the_old_revision() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", stateful_set("web", 2));
        cluster.patient_rollout();
        for image in ["app:v2", "app:v1"] {
            cluster.set_image_of_set("web", image);
            cluster.patient_rollout();
        }
        assert_eq!(cluster.revisions(), [(2, "app:v2".into()), (3, "app:v1".into())]);
        assert!(cluster.images().iter().all(|it| it.ends_with("v1")));
        cluster.assert_rests("rolled back");
    });
}

#[test]
fn a_revision_name_that_is_taken_is_avoided_unless_its_data_is_the_same() {
    // By one whose data is another, and by equal ones that are not selected or another set's.
    for owner in [None, Some("DaemonSet"), Some("StatefulSet")] {
        for is_equal in [false, true] {
            with_stateful(|cluster| {
                cluster.create("statefulsets", stateful_set("web", 0));
                cluster.patient_rollout();
                let mut taken = cluster.server.of("controllerrevisions").next().unwrap().clone();
                let name = taken["metadata"]["name"].as_str().unwrap().to_string();
                cluster.delete("statefulsets", "web");
                cluster.patient_rollout();
                assert_eq!(cluster.server.of("controllerrevisions").count(), 0);
                taken["metadata"] = json!({"name": name, "labels": {"app": "other"}});
                if let Some(kind) = owner {
                    taken["metadata"]["ownerReferences"] = json!([{
                        "apiVersion": "apps/v1", "kind": kind, "name": "other", "controller": true,
                        "uid": "00000000-0000-4000-8000-00000000ffff",
                    }]);
                }
                if !is_equal {
                    taken["data"]["spec"]["template"]["spec"]["containers"][0]["image"] =
                        json!("app:other");
                }
                cluster.create("controllerrevisions", taken);
                cluster.run(Duration::from_secs(5));
                let before = cluster.sent.len();
                cluster.create("statefulsets", stateful_set("web", 1));
                cluster.patient_rollout();
                let status = &cluster.server.get("statefulsets", "web").unwrap()["status"];
                // Of what a DaemonSet has, only the name is looked at.
                let is_used = is_equal && owner != Some("DaemonSet");
                let collisions = i32::from(!is_used);
                assert_eq!(status["collisionCount"], json!(collisions), "{owner:?} {is_equal}");
                assert_eq!(status["updateRevision"] == json!(name), is_used);
                let revisions = cluster.server.of("controllerrevisions").count();
                assert_eq!(revisions, if is_used { 1 } else { 2 });
                assert_eq!(cluster.images(), ["web-0 app:v1"]);
                assert!(cluster.sent.len() - before < 20, "{:?}", &cluster.sent[before..]);
                cluster.assert_rests("collided");
            });
        }
    }
}

#[test]
fn claims_belong_to_whom_the_retention_policy_says() {
    let none: &[&str] = &[];
    for (deleted, scaled, kept, condemned) in [
        ("Retain", "Retain", none, none),
        ("Delete", "Retain", &["StatefulSet web"], &["StatefulSet web"]),
        ("Retain", "Delete", none, &["Pod web-1"]),
        ("Delete", "Delete", &["StatefulSet web"], &["Pod web-1"]),
    ] {
        with_stateful(|cluster| {
            let policy = json!({"whenDeleted": deleted, "whenScaled": scaled});
            let set = with_claim(stateful_set("web", 2));
            let field = "persistentVolumeClaimRetentionPolicy";
            cluster.create("statefulsets", with(set, field, policy));
            cluster.patient_rollout();
            assert_eq!(cluster.claim_owners("data-web-0"), kept);
            assert_eq!(cluster.claim_owners("data-web-1"), kept);
            cluster.scale_set("web", 1);
            cluster.settle();
            assert_eq!(cluster.claim_owners("data-web-1"), condemned);
            cluster.patient_rollout();
            let is_left = cluster.server.get("persistentvolumeclaims", "data-web-1").is_some();
            assert_eq!(is_left, scaled == "Retain");
            cluster.assert_rests("scaled");
            cluster.delete("statefulsets", "web");
            cluster.patient_rollout();
            let left = cluster.server.of("persistentvolumeclaims").count();
            let expected = match (deleted, scaled) {
                ("Delete", _) => 0,
                (_, "Delete") => 1,
                _ => 2,
            };
            assert_eq!(left, expected, "{deleted} {scaled}");
            cluster.assert_rests("deleted");
        });
    }
}

#[test]
fn a_failed_pod_is_replaced() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", with_claim(stateful_set("web", 2)));
        cluster.patient_rollout();
        let failed = json!({"status": {"phase": "Failed", "conditions": []}});
        cluster.pod("web-0", Some("status"), &failed);
        cluster.patient_rollout();
        assert_eq!(cluster.pod_history("DELETED"), ["web-0"]);
        let running = cluster.pods(|pod| pod["status"]["phase"] == json!("Running"));
        assert_eq!(running.len(), 2);
        cluster.assert_rests("replaced");
    });
}

#[test]
fn the_history_is_no_longer_than_asked_for() {
    with_stateful(|cluster| {
        let set = with(stateful_set("web", 1), "revisionHistoryLimit", json!(1));
        cluster.create("statefulsets", set);
        cluster.patient_rollout();
        for image in ["app:v2", "app:v3", "app:v4"] {
            cluster.set_image_of_set("web", image);
            cluster.patient_rollout();
        }
        assert_eq!(cluster.revisions(), [(3, "app:v3".into()), (4, "app:v4".into())]);
        assert_eq!(cluster.writes("DELETE", "controllerrevisions").len(), 2);
        cluster.assert_rests("updated");
    });
}

#[test]
fn orphans_are_adopted_and_strangers_released() {
    with_stateful(|cluster| {
        cluster.create("statefulsets", stateful_set("web", 2));
        cluster.patient_rollout();
        let uid = |cluster: &crate::cluster::Cluster<'_>| {
            cluster.server.get("statefulsets", "web").unwrap()["metadata"]["uid"].clone()
        };
        let owner = |cluster: &crate::cluster::Cluster<'_>, plural: &str, name: &str| -> Value {
            cluster.server.get(plural, name).unwrap()["metadata"]["ownerReferences"][0]["uid"]
                .clone()
        };
        let revision = cluster.server.of("controllerrevisions").next().unwrap()["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_string();
        // Deleted without what belongs to it.
        let orphan = json!({"metadata": {"ownerReferences": null}});
        cluster.patch("controllerrevisions", &revision, &orphan);
        let pods = ["web-0", "web-1"];
        pods.iter().for_each(|pod| cluster.patch("pods", pod, &orphan));
        cluster.server.expel("statefulsets", "default", "web");
        cluster.patient_rollout();
        cluster.create("statefulsets", stateful_set("web", 2));
        cluster.patient_rollout();
        assert_eq!(cluster.pod_history("ADDED").len(), 2, "none is created");
        assert_eq!(cluster.server.of("controllerrevisions").count(), 1);
        assert_eq!(owner(cluster, "controllerrevisions", &revision), uid(cluster));
        pods.iter().for_each(|pod| assert_eq!(owner(cluster, "pods", pod), uid(cluster)));
        cluster.assert_rests("adopted");
        cluster.patch("pods", "web-1", &json!({"metadata": {"labels": {"app": "other"}}}));
        cluster.run(Duration::from_secs(5));
        assert_eq!(owner(cluster, "pods", "web-1"), json!(null));
        // Its name is taken for as long as it is there.
        cluster.run(Duration::from_secs(100));
        let posts = cluster.writes("POST", "pods").len();
        assert!(posts <= 3, "{posts}");
        cluster.delete("pods", "web-1");
        cluster.finish("web-1");
        cluster.run(Duration::from_secs(2_000));
        cluster.patient_rollout();
        assert_eq!(owner(cluster, "pods", "web-1"), uid(cluster));
        cluster.assert_rests("released");
    });
}
