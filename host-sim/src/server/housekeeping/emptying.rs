//! Emptying a namespace that is to go: its pods first, then everything else, so that a pod that
//! is still stopping finds what it uses. The namespace's conditions tell what remains.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::store::ResourceId;
use crate::time::Timestamp;

use super::super::Server;
use super::super::delete::{DeleteOptions, Propagation};
use super::super::update::ends_with_its_finalizers;

/// The finalizer in a namespace's spec that stands for its contents.
const CONTENTS: &str = "kubernetes";

/// What is still there after everything was told to go.
#[derive(Debug, Default)]
struct Remains {
    /// By resource and group, as upstream writes them: `pods.`, `jobs.batch`.
    objects: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    /// Why something could not be told to go.
    failures: Vec<String>,
}

impl Server {
    /// Deletes what a terminating namespace still has; ends the namespace when that is nothing.
    pub(super) fn empty_namespace(&mut self, now: Timestamp, name: &str) {
        let id = self.resources.namespaces;
        match self.store.get(id, name) {
            Some(namespace) if namespace.deletion.is_some() => {}
            _ => return,
        }
        let pods = self.resources.pods;
        let mut remains = Remains::default();
        self.empty_of(now, name, pods, &mut remains);
        if remains.is_nothing() {
            let others = (0..self.resources.by_storage.len()).map(|id| ResourceId(id as u16));
            for other in others.filter(|other| *other != pods) {
                if self.resources.kind_of(other).namespaced {
                    self.empty_of(now, name, other, &mut remains);
                }
            }
        }
        let Some(namespace) = self.store.get(id, name).cloned() else { return };
        let conditions = remains.conditions();
        self.amend(now, id, &namespace, |object| set_conditions(object, &conditions, now));
        if remains.is_nothing() {
            self.finish_namespace(now, name);
        }
    }

    /// Tells all objects of a resource to go, and counts those that do not go at once.
    fn empty_of(&mut self, now: Timestamp, name: &str, id: ResourceId, remains: &mut Remains) {
        let prefix = format!("{name}/");
        let staying = self.store.resource(id).range(&prefix, None);
        let staying: Vec<_> =
            staying.filter(|e| e.deletion.is_none()).map(|e| e.key.clone()).collect();
        let options =
            DeleteOptions { propagation: Some(Propagation::Background), ..Default::default() };
        for key in staying {
            if let Err(status) = self.delete_object(now, id, &key, &options) {
                remains.failures.push(status.message);
            }
        }
        let kind = self.resources.kind_of(id);
        for entry in self.store.resource(id).range(&prefix, None) {
            *remains.objects.entry(format!("{}.{}", kind.plural, kind.group)).or_default() += 1;
            for finalizer in &entry.finalizers {
                *remains.finalizers.entry(finalizer.to_string()).or_default() += 1;
            }
        }
    }

    /// Takes the finalizer off that stands for the contents; others may still hold the namespace.
    fn finish_namespace(&mut self, now: Timestamp, name: &str) {
        let id = self.resources.namespaces;
        let Some(namespace) = self.store.get(id, name).cloned() else { return };
        let mut object = namespace.parse();
        if ends_with_its_finalizers(self.resources.kind_of(id), &object) {
            self.commit_removal(now, id, name, &mut object);
            return;
        }
        self.amend(now, id, &namespace, |object| {
            if let Some(finalizers) = object["spec"]["finalizers"].as_array_mut() {
                finalizers.retain(|finalizer| finalizer != CONTENTS);
            }
        });
    }
}

/// A condition: type, whether it is so, reason and message.
type Condition = (&'static str, bool, &'static str, String);

impl Remains {
    fn is_nothing(&self) -> bool {
        self.objects.is_empty() && self.failures.is_empty()
    }

    /// In upstream's order and words.
    fn conditions(&self) -> [Condition; 5] {
        let fine = |kind, reason, message: &str| (kind, false, reason, message.to_owned());
        [
            fine(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            fine(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            self.content_failure(),
            self.content_remaining(),
            self.finalizers_remaining(),
        ]
    }

    fn content_failure(&self) -> Condition {
        let kind = "NamespaceDeletionContentFailure";
        if self.failures.is_empty() {
            let message = "All content successfully deleted, may be waiting on finalization";
            return (kind, false, "ContentDeleted", message.to_owned());
        }
        let mut failures = self.failures.clone();
        failures.sort();
        let message = format!(
            "Failed to delete all resource types, {} remaining: {}",
            failures.len(),
            failures.join(", ")
        );
        (kind, true, "ContentDeletionFailed", message)
    }

    fn content_remaining(&self) -> Condition {
        let kind = "NamespaceContentRemaining";
        if self.objects.is_empty() {
            let message = "All content successfully removed";
            return (kind, false, "ContentRemoved", message.to_owned());
        }
        let list = listed(&self.objects, |name, count| format!("{name} has {count}"));
        (kind, true, "SomeResourcesRemain", format!("Some resources are remaining: {list}"))
    }

    fn finalizers_remaining(&self) -> Condition {
        let kind = "NamespaceFinalizersRemaining";
        if self.finalizers.is_empty() {
            let message = "All content-preserving finalizers finished";
            return (kind, false, "ContentHasNoFinalizers", message.to_owned());
        }
        let list = listed(&self.finalizers, |name, count| format!("{name} in {count}"));
        let message = format!("Some content in the namespace has finalizers remaining: {list}");
        (kind, true, "SomeFinalizersRemain", message)
    }
}

fn listed(counts: &BTreeMap<String, usize>, told: impl Fn(&str, usize) -> String) -> String {
    let told = |(name, count): (&String, &usize)| told(name, *count) + " resource instances";
    let mut parts: Vec<String> = counts.iter().map(told).collect();
    parts.sort();
    parts.join(", ")
}

/// Sets the conditions; the time of a transition moves only when the status does.
fn set_conditions(namespace: &mut Value, wanted: &[Condition], now: Timestamp) {
    let conditions = &mut namespace["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    for (kind, holds, reason, message) in wanted {
        let status = if *holds { "True" } else { "False" };
        let mut condition = json!({
            "type": kind, "status": status, "lastTransitionTime": now.to_rfc3339(),
            "reason": reason, "message": message,
        });
        match conditions.iter_mut().find(|condition| condition["type"] == *kind) {
            Some(before) => {
                if before["status"] == status {
                    condition["lastTransitionTime"] = before["lastTransitionTime"].take();
                }
                *before = condition;
            }
            None => conditions.push(condition),
        }
    }
}
