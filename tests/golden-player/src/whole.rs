//! Whole objects, but for what is different in every run: uids, versions, times, and who wrote what when.

use serde_json::{Map, Value};

use super::normalise::Normaliser;
use super::object::text;
use super::resource::Resource;

/// Members that are left out, wherever they stand.
const OF_ONE_RUN: [&str; 12] = [
    "creationTimestamp",
    "deletionTimestamp",
    "firstTimestamp",
    "lastProbeTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "managedFields",
    "resourceVersion",
    "startTime",
    "startedAt",
    "uid",
];

/// The objects that there were at the end, without events, by name.
pub fn whole(objects: &[(Resource, Value)], normaliser: &Normaliser) -> Vec<Value> {
    let lasting = objects.iter().filter(|(resource, _)| *resource != Resource::Events);
    let mut whole: Vec<Value> =
        lasting.map(|(_, object)| normaliser.value(&as_recorded(object))).collect();
    whole.sort_by_cached_key(|object| {
        (text(&object["metadata"]["name"]).to_owned(), object.to_string())
    });
    whole
}

/// The items of Kubernetes' lists do not say of what kind they are, and the recorded server gave pods no
/// service account.
fn as_recorded(object: &Value) -> Value {
    let mut object = lasting_part(object);
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|key, _| key != "apiVersion" && key != "kind");
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, value| !key.starts_with("serviceAccount") || value != "default");
    }
    object
}

fn lasting_part(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let lasting = fields.iter().filter(|(key, _)| !OF_ONE_RUN.contains(&key.as_str()));
            let lasting = lasting.map(|(key, value)| (key.clone(), lasting_part(value)));
            Value::Object(lasting.collect::<Map<_, _>>())
        }
        Value::Array(members) => members.iter().map(lasting_part).collect(),
        other => other.clone(),
    }
}
