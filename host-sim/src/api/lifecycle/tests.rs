//! Creates and updates against the words of the specification.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::body::Parsed;
use crate::api::decode::{FieldValidation, decode_object};
use crate::api::kind;
use crate::api::testing::any_json;

const NOW: Timestamp = Timestamp::from_unix_millis(1_700_000_000_000);

fn find(group: &str, plural: &str) -> &'static Kind {
    kind::find(group, "v1", plural).unwrap()
}

fn decoded(kind: &Kind, value: Value) -> Value {
    let parsed = Parsed { value, duplicates: Vec::new() };
    decode_object(kind, parsed, FieldValidation::Strict).unwrap().object
}

fn created(kind: &Kind, value: Value) -> Value {
    let mut object = decoded(kind, value);
    prepare_create(kind, &mut object, NOW, "uid-1");
    validate_create(kind, &object).unwrap();
    object
}

fn updated(kind: &Kind, subresource: &str, old: &Value, value: Value) -> Result<Value, Status> {
    let mut new = decoded(kind, value);
    prepare_update(kind, subresource, &mut new, old);
    validate_update(kind, subresource, &new, old)?;
    Ok(new)
}

fn web() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
           "metadata": {"name": "web", "namespace": "n", "labels": {"app": "web"}},
           "spec": {"selector": {"matchLabels": {"app": "web"}}, "replicas": 3,
                    "template": {"metadata": {"labels": {"app": "web"}},
                                 "spec": {"containers": [{"name": "app", "image": "img:v1"}]}}}})
}

fn pod() -> Value {
    json!({"metadata": {"name": "a", "namespace": "n"},
           "spec": {"containers": [{"name": "app", "image": "img:v1"}]}})
}

#[test]
fn generated_names_are_cut_to_fit() {
    assert_eq!(generate_name("web-", "abcde"), "web-abcde");
    assert_eq!(generate_name(&"x".repeat(70), "abcde").len(), 63);
    assert_eq!(generate_name(&"ä".repeat(40), "abcde"), format!("{}abcde", "ä".repeat(29)));
}

#[test]
fn a_new_object_gets_identity_generation_and_an_empty_status() {
    let mut given = web();
    given["metadata"]["uid"] = json!("mine");
    given["metadata"]["generation"] = json!(7);
    given["metadata"]["resourceVersion"] = json!("9");
    given["status"] = json!({"replicas": 5});
    let object = created(find("apps", "deployments"), given);
    assert_eq!(
        object["metadata"],
        json!({"name": "web", "namespace": "n", "labels": {"app": "web"}, "uid": "uid-1",
               "creationTimestamp": "2023-11-14T22:13:20Z", "generation": 1})
    );
    assert_eq!(object["status"], json!({}));
    let pod = created(find("", "pods"), pod());
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(pod["metadata"]["generation"], 1);
}

#[test]
fn namespaces_and_jobs_get_what_only_the_server_knows() {
    let namespace = created(find("", "namespaces"), json!({"metadata": {"name": "n"}}));
    assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], "n");
    let job = created(
        find("batch", "jobs"),
        json!({"metadata": {"name": "j", "namespace": "n"},
               "spec": {"template": {"spec": {"restartPolicy": "Never",
                                              "containers": [{"name": "a", "image": "i:1"}]}}}}),
    );
    assert_eq!(
        job["spec"]["selector"],
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-1"}})
    );
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
}

#[test]
fn generation_counts_changes_of_the_spec_and_of_a_deployments_annotations() {
    let kind = find("apps", "deployments");
    let old = created(kind, web());
    let generation = |subresource: &str, change: &dyn Fn(&mut Value)| {
        let mut value = old.clone();
        change(&mut value);
        updated(kind, subresource, &old, value).unwrap()["metadata"]["generation"].clone()
    };
    assert_eq!(generation("", &|_| {}), 1);
    assert_eq!(generation("", &|d| d["spec"]["replicas"] = json!(4)), 2);
    assert_eq!(generation("", &|d| d["metadata"]["annotations"] = json!({"a": "b"})), 2);
    assert_eq!(generation("", &|d| d["metadata"]["labels"]["a"] = json!("b")), 1);
    assert_eq!(generation("", &|d| d["status"]["replicas"] = json!(1)), 1);
    assert_eq!(generation("status", &|d| d["metadata"]["annotations"] = json!({"a": "b"})), 1);
    assert_eq!(generation("scale", &|d| d["spec"]["replicas"] = json!(4)), 2);
}

