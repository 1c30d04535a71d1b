//! Namespaces come with an account and go with their contents.

use super::*;

#[test]
fn every_cluster_has_its_system_namespaces() {
    let mut cluster = Cluster::new();
    let expected = ["default", "kube-node-lease", "kube-public", "kube-system"];
    assert_eq!(cluster.names("/api/v1/namespaces"), expected);
    assert_eq!(cluster.names("/api/v1/namespaces/kube-public/serviceaccounts"), ["default"]);
    assert_eq!(cluster.delete("/api/v1/namespaces/default", json!({})).0, 403);
}

#[test]
fn nothing_is_created_in_a_namespace_that_is_not_there() {
    let mut cluster = Cluster::new();
    let (status, error) = cluster.post("/api/v1/namespaces/nowhere/pods", pod("a"));
    assert_eq!(
        (status, error["message"].as_str()),
        (404, Some("namespaces \"nowhere\" not found"))
    );
}

#[test]
fn a_terminating_namespace_takes_nothing_new_and_goes_when_it_is_empty() {
    let mut cluster = Cluster::new();
    cluster.make("/api/v1/namespaces", json!({"metadata": {"name": "lab"}}));
    cluster.settle();
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.make("/api/v1/namespaces/lab/configmaps", held);
    cluster.make("/api/v1/namespaces/lab/pods", pod("p"));
    let (status, namespace) = cluster.delete("/api/v1/namespaces/lab", json!({}));
    assert_eq!((status, namespace["status"]["phase"].as_str()), (200, Some("Terminating")));
    let (status, error) = cluster.post("/api/v1/namespaces/lab/pods", pod("late"));
    assert_eq!(status, 403);
    let expected = "pods \"late\" is forbidden: unable to create new content in namespace lab \
        because it is being terminated";
    assert_eq!(error["message"], expected);
    assert_eq!(error["details"]["causes"][0]["reason"], "NamespaceTerminating");
    cluster.settle();
    assert!(cluster.names("/api/v1/namespaces/lab/pods").is_empty());
    assert_eq!(cluster.get("/api/v1/namespaces/lab").0, 200, "something is held");
    assert_eq!(cluster.delete("/api/v1/namespaces/lab", json!({})).0, 409);
    let release = json!({"metadata": {"finalizers": null}});
    cluster.merge("/api/v1/namespaces/lab/configmaps/held", release);
    cluster.settle();
    assert_eq!(cluster.get("/api/v1/namespaces/lab").0, 404);
}

#[test]
fn the_default_account_comes_back() {
    let mut cluster = Cluster::new();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let (_, first) = cluster.get(&format!("{accounts}/default"));
    cluster.delete(&format!("{accounts}/default"), json!({}));
    cluster.settle();
    let (status, second) = cluster.get(&format!("{accounts}/default"));
    assert_eq!(status, 200, "{second}");
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
}

#[test]
fn an_account_has_to_be_there_before_a_pod_can_use_it() {
    let mut cluster = Cluster::new();
    let mut body = pod("a");
    body["spec"]["serviceAccountName"] = json!("robot");
    assert_eq!(cluster.post(PODS, body.clone()).0, 403);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    cluster.make(accounts, json!({"metadata": {"name": "robot"}}));
    cluster.make(PODS, body);
}
