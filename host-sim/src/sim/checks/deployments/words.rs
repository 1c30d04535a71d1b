//! What Deployments and ReplicaSets say, in plain words.

use serde_json::Value;

use super::super::Facts;

/// The label that tells the ReplicaSets of a Deployment, and their pods, from each other.
pub(in crate::sim) const HASH: &str = "pod-template-hash";
pub(in crate::sim) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(in crate::sim) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(in crate::sim) const MOST: &str = "deployment.kubernetes.io/max-replicas";
const ROLLBACK: &str = "deprecated.deployment.rollback.to";

impl Facts {
    /// Namespace and name of the controller.
    pub(in crate::sim) fn owner_key(&self) -> String {
        let owners = self.object["metadata"]["ownerReferences"].as_array();
        let owner = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
        let name = owner.and_then(|owner| owner["name"].as_str()).unwrap_or_default();
        format!("{}/{name}", self.namespace())
    }

    /// A number in an annotation.
    pub(in crate::sim) fn number(&self, annotation: &str) -> Option<i64> {
        self.annotation(annotation)?.parse().ok()
    }

    /// The pod template without what tells ReplicaSets from each other.
    pub(in crate::sim) fn bare_template(&self) -> Value {
        let mut template = self.object["spec"]["template"].clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove(HASH);
        }
        template
    }

    // Of Deployments.

    pub(in crate::sim) fn is_rolling(&self) -> bool {
        self.object["spec"]["strategy"]["type"] == "RollingUpdate"
    }

    pub(in crate::sim) fn is_paused(&self) -> bool {
        self.object["spec"]["paused"] == true
    }

    pub(in crate::sim) fn rolls_back(&self) -> bool {
        self.number(ROLLBACK).is_some()
    }

    /// How many pods there may be beyond those that are wanted.
    pub(in crate::sim) fn surge(&self) -> i64 {
        if self.is_rolling() { self.share("maxSurge", 99) } else { 0 }
    }

    /// How many pods may be missing.
    pub(in crate::sim) fn missing(&self) -> i64 {
        let wanted = self.spec("replicas");
        let missing = self.share("maxUnavailable", 0);
        let none = missing == 0 && self.surge() == 0;
        (if none { 1 } else { missing }).min(wanted)
    }

    fn share(&self, field: &str, round: i64) -> i64 {
        let share = &self.object["spec"]["strategy"]["rollingUpdate"][field];
        let percent = share.as_str().and_then(|share| share.strip_suffix('%')?.parse::<i64>().ok());
        let pods = percent.map(|percent| (self.spec("replicas") * percent + round) / 100);
        pods.or(share.as_i64()).unwrap_or(0)
    }

    // Of ReplicaSets.

    /// The older come first.
    pub(in crate::sim) fn age(&self) -> (&str, &str) {
        let created = self.object["metadata"]["creationTimestamp"].as_str();
        (created.unwrap_or_default(), self.name())
    }

    /// Whether its template is that one, but for what tells ReplicaSets from each other.
    pub(in crate::sim) fn is_of_template(&self, bare: &Value) -> bool {
        let own = self.template();
        let metadata = (&own["metadata"], &bare["metadata"]);
        own.get("spec") == bare.get("spec")
            && same_but(metadata.0, metadata.1, "labels")
            && same_but(&metadata.0["labels"], &metadata.1["labels"], HASH)
    }

    /// Whether its size is about to follow that of its Deployment.
    pub(in crate::sim) fn is_to_be_resized(&self, wanted: i64) -> bool {
        let desired = self.number(DESIRED);
        self.spec("replicas") > 0 && desired.is_some_and(|desired| desired != wanted)
    }
}

/// Whether two objects have the same members, but for that one.
fn same_but(one: &Value, other: &Value, but: &str) -> bool {
    let members = |object: &Value| {
        let all = object.as_object().map_or(0, serde_json::Map::len);
        all - usize::from(object.get(but).is_some())
    };
    let mut own = one.as_object().into_iter().flatten().filter(|(name, _)| *name != but);
    members(one) == members(other) && own.all(|(name, value)| other.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn templates_are_the_same_but_for_the_hash() {
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"priority": 1}});
        let is_of = |own: &Value| {
            let object = json!({"spec": {"template": own}});
            Facts { object, ..Facts::default() }.is_of_template(&template)
        };
        let mut own = template.clone();
        own["metadata"]["labels"][HASH] = "7d9f".into();
        assert!(is_of(&own));
        for (path, value) in [
            ("/metadata/labels/app", json!("other")),
            ("/metadata/labels", json!({"app": "web", "more": "x"})),
            ("/metadata", json!({"labels": {"app": "web"}, "annotations": {"a": "b"}})),
            ("/metadata/labels", json!({})),
            ("/spec/priority", json!(2)),
        ] {
            let mut other = own.clone();
            if let Some(place) = other.pointer_mut(path) {
                *place = value;
            }
            assert!(!is_of(&other), "{path}");
        }
    }
}
