//! Tests of simulated nodes against a real server, in virtual time.

mod claims;

use http::Method;
use serde_json::{Value, json};

use crate::server::Server;
use crate::server::request::Request;
use crate::store::HistoryLimits;
use crate::time::Timestamp;

use super::Nodes;
use super::behaviour::{BEHAVIOUR, MANUAL, OFFLINE, READY_AFTER, STOP_AFTER};
use super::node::CAPACITY;

const PODS: &str = "/api/v1/namespaces/default/pods";

struct Cluster {
    server: Server,
    nodes: Nodes,
    now: Timestamp,
}

impl Cluster {
    fn new(nodes: usize) -> Self {
        let now = Timestamp::from_unix_millis(1_763_253_600_000);
        let mut server = Server::new(7, HistoryLimits::default());
        server.bootstrap(now);
        let nodes = Nodes::new(&server, nodes);
        let mut cluster = Self { server, nodes, now };
        cluster.run(0);
        cluster
    }

    /// Lets that many seconds pass, waking everybody exactly when they want to be woken.
    fn run(&mut self, seconds: i64) {
        let end = self.now.plus_seconds(seconds);
        loop {
            self.server.settle(self.now);
            let busy = self.nodes.poll(self.now, &mut self.server);
            if busy || self.server.step(self.now) {
                continue;
            }
            match self.nodes.poll_at() {
                Some(at) if at <= self.now => {}
                Some(at) if at <= end => self.now = at,
                _ => break,
            }
        }
        self.now = end;
    }

    fn send(&mut self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let media_type = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = Request::new(method, path).with_body(media_type, body.to_string());
        let response = self.server.handle(self.now, &request);
        (response.status, response.into_value())
    }

    fn create(&mut self, pod: Value) {
        let (status, answer) = self.send(Method::POST, PODS, &pod);
        assert_eq!(status, 201, "{answer}");
    }

    fn get(&mut self, path: &str) -> Option<Value> {
        let response = self.server.handle(self.now, &Request::new(Method::GET, path));
        (response.status == 200).then(|| response.into_value())
    }

    fn pod(&mut self, name: &str) -> Value {
        self.get(&format!("{PODS}/{name}")).unwrap_or_else(|| panic!("pod {name} is gone"))
    }

    fn is_ready(&mut self, name: &str) -> bool {
        condition(&self.pod(name), "Ready")["status"] == "True"
    }

    fn patch(&mut self, path: &str, body: Value) {
        let (status, answer) = self.send(Method::PATCH, path, &body);
        assert_eq!(status, 200, "{answer}");
    }
}

fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|c| c["type"] == kind).unwrap_or_default()
}

fn pod(name: &str, image: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": image}]},
    })
}

#[test]
fn nodes_register_and_renew_their_leases() {
    let mut cluster = Cluster::new(3);
    let nodes = cluster.get("/api/v1/nodes").unwrap();
    assert_eq!(nodes["items"].as_array().map(Vec::len), Some(3));
    assert_eq!(condition(&nodes["items"][0], "Ready")["status"], "True");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1";
    let first = cluster.get(lease).unwrap()["spec"]["renewTime"].clone();
    cluster.run(11);
    assert_ne!(cluster.get(lease).unwrap()["spec"]["renewTime"], first);
}

#[test]
fn pods_are_spread_and_become_ready() {
    let mut cluster = Cluster::new(3);
    for index in 0..6 {
        cluster.create(pod(&format!("p{index}"), "nginx"));
    }
    cluster.run(2);
    let mut per_node = std::collections::BTreeMap::new();
    for index in 0..6 {
        let pod = cluster.pod(&format!("p{index}"));
        assert_eq!(pod["status"]["phase"], "Running");
        assert!(pod["status"]["podIP"].is_string() && pod["status"]["startTime"].is_string());
        assert!(cluster.is_ready(&format!("p{index}")));
        *per_node.entry(pod["spec"]["nodeName"].to_string()).or_insert(0) += 1;
    }
    assert_eq!(per_node.into_values().collect::<Vec<_>>(), [2, 2, 2]);
    let events = cluster.get("/api/v1/namespaces/default/events").unwrap();
    assert_eq!(events["items"][0]["reason"], "Scheduled");
}

