//! Tests of claims: when they are bound, and that pods wait for them.

use super::super::behaviour::{BOUND_AFTER, NEVER_BOUND};
use super::*;

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

fn claim(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

/// A pod as a StatefulSet makes it.
fn user(name: &str, claim: &str) -> Value {
    let mut pod = pod(name, "nginx");
    pod["spec"]["hostname"] = json!(name);
    pod["spec"]["subdomain"] = json!("db");
    pod["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

impl Cluster {
    fn make_claim(&mut self, claim: Value) {
        let (status, answer) = self.send(Method::POST, CLAIMS, &claim);
        assert_eq!(status, 201, "{answer}");
    }

    fn claim(&mut self, name: &str) -> Value {
        self.get(&format!("{CLAIMS}/{name}")).unwrap_or_else(|| panic!("claim {name} is gone"))
    }

    fn phase(&mut self, claim: &str) -> String {
        self.claim(claim)["status"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    /// Why a pod has no node.
    fn waits_for(&mut self, pod: &str) -> String {
        let scheduled = condition(&self.pod(pod), "PodScheduled");
        assert_eq!(
            (&scheduled["status"], &scheduled["reason"]),
            (&json!("False"), &json!("Unschedulable"))
        );
        scheduled["message"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_claim_is_bound_after_a_moment() {
    let mut cluster = Cluster::new(1);
    cluster.make_claim(claim("data"));
    cluster.run(0);
    assert_eq!(cluster.phase("data"), "Pending");
    cluster.run(1);
    let claim = cluster.claim("data");
    let uid = claim["metadata"]["uid"].as_str().unwrap();
    assert_eq!(claim["spec"]["volumeName"], format!("pvc-{uid}"));
    assert_eq!(
        claim["status"],
        json!({
            "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
        })
    );
}

#[test]
fn a_claim_says_how_long_it_takes_and_changes_do_not_count() {
    let mut cluster = Cluster::new(1);
    let mut slow = claim("slow");
    slow["metadata"]["annotations"] = json!({BOUND_AFTER: "20"});
    cluster.make_claim(slow);
    cluster.run(15);
    cluster.patch(&format!("{CLAIMS}/slow"), json!({"metadata": {"labels": {"a": "b"}}}));
    cluster.run(4);
    assert_eq!(cluster.phase("slow"), "Pending");
    cluster.run(1);
    assert_eq!(cluster.phase("slow"), "Bound");
}

#[test]
fn claims_of_the_class_never_and_of_manual_namespaces_stay_pending() {
    let mut cluster = Cluster::new(1);
    let mut never = claim("never");
    never["spec"]["storageClassName"] = json!(NEVER_BOUND);
    cluster.make_claim(never);
    let namespace = json!({"metadata": {"name": "lab", "annotations": {MANUAL: "true"}}});
    assert_eq!(cluster.send(Method::POST, "/api/v1/namespaces", &namespace).0, 201);
    let claims = "/api/v1/namespaces/lab/persistentvolumeclaims";
    assert_eq!(cluster.send(Method::POST, claims, &claim("manual")).0, 201);
    cluster.create(user("p", "never"));
    cluster.run(3600);
    assert_eq!(cluster.phase("never"), "Pending");
    let manual = cluster.get(&format!("{claims}/manual")).unwrap();
    assert_eq!(manual["status"], json!({"phase": "Pending"}));
    let why = "pod has unbound immediate PersistentVolumeClaims";
    assert_eq!(cluster.waits_for("p"), format!("0/1 nodes are available: {why}."));
}

#[test]
fn without_nodes_nothing_is_bound() {
    let mut cluster = Cluster::new(0);
    cluster.make_claim(claim("data"));
    cluster.run(60);
    assert_eq!(cluster.claim("data")["status"], json!({"phase": "Pending"}));
}

#[test]
fn a_bound_claim_that_asks_for_more_gets_more() {
    let mut cluster = Cluster::new(1);
    cluster.make_claim(claim("data"));
    cluster.run(1);
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    cluster.patch(&format!("{CLAIMS}/data"), more);
    cluster.run(1);
    assert_eq!(cluster.claim("data")["status"]["capacity"]["storage"], "2Gi");
}

#[test]
fn a_pod_waits_until_all_its_claims_are_there_and_bound() {
    let mut cluster = Cluster::new(2);
    let mut both = user("p", "data");
    both["spec"]["volumes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "log", "persistentVolumeClaim": {"claimName": "log"}}));
    cluster.create(both);
    cluster.run(1);
    let missing = |name: &str| {
        format!("0/2 nodes are available: persistentvolumeclaim \"{name}\" not found.")
    };
    assert_eq!(cluster.waits_for("p"), missing("data"));
    cluster.make_claim(claim("data"));
    cluster.run(1);
    assert_eq!(cluster.waits_for("p"), missing("log"));
    let mut slow = claim("log");
    slow["metadata"]["annotations"] = json!({BOUND_AFTER: "10"});
    cluster.make_claim(slow);
    cluster.run(5);
    assert!(cluster.waits_for("p").contains("unbound immediate"));
    cluster.run(6);
    assert!(cluster.is_ready("p"));
    assert_eq!(condition(&cluster.pod("p"), "PodScheduled")["status"], "True");
}

#[test]
fn a_pod_waits_for_the_successor_of_a_claim_that_is_on_its_way_out() {
    let mut cluster = Cluster::new(1);
    cluster.make_claim(claim("data"));
    cluster.create(user("old", "data"));
    cluster.run(2);
    cluster.send(Method::DELETE, &format!("{CLAIMS}/data"), &json!({}));
    cluster.create(user("new", "data"));
    cluster.run(2);
    assert!(cluster.waits_for("new").contains("persistentvolumeclaim \"data\" is being deleted"));
    cluster.send(Method::DELETE, &format!("{PODS}/old"), &json!({}));
    cluster.run(2);
    assert!(cluster.waits_for("new").contains("persistentvolumeclaim \"data\" not found"));
    cluster.make_claim(claim("data"));
    cluster.run(2);
    assert!(cluster.is_ready("new"));
}
