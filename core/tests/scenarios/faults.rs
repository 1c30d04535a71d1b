//! When something goes wrong: lost requests and answers, taken names, deletions, lack of room.

use picokube_core::kind::Kind;
use picokube_core::manager::{ControllerName, Enabled, Rate, Settings};
use picokube_core::time::{Duration, Timestamp};
use serde_json::json;

use crate::cluster::{Accident, Cluster, Memory, Space, with_cluster};
use crate::user::{deployment, replica_set};

/// The server has what it should have, and nothing twice.
fn assert_three_pods(cluster: &Cluster<'_>) {
    assert_eq!(cluster.sets(), [("app:v1".into(), 3)]);
    assert_eq!(cluster.pods(|_| true).len(), 3);
    assert_eq!(cluster.deployment("web")["status"]["availableReplicas"], json!(3));
}

#[test]
fn a_lost_request_or_answer_never_leaves_anything_twice() {
    for accident in [Accident::LostBefore, Accident::LostAfter] {
        for target in ["/replicasets", "/pods", "/status", "/events"] {
            with_cluster(|cluster| {
                cluster.accident = Some((target.into(), accident));
                cluster.create("deployments", deployment("web", 3));
                cluster.run(Duration::from_secs(10));
                cluster.rollout();
                cluster.run(Duration::from_secs(400));
                assert!(cluster.accident.is_none(), "{target} was never asked for");
                assert_three_pods(cluster);
            });
        }
    }
}

#[test]
fn a_certificate_that_ends_is_told_about_the_node() {
    with_cluster(|cluster| {
        cluster.rollout();
        let (now, at) = (cluster.now, Timestamp::from_secs(1_800_000_000));
        cluster.manager.tell_certificate_ends(now, "gateway-7", "edge", "client certificate", at);
        cluster.run(Duration::from_secs(10));
        let told = cluster.server.of("events").find(|it| it["reason"] == "CertificateExpiresSoon");
        let told = told.expect("an event");
        let about = json!({
            "kind": "Node", "apiVersion": "v1", "name": "gateway-7", "uid": "gateway-7",
        });
        assert_eq!((&told["involvedObject"], &told["type"]), (&about, &json!("Warning")));
        assert_eq!(told["metadata"]["namespace"], "edge");
        let said =
            "The client certificate ends at 2027-01-15T08:00:00Z: it has to be renewed before";
        assert_eq!(told["message"], said);
    });
}

#[test]
fn a_taken_name_is_avoided() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 2));
        cluster.rollout();
        let name = cluster.set_names()[0].clone();
        cluster.delete("deployments", "web");
        cluster.rollout();
        assert_eq!(cluster.pods(|_| true).len(), 0);
        let mut other = deployment("other", 0);
        other["kind"] = json!("ReplicaSet");
        other["metadata"]["name"] = json!(name);
        cluster.create("replicasets", other);
        cluster.settle();
        cluster.create("deployments", deployment("web", 2));
        cluster.rollout();
        assert_eq!(cluster.deployment("web")["status"]["collisionCount"], json!(1));
        assert_eq!(cluster.sets(), [("app:v1".into(), 0), ("app:v1".into(), 2)]);
        assert_eq!(cluster.pods(|_| true).len(), 2);
    });
}

#[test]
fn deleting_leaves_nothing_behind_and_room_for_others() {
    let mut memory = Box::new(Memory::new());
    let mut space = Box::new(Space::new());
    let mut cluster = Cluster::new(&mut memory, &mut space, 7);
    cluster.settle();
    let texts = cluster.manager.cache().texts.used();
    // More than the tables hold at a time.
    for number in 0..40 {
        let name = format!("app{number}");
        cluster.create("deployments", deployment(&name, 2));
        cluster.rollout();
        assert_eq!(cluster.deployment(&name)["status"]["availableReplicas"], json!(2));
        cluster.delete("deployments", &name);
        cluster.rollout();
        assert_eq!(cluster.server.of("pods").count(), 0);
        assert_eq!(cluster.server.of("replicasets").count(), 0);
    }
    cluster.run(Duration::from_secs(1_000));
    let cache = cluster.manager.cache();
    assert_eq!(
        (cache.pods.taken(), cache.replica_sets.taken(), cache.deployments.taken()),
        (0, 0, 0)
    );
    assert_eq!(cache.texts.used(), texts, "every text is given back");
}

