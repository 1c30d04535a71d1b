//! Tests of `managedFields`: who owns what of an object that the server has completed.

use super::*;

/// The fields of the only manager.
fn owned_fields(object: &Value) -> &Value {
    let managers = object["metadata"]["managedFields"].as_array().expect("managers");
    let [manager] = &managers[..] else { panic!("not one manager: {managers:?}") };
    &manager["fieldsV1"]
}

fn claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

#[test]
fn what_the_server_adds_to_a_new_object_is_nobodys() {
    let mut cluster = Cluster::new();
    let made = cluster.make(CLAIMS, claim());
    assert_eq!(
        owned_fields(&made),
        &json!({"f:spec": {
            "f:accessModes": {}, "f:resources": {"f:requests": {".": {}, "f:storage": {}}},
            "f:volumeMode": {},
        }}),
        "neither status nor finalizer"
    );
    let made = cluster.make(PODS, pod("p"));
    assert!(made["spec"]["tolerations"].is_array() && made["spec"]["priority"].is_number());
    let spec = &owned_fields(&made)["f:spec"];
    assert!(spec["f:dnsPolicy"].is_object(), "a default is owned like a field that was given");
    for field in ["f:tolerations", "f:priority", "f:serviceAccountName", "f:serviceAccount"] {
        assert!(spec[field].is_null(), "{field}");
    }
}

#[test]
fn who_owns_nothing_of_the_metadata_any_more_leaves_its_name_in_place() {
    let mut cluster = Cluster::new();
    let path = format!("{CLAIMS}/data");
    let mut annotated = claim();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    assert_eq!(cluster.apply(&path, "fieldManager=a", annotated).0, 201);
    let (status, applied) = cluster.apply(&path, "fieldManager=a", claim());
    assert_eq!(status, 200, "{applied}");
    assert_eq!(applied["metadata"]["name"], "data");
    assert_eq!(applied["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    assert!(applied["metadata"]["annotations"].is_null());
}