#[test]
fn readiness_takes_as_long_as_it_is_told_to() {
    let mut cluster = Cluster::new(1);
    let mut slow = pod("slow", "nginx");
    slow["metadata"]["annotations"] = json!({READY_AFTER: "20"});
    cluster.create(slow);
    cluster.run(10);
    assert_eq!(cluster.pod("slow")["status"]["phase"], "Running");
    assert!(!cluster.is_ready("slow"));
    cluster.run(11);
    assert!(cluster.is_ready("slow"));
}

#[test]
fn image_tags_make_pods_misbehave() {
    let mut cluster = Cluster::new(1);
    for tag in ["never-ready", "bad", "crash-loop", "evict"] {
        cluster.create(pod(tag, &format!("img:{tag}")));
    }
    let mut job = pod("job", "img:complete");
    job["spec"]["restartPolicy"] = json!("Never");
    cluster.create(job);
    cluster.run(5);
    assert!(!cluster.is_ready("never-ready"));
    assert_eq!(cluster.pod("never-ready")["status"]["phase"], "Running");
    let bad = cluster.pod("bad");
    assert_eq!(bad["status"]["phase"], "Pending");
    let waiting = &bad["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ImagePullBackOff");
    let evicted = cluster.pod("evict");
    assert_eq!(
        (&evicted["status"]["phase"], &evicted["status"]["reason"]),
        (&json!("Failed"), &json!("Evicted"))
    );
    assert_eq!(cluster.pod("job")["status"]["phase"], "Succeeded");
    let crashed = cluster.pod("crash-loop");
    let waiting = &crashed["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "CrashLoopBackOff");
    cluster.run(120);
    let restarts =
        cluster.pod("crash-loop")["status"]["containerStatuses"][0]["restartCount"].clone();
    assert_eq!(restarts, 3, "after 10, 20 and 40 seconds");
}

#[test]
fn a_running_pod_can_be_told_to_misbehave_and_to_recover() {
    let mut cluster = Cluster::new(1);
    cluster.create(pod("p", "nginx"));
    cluster.run(2);
    assert!(cluster.is_ready("p"));
    let behave = |how: Value| json!({"metadata": {"annotations": {BEHAVIOUR: how}}});
    cluster.patch(&format!("{PODS}/p"), behave(json!("never-ready")));
    cluster.run(2);
    assert!(!cluster.is_ready("p"));
    cluster.patch(&format!("{PODS}/p"), behave(Value::Null));
    cluster.run(2);
    assert!(cluster.is_ready("p"));
}

#[test]
fn deletion_takes_its_time_but_never_more_than_the_grace_period() {
    let mut cluster = Cluster::new(1);
    cluster.create(pod("quick", "nginx"));
    let mut slow = pod("slow", "nginx");
    slow["metadata"]["annotations"] = json!({STOP_AFTER: "600"});
    cluster.create(slow);
    cluster.run(2);
    for name in ["quick", "slow"] {
        cluster.send(Method::DELETE, &format!("{PODS}/{name}"), &json!({}));
    }
    cluster.run(1);
    assert!(cluster.get(&format!("{PODS}/quick")).is_none());
    cluster.run(27);
    assert!(cluster.get(&format!("{PODS}/slow")).is_some());
    cluster.run(3);
    assert!(cluster.get(&format!("{PODS}/slow")).is_none());
}

#[test]
fn finalizers_outlive_the_containers() {
    let mut cluster = Cluster::new(1);
    let mut held = pod("held", "nginx");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create(held);
    cluster.run(2);
    cluster.send(Method::DELETE, &format!("{PODS}/held"), &json!({}));
    cluster.run(60);
    assert!(!cluster.is_ready("held"));
    cluster.patch(&format!("{PODS}/held"), json!({"metadata": {"finalizers": null}}));
    assert!(cluster.get(&format!("{PODS}/held")).is_none());
}

#[test]
fn cordoned_nodes_get_no_pods_until_they_are_uncordoned() {
    let mut cluster = Cluster::new(1);
    cluster.patch("/api/v1/nodes/node-1", json!({"spec": {"unschedulable": true}}));
    cluster.create(pod("p", "nginx"));
    cluster.run(3);
    let scheduled = condition(&cluster.pod("p"), "PodScheduled");
    assert_eq!(
        (&scheduled["status"], &scheduled["reason"]),
        (&json!("False"), &json!("Unschedulable"))
    );
    let message = "0/1 nodes are available: 1 node(s) were unschedulable.";
    assert_eq!(scheduled["message"], message);
    cluster.patch("/api/v1/nodes/node-1", json!({"spec": {"unschedulable": null}}));
    cluster.run(2);
    assert!(cluster.is_ready("p"));
}

#[test]
fn a_pod_that_fits_nowhere_waits_until_another_one_has_gone() {
    let mut cluster = Cluster::new(1);
    for number in 0..=CAPACITY {
        cluster.create(pod(&format!("p{number}"), "nginx"));
    }
    cluster.run(5);
    let names = (0..=CAPACITY).map(|number| format!("p{number}"));
    let (ready, waiting): (Vec<_>, Vec<_>) = names.partition(|name| cluster.is_ready(name));
    let [waiting] = &waiting[..] else { panic!("not one, but {waiting:?} waits") };
    let scheduled = condition(&cluster.pod(waiting), "PodScheduled");
    assert_eq!(scheduled["message"], "0/1 nodes are available: 1 Too many pods.");
    cluster.send(Method::DELETE, &format!("{PODS}/{}", ready[0]), &json!({}));
    cluster.run(60);
    assert!(cluster.is_ready(waiting));
}

#[test]
fn a_node_that_stays_away_loses_its_pods_and_a_node_that_returns_goes_on() {
    let mut cluster = Cluster::new(2);
    cluster.create(pod("a", "nginx"));
    cluster.create(pod("b", "nginx"));
    cluster.run(2);
    let node = cluster.pod("a")["spec"]["nodeName"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/nodes/{node}");
    let offline = |value: Value| json!({"metadata": {"annotations": {OFFLINE: value}}});
    cluster.patch(&path, offline(json!("true")));
    cluster.run(40);
    assert!(cluster.is_ready("a"), "nobody has noticed yet");
    cluster.run(30);
    let object = cluster.get(&path).unwrap();
    assert_eq!(condition(&object, "Ready")["status"], "Unknown");
    assert_eq!(object["spec"]["taints"].as_array().map(Vec::len), Some(2));
    assert!(!cluster.is_ready("a") && cluster.is_ready("b"));
    cluster.run(250);
    assert!(cluster.pod("a")["metadata"]["deletionTimestamp"].is_null());
    cluster.run(60);
    assert!(cluster.pod("a")["metadata"]["deletionTimestamp"].is_string(), "300 seconds are over");
    cluster.run(3600);
    cluster.pod("a");
    cluster.patch(&path, offline(Value::Null));
    cluster.run(10);
    assert!(cluster.get(&format!("{PODS}/a")).is_none(), "the kubelet has finished it");
    let object = cluster.get(&path).unwrap();
    assert_eq!(condition(&object, "Ready")["status"], "True");
    assert!(object["spec"]["taints"].is_null());
}

#[test]
fn a_short_absence_only_costs_readiness() {
    let mut cluster = Cluster::new(1);
    cluster.create(pod("a", "nginx"));
    cluster.run(2);
    let offline = |value: Value| json!({"metadata": {"annotations": {OFFLINE: value}}});
    cluster.patch("/api/v1/nodes/node-1", offline(json!("true")));
    cluster.run(100);
    assert!(!cluster.is_ready("a"));
    cluster.patch("/api/v1/nodes/node-1", offline(Value::Null));
    cluster.run(5);
    assert!(cluster.is_ready("a"));
}

#[test]
fn in_a_manual_namespace_nothing_moves() {
    let mut cluster = Cluster::new(1);
    let namespace = json!({"metadata": {"name": "lab", "annotations": {MANUAL: "true"}}});
    assert_eq!(cluster.send(Method::POST, "/api/v1/namespaces", &namespace).0, 201);
    let pods = "/api/v1/namespaces/lab/pods";
    assert_eq!(cluster.send(Method::POST, pods, &pod("p", "nginx")).0, 201);
    cluster.run(60);
    let pod = cluster.get(&format!("{pods}/p")).unwrap();
    assert!(pod["spec"]["nodeName"].is_null());
    assert_eq!(pod["status"]["phase"], "Pending");
}

#[test]
fn the_same_cluster_twice_is_the_same_to_the_byte() {
    let run = || {
        let mut cluster = Cluster::new(3);
        for (index, tag) in ["v1", "crash", "never-ready", "evict", "v2"].iter().enumerate() {
            cluster.create(pod(&format!("p{index}"), &format!("img:{tag}")));
        }
        cluster.run(100);
        cluster.get("/api/v1/pods").unwrap().to_string()
    };
    assert_eq!(run(), run());
}
