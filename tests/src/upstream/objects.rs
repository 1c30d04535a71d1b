//! The objects of upstream's tests.

use serde_json::{Value, json};

/// The image that every test begins with.
pub(super) const IMAGE: &str = "fakeimage";

/// A Deployment whose pods have the label `name=test`.
pub(super) fn deployment(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"name": "test"}},
            "strategy": {"type": "RollingUpdate"},
            "template": template(),
        },
    })
}

/// A ReplicaSet whose pods have the label `name=test`.
pub(super) fn replica_set(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": {"name": "test"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"name": "test"}},
            "template": template(),
        },
    })
}

/// A StatefulSet whose pods have the label `name=test`, one after the other.
pub(super) fn stateful_set(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"name": "test"}},
        "spec": {
            "replicas": replicas,
            "serviceName": "fake-service-name",
            "selector": {"matchLabels": {"name": "test"}},
            "template": template(),
        },
    })
}

/// The same with a claim `data` for each pod, in place of a volume that the template has under this name.
pub(super) fn stateful_set_with_claims(name: &str, replicas: i64) -> Value {
    let mut set = stateful_set(name, replicas);
    let pod = &mut set["spec"]["template"]["spec"];
    pod["volumes"] = json!([
        {"name": "data", "persistentVolumeClaim": {"claimName": "fake-pvc-name"}},
        {"name": "home", "hostPath": {"path": "/home"}},
    ]);
    pod["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data/"}, {"name": "home", "mountPath": "/home"}]);
    let claim =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
    set
}

/// A pod that the ReplicaSet above would take for its own.
pub(super) fn matching_pod(name: &str) -> Value {
    let template = template();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    })
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"name": "test"}},
        "spec": {"containers": [{"name": "fake-name", "image": IMAGE}]},
    })
}

/// A patch of the image in a template.
pub(super) fn image_patch(image: &str) -> Value {
    let containers = json!([{"name": "fake-name", "image": image}]);
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

/// The only reference by which something controls an object.
pub(super) fn controller_of(object: &Value) -> Option<&Value> {
    let references = object["metadata"]["ownerReferences"].as_array()?;
    references.iter().find(|reference| reference["controller"] == true)
}

/// Whether two templates are the same but for the label that tells their ReplicaSets apart.
pub(super) fn is_same_template(one: &Value, other: &Value) -> bool {
    let without_hash = |template: &Value| {
        let mut template = template.clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove("pod-template-hash");
        }
        template
    };
    without_hash(one) == without_hash(other)
}
