//! Creating, rolling out and scaling Deployments.

use picokube_core::time::Duration;
use serde_json::{Value, json};

use crate::cluster::{Cluster, with_cluster};
use crate::user::deployment;

#[test]
fn a_new_deployment_gets_its_pods() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 3));
        cluster.rollout();
        let status = &cluster.deployment("web")["status"];
        assert_eq!(status["readyReplicas"], json!(3), "{status}");
        assert_eq!(status["availableReplicas"], json!(3));
        assert_eq!(cluster.sets(), [("app:v1".into(), 3)]);
        assert_eq!(cluster.pods(|_| true).len(), 3);
        let done = Some(("True".to_string(), "NewReplicaSetAvailable".to_string()));
        assert_eq!(cluster.condition("web", "Progressing"), done);
        assert_eq!(cluster.events("ScalingReplicaSet"), ["Scaled up replica set A from 0 to 3"]);
        assert_eq!(cluster.events("SuccessfulCreate").len(), 3);
        cluster.assert_economy();
    });
}

#[test]
fn a_rollout_goes_step_by_step_as_kubernetes_does() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 3));
        cluster.rollout();
        cluster.set_image("web", "app:v2");
        cluster.rollout();
        assert_eq!(
            cluster.events("ScalingReplicaSet"),
            [
                "Scaled up replica set A from 0 to 3",
                "Scaled up replica set B from 0 to 1",
                "Scaled down replica set A from 3 to 2",
                "Scaled up replica set B from 1 to 2",
                "Scaled down replica set A from 2 to 1",
                "Scaled up replica set B from 2 to 3",
                "Scaled down replica set A from 1 to 0",
            ]
        );
        assert_eq!(cluster.sets(), [("app:v1".into(), 0), ("app:v2".into(), 3)]);
        let revision = &cluster.deployment("web")["metadata"]["annotations"];
        assert_eq!(revision["deployment.kubernetes.io/revision"], json!("2"));
        cluster.assert_economy();
    });
}

#[test]
fn ten_replicas_roll_in_bounds() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 10));
        cluster.rollout();
        cluster.set_image("web", "app:v2");
        cluster.rollout();
        let events = cluster.events("ScalingReplicaSet");
        assert_eq!(
            events[1..5],
            [
                "Scaled up replica set B from 0 to 3",
                "Scaled down replica set A from 10 to 8",
                "Scaled up replica set B from 3 to 5",
                "Scaled down replica set A from 8 to 7",
            ]
        );
        let names = cluster.set_names();
        assert_eq!(cluster.sizes(&names[1]), [3, 5, 6, 7, 8, 9, 10]);
        assert_eq!(cluster.sizes(&names[0]), [10, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        cluster.assert_economy();
    });
}

#[test]
fn a_stuck_rollout_is_scaled_in_proportion_and_rolled_back() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 10));
        cluster.rollout();
        cluster.set_image("web", "app:bad");
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 8), ("app:bad".into(), 5)]);
        cluster.scale("web", 15);
        cluster.rollout();
        // 19 in all, shared as 8 to 5.
        assert_eq!(cluster.sets(), [("app:v1".into(), 12), ("app:bad".into(), 7)]);
        cluster.set_image("web", "app:v1");
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 15), ("app:bad".into(), 0)]);
        let names = cluster.set_names();
        let set = cluster.server.get("replicasets", &names[0]).unwrap();
        let annotations = &set["metadata"]["annotations"];
        assert_eq!(annotations["deployment.kubernetes.io/revision"], json!("3"));
        assert_eq!(annotations["deployment.kubernetes.io/revision-history"], json!("1"));
        cluster.assert_economy();
    });
}

#[test]
fn pausing_holds_a_rollout_but_not_scaling() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 3));
        cluster.rollout();
        cluster.patch("deployments", "web", &json!({"spec": {"paused": true}}));
        cluster.rollout();
        let reason = |cluster: &Cluster<'_>| cluster.condition("web", "Progressing").unwrap().1;
        assert_eq!(reason(cluster), "DeploymentPaused");
        cluster.set_image("web", "app:v2");
        cluster.scale("web", 5);
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 5)]);
        cluster.patch("deployments", "web", &json!({"spec": {"paused": false}}));
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 0), ("app:v2".into(), 5)]);
        assert_eq!(reason(cluster), "NewReplicaSetAvailable");
        let seen: Vec<_> = conditions_seen(cluster);
        assert!(seen.contains(&"DeploymentResumed".to_string()));
        cluster.assert_economy();
    });
}