#[test]
fn a_deployment_adopts_what_fits_and_releases_what_does_not() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 1));
        cluster.rollout();
        let set = cluster.set_names()[0].clone();
        let relabel = |app: &str| json!({"metadata": {"labels": {"app": app}}});
        cluster.patch("replicasets", &set, &relabel("other"));
        cluster.rollout();
        let owners = |cluster: &Cluster<'_>, set: &str| {
            cluster.server.get("replicasets", set).unwrap()["metadata"]["ownerReferences"].clone()
        };
        assert_eq!(owners(cluster, &set), json!(null));
        assert_eq!(cluster.server.of("replicasets").count(), 2, "a new one, of another name");
        assert_eq!(cluster.deployment("web")["status"]["collisionCount"], json!(1));
        cluster.patch("replicasets", &set, &relabel("web"));
        cluster.rollout();
        assert_eq!(owners(cluster, &set)[0]["name"], json!("web"));
        let sizes: i64 = cluster.sets().iter().map(|(_, size)| size).sum();
        assert_eq!(sizes, 1);
    });
}

#[test]
fn without_room_for_all_pods_nothing_is_created_or_deleted_until_there_is() {
    type Small = picokube_core::resources! { pods: 8, replica_sets: 4, deployments: 4 };
    let mut memory = Box::new(Small::new());
    let mut space = Box::new(Space::new());
    let settings = Settings { rate: None, ..Settings::DEFAULT };
    let mut cluster = Cluster::of(memory.parts(), &mut space, 3, settings);
    // One after the other: otherwise both may be blind.
    cluster.create("deployments", deployment("web", 6));
    cluster.rollout();
    cluster.create("deployments", deployment("api", 6));
    cluster.rollout();
    let told = cluster.events("ControllerMemoryFull");
    let says_why = |told: &String| {
        told.starts_with("Pod \"")
            && told.contains("cannot be kept: the table of its kind is full;")
    };
    assert!(told.iter().any(says_why), "{told:?}");
    let mut metrics = String::new();
    cluster.manager.write_metrics(&mut metrics).unwrap();
    assert!(metrics.contains("picokube_blind_owners{kind=\"ReplicaSet\"} 1\n"), "{metrics}");
    let pods = cluster.pods(|_| true).len();
    assert!((8..=12).contains(&pods), "{pods}");
    cluster.run(Duration::from_secs(600));
    assert_eq!(cluster.pods(|_| true).len(), pods, "nothing happens to what is not seen");
    // Whoever is seen is served: room appears, and the blind one sees again.
    let blind =
        cluster.server.of("events").find(|event| event["reason"] == json!("ControllerMemoryFull"));
    let blind = blind.unwrap()["involvedObject"]["name"].as_str().unwrap();
    let seen = if blind.starts_with("web") { "api" } else { "web" };
    cluster.scale(seen, 1);
    cluster.rollout();
    cluster.run(Duration::from_secs(120));
    cluster.rollout();
    assert_eq!(cluster.pods(|_| true).len(), 7);
    for name in ["web", "api"] {
        let d = cluster.deployment(name);
        assert_eq!(d["status"]["availableReplicas"], d["spec"]["replicas"], "{name}");
    }
}

