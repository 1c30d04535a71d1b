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
fn a_namespace_is_emptied_in_order_and_tells_what_remains() {
    let mut cluster = Cluster::new();
    cluster.make("/api/v1/namespaces", json!({"metadata": {"name": "lab"}}));
    cluster.settle();
    let held = |mut object: Value, finalizers: Value| {
        object["metadata"]["finalizers"] = finalizers;
        object
    };
    let (pods, maps) = ("/api/v1/namespaces/lab/pods", "/api/v1/namespaces/lab/configmaps");
    for name in ["a", "b"] {
        let mut pod = held(pod(name), json!(["example.com/hold"]));
        pod["spec"]["nodeName"] = json!("node-1");
        cluster.make(pods, pod);
    }
    cluster.make(maps, held(config_map("held"), json!(["example.com/hold", "example.com/two"])));
    cluster.make(maps, config_map("plain"));
    let accounts = "/api/v1/namespaces/lab/serviceaccounts";
    cluster.delete("/api/v1/namespaces/lab", json!({}));
    cluster.settle();
    let told = |cluster: &mut Cluster| -> Vec<(String, String)> {
        let (_, namespace) = cluster.get("/api/v1/namespaces/lab");
        let conditions = namespace["status"]["conditions"].as_array().cloned();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let remaining = conditions.into_iter().flatten().filter(|c| c["status"] == "True");
        remaining.map(|c| (text(&c["reason"]), text(&c["message"]))).collect()
    };
    let pair = |reason: &str, message: &str| (reason.to_owned(), message.to_owned());
    let content = |message: &str| {
        pair("SomeResourcesRemain", &format!("Some resources are remaining: {message}"))
    };
    let finalizers = |message: &str| {
        let start = "Some content in the namespace has finalizers remaining: ";
        pair("SomeFinalizersRemain", &format!("{start}{message}"))
    };
    let hold = |count: u8| format!("example.com/hold in {count} resource instances");
    assert_eq!(
        told(&mut cluster),
        [content("pods. has 2 resource instances"), finalizers(&hold(2))]
    );
    assert_eq!(cluster.names(maps), ["held", "plain"]);
    assert_eq!(cluster.names(accounts), ["default"]);

    // A pod that has lost its finalizer still has its grace period.
    cluster.merge(&format!("{pods}/a"), json!({"metadata": {"finalizers": null}}));
    cluster.settle();
    assert_eq!(
        told(&mut cluster),
        [content("pods. has 2 resource instances"), finalizers(&hold(1))]
    );
    cluster.delete(&format!("{pods}/a"), json!({"gracePeriodSeconds": 0}));
    cluster.delete(&format!("{pods}/b"), json!({"gracePeriodSeconds": 0}));
    cluster.settle();
    assert_eq!(
        told(&mut cluster),
        [content("pods. has 1 resource instances"), finalizers(&hold(1))]
    );
    assert_eq!(cluster.names(maps), ["held", "plain"]);

    cluster.merge(&format!("{pods}/b"), json!({"metadata": {"finalizers": null}}));
    cluster.settle();
    let both = "example.com/hold in 1 resource instances, example.com/two in 1 resource instances";
    assert_eq!(
        told(&mut cluster),
        [content("configmaps. has 1 resource instances"), finalizers(both)]
    );
    assert_eq!(cluster.names(maps), ["held"]);
    assert!(cluster.names(accounts).is_empty());

    cluster.merge(&format!("{maps}/held"), json!({"metadata": {"finalizers": null}}));
    cluster.settle();
    assert_eq!(cluster.get("/api/v1/namespaces/lab").0, 404);
}

#[test]
fn who_else_finalizes_a_namespace_is_waited_for() {
    let mut cluster = Cluster::new();
    let finalizers = json!(["kubernetes", "example.com/archive"]);
    let lab = json!({"metadata": {"name": "lab"}, "spec": {"finalizers": finalizers}});
    cluster.make("/api/v1/namespaces", lab);
    cluster.settle();
    cluster.delete("/api/v1/namespaces/lab", json!({}));
    cluster.settle();
    let (status, mut namespace) = cluster.get("/api/v1/namespaces/lab");
    assert_eq!(status, 200, "{namespace}");
    assert_eq!(namespace["spec"]["finalizers"], json!(["example.com/archive"]));
    let conditions = namespace["status"]["conditions"].as_array().expect("conditions");
    assert!(conditions.iter().all(|condition| condition["status"] == "False"), "{namespace}");
    namespace["spec"]["finalizers"] = json!([]);
    let (status, _) = cluster.put("/api/v1/namespaces/lab/finalize", namespace);
    assert_eq!(status, 200);
    cluster.settle();
    assert_eq!(cluster.get("/api/v1/namespaces/lab").0, 404);
}

#[test]
fn a_namespace_without_finalizers_goes_when_it_is_empty() {
    let mut cluster = Cluster::new();
    cluster.make("/api/v1/namespaces", json!({"metadata": {"name": "lab"}}));
    cluster.settle();
    let (_, mut namespace) = cluster.get("/api/v1/namespaces/lab");
    namespace["spec"]["finalizers"] = json!([]);
    assert_eq!(cluster.put("/api/v1/namespaces/lab/finalize", namespace).0, 200);
    cluster.delete("/api/v1/namespaces/lab", json!({}));
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