/// Reasons of `Progressing`, in the order they came.
fn conditions_seen(cluster: &Cluster<'_>) -> Vec<String> {
    let mut reasons: Vec<String> = cluster
        .server
        .history
        .iter()
        .filter(|(_, plural, ..)| plural == "deployments")
        .filter_map(|(.., d)| {
            let conditions = d["status"]["conditions"].as_array()?;
            let progressing = conditions.iter().find(|c| c["type"] == json!("Progressing"))?;
            Some(progressing["reason"].as_str()?.to_string())
        })
        .collect();
    reasons.dedup();
    reasons
}

#[test]
fn recreate_waits_until_the_old_pods_are_gone() {
    with_cluster(|cluster| {
        let mut web = deployment("web", 3);
        web["spec"]["strategy"] = json!({"type": "Recreate"});
        cluster.create("deployments", web);
        cluster.rollout();
        // A pod that has failed is never removed, and must not hold the rollout up.
        let failed = cluster.pods(|_| true)[0].clone();
        cluster.pod(&failed, Some("status"), &json!({"status": {"phase": "Failed"}}));
        cluster.rollout();
        cluster.set_image("web", "app:v2");
        cluster.settle();
        assert_eq!(cluster.sets(), [("app:v1".into(), 0)]);
        assert_eq!(cluster.pods(|pod| !pod["metadata"]["deletionTimestamp"].is_null()).len(), 3);
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 0), ("app:v2".into(), 3)]);
        cluster.assert_economy();
    });
}

#[test]
fn a_deadline_that_passes_is_told_once_and_taken_back_on_progress() {
    with_cluster(|cluster| {
        let mut web = deployment("web", 2);
        web["spec"]["progressDeadlineSeconds"] = json!(5);
        web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:bad");
        cluster.create("deployments", web);
        cluster.rollout();
        let progressing = |cluster: &Cluster<'_>| cluster.condition("web", "Progressing").unwrap();
        assert_eq!(progressing(cluster).1, "ReplicaSetUpdated");
        cluster.run(picokube_core::time::Duration::from_secs(10));
        let exceeded = ("False".to_string(), "ProgressDeadlineExceeded".to_string());
        assert_eq!(progressing(cluster), exceeded);
        let writes = cluster.server.log.len();
        cluster.run(picokube_core::time::Duration::from_secs(600));
        assert_eq!(cluster.server.log.len(), writes, "silent once told");
        cluster.set_image("web", "app:v2");
        cluster.rollout();
        assert_eq!(progressing(cluster).1, "NewReplicaSetAvailable");
        cluster.assert_economy();
    });
}

#[test]
fn history_beyond_the_limit_is_deleted_oldest_first() {
    with_cluster(|cluster| {
        let mut web = deployment("web", 1);
        web["spec"]["revisionHistoryLimit"] = json!(1);
        cluster.create("deployments", web);
        for image in ["app:v1", "app:v2", "app:v3", "app:v4"] {
            cluster.set_image("web", image);
            cluster.rollout();
        }
        assert_eq!(cluster.sets(), [("app:v3".into(), 0), ("app:v4".into(), 1)]);
    });
}

/// Between two ReplicaSets, the old one has no pods any more and the new one is not there yet. Then the old
/// one gets the pods, and is no history.
#[test]
fn what_is_scaled_up_while_paused_is_not_deleted_as_history() {
    with_cluster(|cluster| {
        let mut web = deployment("web", 3);
        web["spec"]["strategy"] = json!({"type": "Recreate"});
        web["spec"]["revisionHistoryLimit"] = json!(0);
        cluster.create("deployments", web);
        cluster.rollout();
        cluster.set_image("web", "app:v2");
        cluster.settle();
        assert_eq!(cluster.sets(), [("app:v1".into(), 0)]);
        cluster.patch("deployments", "web", &json!({"spec": {"paused": true}}));
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 3)]);
        assert_eq!(cluster.deployment("web")["status"]["readyReplicas"], json!(3));
        cluster.patch("deployments", "web", &json!({"spec": {"paused": false}}));
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v2".into(), 3)]);
        cluster.assert_economy();
    });
}