#[test]
fn a_restarted_manager_finds_nothing_to_do() {
    let mut memory = Box::new(Memory::new());
    let mut space = Box::new(Space::new());
    let mut cluster = Cluster::new(&mut memory, &mut space, 9);
    cluster.create("deployments", deployment("web", 3));
    cluster.rollout();
    let server = core::mem::take(&mut cluster.server);
    let mut memory = Box::new(Memory::new());
    let mut space = Box::new(Space::new());
    let mut cluster = Cluster::new(&mut memory, &mut space, 10);
    cluster.server = server;
    let writes = cluster.server.log.len();
    cluster.rollout();
    cluster.run(Duration::from_secs(600));
    assert_eq!(cluster.server.log.len(), writes, "silent for ten minutes");
}

#[test]
fn a_controller_that_is_off_leaves_its_objects_alone() {
    let mut memory = Box::new(Memory::new());
    let mut space = Box::new(Space::new());
    let controllers = Enabled::parse(["*", "-replicaset"].into_iter()).unwrap();
    assert!(controllers.contains(ControllerName::Deployment));
    let settings = Settings { rate: None, controllers, ..Settings::DEFAULT };
    let mut cluster = Cluster::with(&mut memory, &mut space, 1, settings);
    cluster.create("deployments", deployment("web", 3));
    cluster.run(Duration::from_secs(60));
    assert_eq!(cluster.sets(), [("app:v1".into(), 3)]);
    assert_eq!(cluster.pods(|_| true).len(), 0);
}

#[test]
fn the_rate_limit_spreads_requests_over_time() {
    let mut memory = Box::new(Memory::new());
    let mut space = Box::new(Space::new());
    let rate = Some(Rate { qps: 10, burst: 5 });
    let settings = Settings { rate, ..Settings::DEFAULT };
    let mut cluster = Cluster::with(&mut memory, &mut space, 1, settings);
    cluster.create("deployments", deployment("web", 20));
    let start = cluster.now;
    cluster.settle();
    let sent: usize = cluster.requests.values().sum();
    assert!(sent < 20, "{sent} at once");
    for _ in 0..100 {
        cluster.settle();
    }
    assert_eq!(cluster.pods(|_| true).len(), 20);
    // Pods and their events come from one bucket of ten a second.
    let seconds = cluster.now.since(start).as_millis() as f64 / 1000.0;
    let of_replica_sets = cluster.server.log.iter().filter(|(_, target, _)| {
        target.contains("/pods") || target.contains("/replicasets") || target.contains("/events")
    });
    let count = of_replica_sets.count() as f64;
    assert!(count <= 20.0 * seconds + 15.0, "{count} in {seconds} s");
}

/// The manager asks again, later, when the server says so.
#[test]
fn retry_after_is_honoured() {
    let mut memory = Box::new(Memory::new());
    let mut space = Box::new(Space::new());
    let mut cluster = Cluster::new(&mut memory, &mut space, 4);
    cluster.busy_for = Some(Duration::from_secs(7));
    cluster.create("deployments", deployment("web", 3));
    cluster.run(Duration::from_secs(30));
    cluster.rollout();
    assert_three_pods(&cluster);
    assert!(cluster.manager.metrics().retries_after >= 3);
    assert!(cluster.events("ReplicaSetCreateError").is_empty());
}

/// A server without ReplicationControllers, or one that does not show them, is no reason for the other
/// controllers to wait.
#[cfg(feature = "replication-controller")]
#[test]
fn what_one_controller_does_not_see_keeps_no_other_from_acting() {
    type Mixed = picokube_core::resources! {
        pods: 50, replica_sets: 10, deployments: 10, replication_controllers: 2,
    };
    let mut memory = Box::new(Mixed::new());
    let mut space = Box::new(Space::new());
    let settings = Settings { rate: None, ..Settings::DEFAULT };
    let mut cluster = Cluster::of(memory.parts(), &mut space, 3, settings);
    // It is answered 403 when it asks for them.
    cluster.hidden = Some(picokube_core::kind::Kind::ReplicationController);
    cluster.create("deployments", deployment("web", 3));
    cluster.rollout();
    assert_three_pods(&cluster);
    assert!(cluster.manager.acts(ControllerName::Deployment));
    assert!(!cluster.manager.acts(ControllerName::ReplicationController));
    assert!(!cluster.manager.has_started());
}

