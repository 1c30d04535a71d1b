//! Projections: what of an object is compared between runs.

use serde_json::{Map, Value, json};

use super::object::{is_deleting, is_ready, is_set, lookup, members, name, text};
use super::resource::Resource;

/// The comparable part of an object.
pub fn project(resource: Resource, object: &Value) -> Value {
    if resource == Resource::Events {
        return event(object);
    }
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("kind", resource.kind().into());
    put("name", name(object).into());
    if is_deleting(object) {
        put("deleting", true.into());
    }
    if is_set(&metadata["finalizers"]) {
        put("finalizers", metadata["finalizers"].clone());
    }
    if matches!(resource, Resource::Deployments | Resource::ReplicaSets | Resource::StatefulSets) {
        put("generation", metadata["generation"].clone());
        put("replicas", spec["replicas"].clone());
        put("images", images(&spec["template"]["spec"]));
        put("conditions", conditions(status));
    }
    match resource {
        Resource::Deployments => {
            if is_set(&spec["paused"]) {
                put("paused", true.into());
            }
            put("annotations", annotations(metadata));
            put("status", set_fields(status, &DEPLOYMENT_STATUS));
        }
        Resource::ReplicaSets => {
            if is_set(&spec["minReadySeconds"]) {
                put("minReadySeconds", spec["minReadySeconds"].clone());
            }
            put("annotations", annotations(metadata));
            put("labels", labels(metadata));
            put("owners", owners(metadata));
            put("selector", spec["selector"]["matchLabels"].clone());
            put("status", set_fields(status, &REPLICA_SET_STATUS));
        }
        Resource::StatefulSets => {
            put("strategy", spec["updateStrategy"].clone());
            put("status", set_fields(status, &STATEFUL_SET_STATUS));
        }
        Resource::ControllerRevisions => {
            put("revision", object["revision"].clone());
            put("owners", owners(metadata));
            put("labels", labels(metadata));
        }
        Resource::Pods => {
            put("labels", labels(metadata));
            put("owners", owners(metadata));
            if is_set(&metadata["annotations"]) {
                put("annotations", annotations(metadata));
            }
            put("images", images(spec));
            put("phase", status["phase"].clone());
            put("ready", is_ready(object).into());
            for (key, value) in [("node", &spec["nodeName"]), ("reason", &status["reason"])] {
                if is_set(value) {
                    put(key, value.clone());
                }
            }
        }
        Resource::PersistentVolumeClaims => {
            put("owners", owners(metadata));
            put("labels", labels(metadata));
            let size = lookup(spec, "resources.requests.storage");
            put("size", size.cloned().unwrap_or_default());
        }
        Resource::Events | Resource::ResourceQuotas | Resource::Services => {}
    }
    Value::Object(fields)
}

const DEPLOYMENT_STATUS: [&str; 8] = [
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
];

const REPLICA_SET_STATUS: [&str; 6] = [
    "observedGeneration",
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "terminatingReplicas",
];

const STATEFUL_SET_STATUS: [&str; 9] = [
    "observedGeneration",
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "currentRevision",
    "updateRevision",
    "collisionCount",
];

/// Events of both API groups: core names what it is about `involvedObject`, the other `regarding`.
fn event(object: &Value) -> Value {
    let either = |a: &str, b: &str| {
        let first = &object[a];
        if is_set(first) { first.clone() } else { object[b].clone() }
    };
    let about = either("involvedObject", "regarding");
    let component = &object["source"]["component"];
    json!({
        "kind": "Event",
        "name": name(object),
        "type": object["type"],
        "reason": object["reason"],
        "message": either("message", "note"),
        "object": format!("{}/{}", text(&about["kind"]), text(&about["name"])),
        "count": if is_set(&object["count"]) { object["count"].clone() } else { 1.into() },
        "component":
            if is_set(component) { component.clone() } else { object["reportingComponent"].clone() },
    })
}

fn labels(metadata: &Value) -> Value {
    if is_set(&metadata["labels"]) { metadata["labels"].clone() } else { json!({}) }
}

/// Without what only kubectl reads.
fn annotations(metadata: &Value) -> Value {
    let all = metadata["annotations"].as_object().into_iter().flatten();
    let kept = all.filter(|(key, _)| *key != "kubectl.kubernetes.io/last-applied-configuration");
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn owners(metadata: &Value) -> Value {
    let owners = members(&metadata["ownerReferences"]).iter().map(|owner| {
        json!({
            "kind": owner["kind"],
            "name": owner["name"],
            "controller": owner["controller"] == true,
            "block": owner["blockOwnerDeletion"] == true,
        })
    });
    owners.collect()
}

/// Without times.
fn conditions(status: &Value) -> Value {
    let conditions = members(&status["conditions"]).iter();
    conditions.map(|one| set_fields(one, &["type", "status", "reason", "message"])).collect()
}

fn images(pod_spec: &Value) -> Value {
    members(&pod_spec["containers"]).iter().map(|container| container["image"].clone()).collect()
}

/// Those of the fields that are set: a server may leave zeros out or write them.
fn set_fields(object: &Value, keys: &[&str]) -> Value {
    let set = keys.iter().filter(|key| is_set(&object[**key]));
    Value::Object(set.map(|key| ((*key).to_owned(), object[*key].clone())).collect())
}