#[test]
fn annotations_are_copied_and_rollback_takes_them_back() {
    with_cluster(|cluster| {
        let mut web = deployment("web", 1);
        web["metadata"]["annotations"] = json!({"kubernetes.io/change-cause": "one"});
        cluster.create("deployments", web);
        cluster.rollout();
        let annotate = |cause: &str| {
            json!({"metadata": {"annotations": {
            "kubernetes.io/change-cause": cause, "extra": cause}}})
        };
        cluster.patch("deployments", "web", &annotate("two"));
        cluster.set_image("web", "app:v2");
        cluster.rollout();
        let names = cluster.set_names();
        let annotation = |cluster: &Cluster<'_>, set: &str, key: &str| {
            cluster.server.get("replicasets", set).unwrap()["metadata"]["annotations"][key].clone()
        };
        assert_eq!(annotation(cluster, &names[1], "kubernetes.io/change-cause"), json!("two"));
        assert_eq!(annotation(cluster, &names[1], "extra"), json!("two"));
        cluster.patch("deployments", "web", &annotate("three"));
        cluster.rollout();
        assert_eq!(annotation(cluster, &names[1], "extra"), json!("three"));
        let rollback = json!({"metadata": {"annotations": {
            "deprecated.deployment.rollback.to": "0"}}});
        cluster.patch("deployments", "web", &rollback);
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 1), ("app:v2".into(), 0)]);
        let annotations = &cluster.deployment("web")["metadata"]["annotations"];
        assert_eq!(annotations["deprecated.deployment.rollback.to"], json!(null));
        assert_eq!(annotations["deployment.kubernetes.io/revision"], json!("3"));
        assert_eq!(
            cluster.events("DeploymentRollback"),
            ["Rolled back deployment \"web\" to revision 1"]
        );
        cluster.assert_economy();
    });
}

/// Kubernetes' own controller meets a conflict then.
#[test]
fn a_rollback_is_what_was_asked_for_last() {
    let asks = [
        // Called off, another one instead, and one instead of what cannot be.
        ("0", json!(null), None),
        ("1", json!("2"), Some("2")),
        ("99", json!("1"), Some("1")),
    ];
    for (first, then, rolled_back_to) in asks {
        with_cluster(|cluster| {
            cluster.create("deployments", deployment("web", 1));
            for image in ["app:v1", "app:v2", "app:v3"] {
                cluster.set_image("web", image);
                cluster.rollout();
            }
            let key = "deprecated.deployment.rollback.to";
            let ask = |to: &Value| json!({"metadata": {"annotations": {key: to}}});
            let mut two_requests = ask(&json!(first));
            two_requests["metadata"]["annotations"]["copied"] = json!("first");
            let before = cluster.sent.len();
            cluster.patch("deployments", "web", &two_requests);
            while !cluster.sent[before..].iter().any(|(_, target)| target.contains("/replicasets/"))
            {
                if !cluster.step() {
                    cluster.advance(Duration::from_millis(1));
                }
            }
            cluster.patch("deployments", "web", &ask(&then));
            cluster.rollout();
            let told = |to| format!("Rolled back deployment \"web\" to revision {to}");
            let told: Vec<_> = rolled_back_to.map(told).into_iter().collect();
            assert_eq!(cluster.events("DeploymentRollback"), told, "{first}, then {then}");
        });
    }
}

/// Kubernetes' own controller would go by what it knew when it began.
#[test]
fn what_has_grown_meanwhile_leaves_less_to_grow() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 10));
        cluster.rollout();
        cluster.set_image("web", "app:bad");
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 8), ("app:bad".into(), 5)]);
        let names = cluster.set_names();
        let resize = |replicas: i32| json!({"spec": {"replicas": replicas}});
        // One too few: first it is told that the rollout is paused, then one grows.
        cluster.patch("replicasets", &names[0], &resize(7));
        cluster.patch("deployments", "web", &json!({"spec": {"paused": true}}));
        let status = cluster.until_sent(|it| it.target.contains("/deployments/web/status"));
        cluster.patch("replicasets", &names[1], &resize(6));
        cluster.settle();
        cluster.answer_of_now(&status, "deployments", "web");
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 7), ("app:bad".into(), 6)]);
        assert_eq!(cluster.sizes(&names[0]), [10, 8, 7], "and never 8 again");
    });
}

/// Kubernetes' own controller takes both for a scaling that is still to come, finds nothing to
/// scale, and leaves it at that.
#[test]
fn a_scaling_that_finds_nothing_to_scale_holds_up_no_rollout() {
    with_cluster(|cluster| {
        let mut web = deployment("web", 2);
        web["spec"]["strategy"] = json!({"type": "Recreate"});
        cluster.create("deployments", web);
        cluster.rollout();
        cluster.set_image("web", "app:v2");
        cluster.rollout();
        // Several active ReplicaSets, and no strategy that would share pods among them.
        let old = cluster.set_names()[0].clone();
        cluster.patch("replicasets", &old, &json!({"spec": {"replicas": 3}}));
        cluster.scale("web", 4);
        cluster.rollout();
        assert_eq!(cluster.sets(), [("app:v1".into(), 0), ("app:v2".into(), 4)]);

        // Somebody else has scaled the ReplicaSet, and told it nothing of the new size.
        let new = cluster.set_names()[1].clone();
        cluster.patch("replicasets", &new, &json!({"spec": {"replicas": 3}}));
        cluster.scale("web", 3);
        cluster.set_image("web", "app:v3");
        cluster.rollout();
        assert_eq!(cluster.sets()[2], ("app:v3".into(), 3));
    });
}