#[test]
fn each_endpoint_changes_its_own_part() {
    let kind = find("apps", "deployments");
    let old = created(kind, web());
    let mut value = old.clone();
    value["spec"]["replicas"] = json!(9);
    value["status"]["replicas"] = json!(2);
    value["metadata"]["labels"]["x"] = json!("y");
    value["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    let main = updated(kind, "", &old, value.clone()).unwrap();
    assert_eq!((&main["spec"]["replicas"], &main["status"]), (&json!(9), &json!({})));
    let status = updated(kind, "status", &old, value).unwrap();
    assert_eq!(status["spec"], old["spec"]);
    assert_eq!(status["status"]["replicas"], 2);
    assert_eq!(status["metadata"]["labels"], old["metadata"]["labels"]);
    assert_eq!(
        status["metadata"]["annotations"],
        json!({"deployment.kubernetes.io/revision": "1"})
    );
}

#[test]
fn a_replication_controller_starts_without_status_and_counts_changes_of_its_spec() {
    let kind = find("", "replicationcontrollers");
    let mut given = web();
    given["apiVersion"] = json!("v1");
    given["kind"] = json!("ReplicationController");
    given["spec"]["selector"] = json!({"app": "web"});
    given["metadata"]["generation"] = json!(7);
    given["status"] = json!({"replicas": 5, "readyReplicas": 5});
    let old = created(kind, given);
    assert_eq!(
        (&old["status"], &old["metadata"]["generation"]),
        (&json!({"replicas": 0}), &json!(1))
    );
    let mut value = old.clone();
    value["spec"]["selector"] = json!({"app": "web", "tier": "front"});
    value["spec"]["template"]["metadata"]["labels"]["tier"] = json!("front");
    value["status"]["replicas"] = json!(2);
    value["metadata"]["annotations"] = json!({"a": "b"});
    let main = updated(kind, "", &old, value.clone()).unwrap();
    assert_eq!((&main["spec"], &main["status"]), (&value["spec"], &old["status"]));
    assert_eq!(main["metadata"]["generation"], 2);
    let status = updated(kind, "status", &old, value.clone()).unwrap();
    assert_eq!((&status["spec"], &status["status"]), (&old["spec"], &value["status"]));
    assert_eq!(status["metadata"]["generation"], 1);
    let mut annotated = old.clone();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    assert_eq!(updated(kind, "", &old, annotated).unwrap()["metadata"]["generation"], 1);
}

#[test]
fn identity_and_deletion_cannot_be_changed() {
    let kind = find("", "pods");
    let mut old = created(kind, pod());
    old["metadata"]["deletionTimestamp"] = json!("2023-11-14T22:14:00Z");
    old["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    old["metadata"]["finalizers"] = json!(["a.b/c"]);
    let mut value = old.clone();
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        value["metadata"].as_object_mut().unwrap().remove(field);
    }
    assert_eq!(updated(kind, "", &old, value).unwrap(), old);
    let mut value = old.clone();
    value["metadata"]["finalizers"] = json!(["a.b/c", "new/one"]);
    let error = updated(kind, "", &old, value).unwrap_err();
    assert_eq!(
        error.message,
        "Pod \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if \
         the object is being deleted, found new finalizers []string{\"new/one\"}"
    );
    let mut value = old.clone();
    value["metadata"]["uid"] = json!("other");
    let error = updated(kind, "", &old, value).unwrap_err();
    assert!(error.message.contains("metadata.uid: Invalid value: \"other\": field is immutable"));
}

#[test]
fn a_lease_must_be_updated_with_a_version() {
    let status = version_required(find("coordination.k8s.io", "leases"), "l");
    assert_eq!(
        status.message,
        "Lease.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: \
         0x0: must be specified for an update"
    );
}

proptest! {
    #[test]
    fn an_update_that_changes_nothing_changes_nothing(value in any_json()) {
        for kind in kind::ALL {
            let parsed = Parsed { value: value.clone(), duplicates: Vec::new() };
            let Ok(decoded) = decode_object(kind, parsed, FieldValidation::Ignore) else { continue };
            let mut old = decoded.object;
            prepare_create(kind, &mut old, NOW, "u");
            for subresource in ["", "status", "scale", "finalize"] {
                let mut new = old.clone();
                prepare_update(kind, subresource, &mut new, &old);
                prop_assert_eq!(&new, &old, "{} {}", kind.kind, subresource);
                let _ = validate_update(kind, subresource, &new, &old);
            }
            let _ = validate_create(kind, &old);
        }
    }

    #[test]
    fn any_pair_of_values_is_taken_without_panic(a in any_json(), b in any_json()) {
        for kind in kind::ALL {
            for subresource in ["", "status", "finalize"] {
                let mut new = a.clone();
                prepare_update(kind, subresource, &mut new, &b);
                let _ = validate_update(kind, subresource, &a, &b);
            }
            let _ = validate_create(kind, &a);
            prepare_create(kind, &mut b.clone(), NOW, "u");
        }
    }
}
