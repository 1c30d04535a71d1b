//! Tests of PersistentVolumeClaims: who keeps them, and with whom they go.

use super::*;

fn claim(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

/// A pod on a node that uses a claim.
fn user(name: &str, claim: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = json!("n");
    pod["spec"]["volumes"] = json!([{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

#[test]
fn a_new_claim_is_pending_and_protected_whatever_its_maker_says() {
    let mut cluster = Cluster::new();
    let mut wanted = claim("data");
    wanted["metadata"]["finalizers"] = json!(["example.com/mine"]);
    wanted["status"] = json!({"phase": "Bound"});
    let made = cluster.make(CLAIMS, wanted);
    assert_eq!(made["status"], json!({"phase": "Pending"}));
    assert_eq!(
        made["metadata"]["finalizers"],
        json!(["example.com/mine", "kubernetes.io/pvc-protection"])
    );
    assert_eq!(made["spec"]["volumeMode"], "Filesystem");
}

#[test]
fn the_status_of_a_claim_is_written_through_its_subresource_only() {
    let mut cluster = Cluster::new();
    cluster.make(CLAIMS, claim("data"));
    let path = format!("{CLAIMS}/data");
    let bound = json!({"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}});
    let (_, object) = cluster.merge(&path, bound.clone());
    assert_eq!(
        (&object["spec"]["volumeName"], &object["status"]["phase"]),
        (&json!("pv"), &json!("Pending"))
    );
    let (_, object) = cluster.merge(
        &format!("{path}/status"),
        json!({"spec": {"volumeName": "other"}, "status": bound["status"]}),
    );
    assert_eq!(
        (&object["spec"]["volumeName"], &object["status"]["phase"]),
        (&json!("pv"), &json!("Bound"))
    );
}

#[test]
fn a_claim_goes_when_no_pod_on_a_node_uses_it_any_more() {
    let mut cluster = Cluster::new();
    for name in ["unused", "waited-for", "used"] {
        cluster.make(CLAIMS, claim(name));
    }
    let mut waiting = user("waiting", "waited-for");
    waiting["spec"]["nodeName"] = Value::Null;
    cluster.make(PODS, waiting);
    cluster.make(PODS, user("user", "used"));
    // A pod that has ended may still have its volumes mounted.
    cluster.merge(&format!("{PODS}/user/status"), json!({"status": {"phase": "Failed"}}));
    for name in ["unused", "waited-for", "used"] {
        cluster.delete(&format!("{CLAIMS}/{name}"), json!({}));
    }
    cluster.settle();
    assert_eq!(cluster.names(CLAIMS), ["used"]);
    let (_, used) = cluster.get(&format!("{CLAIMS}/used"));
    assert!(used["metadata"]["deletionTimestamp"].is_string());
    let (status, refused) = cluster.post(CLAIMS, claim("used"));
    assert_eq!(status, 409);
    assert_eq!(
        refused["message"],
        "object is being deleted: persistentvolumeclaims \"used\" already exists"
    );
    cluster.delete(&format!("{PODS}/user"), json!({"gracePeriodSeconds": 0}));
    cluster.settle();
    assert!(cluster.names(CLAIMS).is_empty());
}

#[test]
fn a_claim_goes_with_the_set_or_the_pod_that_owns_it() {
    let mut cluster = Cluster::new();
    let set = cluster.make(STATEFUL_SETS, stateful_set("db"));
    let scaled_away = cluster.make(PODS, owned(user("db-1", "data-db-1"), &set));
    let kept = cluster.make(PODS, owned(user("db-0", "data-db-0"), &set));
    for (name, owner) in [("data-db-0", &set), ("data-db-1", &scaled_away), ("log-db-0", &kept)] {
        cluster.make(CLAIMS, owned(claim(name), owner));
    }
    cluster.make(CLAIMS, claim("retained"));
    let now = json!({"gracePeriodSeconds": 0});
    cluster.delete(&format!("{PODS}/db-1"), now.clone());
    cluster.settle();
    assert_eq!(cluster.names(CLAIMS), ["data-db-0", "log-db-0", "retained"]);
    cluster.delete(&format!("{STATEFUL_SETS}/db"), json!({"propagationPolicy": "Background"}));
    cluster.settle();
    let (_, claim) = cluster.get(&format!("{CLAIMS}/data-db-0"));
    assert!(claim["metadata"]["deletionTimestamp"].is_string(), "its pod is still there");
    cluster.delete(&format!("{PODS}/db-0"), now);
    cluster.settle();
    assert_eq!(cluster.names(CLAIMS), ["retained"]);
}

#[test]
fn a_namespace_that_goes_takes_its_claims_once_their_pods_have_gone() {
    let mut cluster = Cluster::new();
    cluster.make("/api/v1/namespaces", json!({"metadata": {"name": "shop"}}));
    let pods = "/api/v1/namespaces/shop/pods";
    cluster.make("/api/v1/namespaces/shop/persistentvolumeclaims", claim("data"));
    cluster.make(pods, user("user", "data"));
    cluster.delete("/api/v1/namespaces/shop", json!({}));
    cluster.settle();
    assert_eq!(cluster.get("/api/v1/namespaces/shop").0, 200);
    cluster.delete(&format!("{pods}/user"), json!({"gracePeriodSeconds": 0}));
    cluster.settle();
    assert_eq!(cluster.get("/api/v1/namespaces/shop").0, 404);
}