/// Whose pod cannot be read is told which one it is, and what is wrong with it.
#[test]
fn an_object_that_cannot_be_read_is_named_with_its_field() {
    with_cluster(|cluster| {
        cluster.create("deployments", deployment("web", 2));
        cluster.rollout();
        let pod = cluster.pods(|_| true)[0].clone();
        cluster.patch("pods", &pod, &json!({"spec": {"nodeName": "n".repeat(300)}}));
        cluster.settle();
        let told = cluster.events("FaultyObject");
        // Of the ReplicaSet that is called `A` here.
        let (_, tail) = pod.rsplit_once('-').unwrap();
        let expected = format!(
            "Pod \"A-{tail}\" cannot be kept: spec.nodeName: is too long; nothing is created or deleted \
             for \"A\" until it can"
        );
        assert_eq!(told, [expected]);
        cluster.patch("pods", &pod, &json!({"spec": {"nodeName": "a"}}));
        cluster.run(Duration::from_secs(60));
        cluster.scale("web", 3);
        cluster.rollout();
        assert_eq!(cluster.pods(|_| true).len(), 3);
    });
}

/// A server that asks for a year of patience gets five minutes.
#[test]
fn retry_after_has_an_end() {
    let mut memory = Box::new(Memory::new());
    let mut space = Box::new(Space::new());
    let mut cluster = Cluster::new(&mut memory, &mut space, 4);
    cluster.busy_for = Some(Duration::from_secs(7));
    cluster.retry_after = 365 * 24 * 3600;
    cluster.create("deployments", deployment("web", 3));
    cluster.run(Duration::from_secs(400));
    cluster.rollout();
    assert_three_pods(&cluster);
}

/// What was decided while the Deployment could see its ReplicaSets does not keep a worker busy when it
/// cannot any more, whenever that happens.
#[test]
fn a_deployment_that_is_blind_lets_go_of_its_worker() {
    for steps in 0..40 {
        let mut memory = Box::new(Memory::new());
        let mut space = Box::new(Space::new());
        let mut cluster = Cluster::new(&mut memory, &mut space, 1);
        cluster.create("deployments", deployment("web", 3));
        cluster.rollout();
        cluster.set_image("web", "app:v2");
        cluster.settle();
        cluster.kubelet();
        cluster.settle();
        // The next pod that becomes ready lets an old one go.
        cluster.kubelet();
        for _ in 0..steps {
            cluster.step();
        }
        let mut labels: serde_json::Map<_, _> =
            (0..80).map(|number| (format!("label-{number}"), json!("x"))).collect();
        labels.insert("app".to_owned(), json!("web"));
        cluster.create("replicasets", json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "fat", "labels": labels},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "fat"}}, "template": {}},
        }));
        cluster.run(Duration::from_secs(20));
        let told = cluster.events("FaultyObject");
        assert!(told[0].contains("metadata.labels: has too many"), "after {steps} steps: {told:?}");
        let next = cluster.manager.poll_at().map(|at| at.since(cluster.now));
        let soon = Duration::from_millis(900);
        assert!(next.is_none_or(|wait| wait > soon), "after {steps} steps, wakes in {next:?}");
    }
}

