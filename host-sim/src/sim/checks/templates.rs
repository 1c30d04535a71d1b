//! A Deployment has at most one ReplicaSet per pod template.

use serde_json::Value;

use super::Verdict;
use super::model::{Change, Facts, Model};

pub(super) const PROPERTY: &str = "one ReplicaSet per template";

pub(super) fn check(model: &Model, change: &Change) -> Verdict {
    let (None, Some(set)) = (&change.before, &change.after) else { return Ok(()) };
    let Some(owner) = set.controller.as_deref().filter(|_| set.plural == "replicasets") else {
        return Ok(());
    };
    let template = without_hash(set);
    let twin = model
        .controlled_by(owner)
        .find(|other| other.uid != set.uid && !other.deleting && without_hash(other) == template);
    match twin {
        Some(twin) => Err((PROPERTY, format!("{} and {} are equal", twin.key, set.key))),
        None => Ok(()),
    }
}

fn without_hash(set: &Facts) -> Value {
    let mut template = set.object["spec"]["template"].clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove("pod-template-hash");
    }
    template
}