/// ReplicaSets whose Deployments wait for the server do not keep others from being looked after.
#[test]
fn a_deployment_that_waits_holds_up_nobody_elses_replica_set() {
    with_cluster(|cluster| {
        let names = ["a", "b", "c", "d"];
        names.iter().for_each(|name| drop(cluster.create("deployments", deployment(name, 2))));
        cluster.rollout();
        cluster.refused = Some("/deployments/");
        // Every ReplicaSet has something to tell, and so has its Deployment.
        for _ in 0..2 {
            for name in names {
                let pods = cluster.pods(|pod| pod["metadata"]["labels"]["app"] == json!(name));
                cluster.delete("pods", &pods[0]);
                cluster.finish(&pods[0]);
            }
            cluster.run(Duration::from_secs(2));
        }
        cluster.create(
            "replicasets",
            json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "solo"},
                "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "solo"}}, "template": {
                    "metadata": {"labels": {"app": "solo"}},
                    "spec": {"containers": [{"name": "app", "image": "app:v1"}]},
                }},
            }),
        );
        cluster.run(Duration::from_secs(20));
        let solo = cluster.pods(|pod| pod["metadata"]["labels"]["app"] == json!("solo"));
        assert_eq!(solo.len(), 2, "while Deployments wait for a minute");
    });
}

/// The server has told that a ReplicaSet is gone, by an answer; its watch does not, for a while. Kubernetes
/// goes on to create pods, which the garbage collector deletes, as fast as both can.
#[test]
fn nothing_is_created_for_what_an_answer_has_told_to_be_gone() {
    with_cluster(|cluster| {
        cluster.create("replicasets", replica_set("db", 3));
        cluster.run(Duration::from_secs(2));
        let pods = cluster.pods(|_| true);
        assert_eq!(pods.len(), 3);
        cluster.lag.insert(Kind::ReplicaSet, Duration::from_secs(600));
        cluster.server.expel("replicasets", "default", "db");
        let before = cluster.sent.len();
        cluster.delete("pods", &pods[0]);
        for round in 0..20 {
            let news = json!({"metadata": {"annotations": {"round": round.to_string()}}});
            cluster.patch("pods", &pods[1], &news);
            cluster.settle();
        }
        let is_creation =
            |(method, target): &&(String, String)| method == "POST" && target.ends_with("/pods");
        let created = cluster.sent[before..].iter().filter(is_creation).count();
        assert!(created <= 1, "{created} times");
    });
}

/// A server that is about to start may not know its own resources yet.
#[cfg(feature = "statefulset")]
#[test]
fn what_was_not_found_by_mistake_goes_on() {
    for status in ["/replicasets/db/status", "/deployments/web/status"] {
        with_cluster(|cluster| {
            cluster.accident = Some((status.into(), Accident::Refused(404, "NotFound")));
            cluster.create("replicasets", replica_set("db", 2));
            cluster.create("deployments", deployment("web", 2));
            cluster.run(Duration::from_secs(5));
            assert!(cluster.accident.is_none(), "it has happened");
            cluster.rollout();
            let available = |cluster: &Cluster<'_>| {
                cluster.server.get("replicasets", "db").unwrap()["status"]["availableReplicas"]
                    .clone()
            };
            assert_eq!(available(cluster), json!(2), "{status}");
            cluster.set_image("web", "app:v2");
            cluster.patch("replicasets", "db", &json!({"spec": {"replicas": 3}}));
            cluster.rollout();
            assert_eq!(cluster.deployment("web")["status"]["updatedReplicas"], json!(2));
            assert_eq!(available(cluster), json!(3), "{status}");
        });
    }
}

/// Who never hears what became of a request asks less and less often.
#[test]
fn requests_that_vanish_are_sent_less_and_less_often() {
    with_cluster(|cluster| {
        cluster.create("replicasets", replica_set("db", 1));
        cluster.storm = Some((1, &[Accident::Vanished]));
        cluster.run(Duration::from_secs(1));
        assert!(!cluster.sent.is_empty());
        cluster.run(Duration::from_secs(600));
        // After 1 s, eight times; then after twice as long each time. A pod, and its status twice.
        assert!(cluster.sent.len() < 60, "{}", cluster.sent.len());
        cluster.storm = None;
        cluster.run(Duration::from_secs(1_100));
        cluster.rollout();
        assert_eq!(cluster.pods(|_| true).len(), 1);
    });
}
