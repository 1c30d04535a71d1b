//! The cluster as the server has it, in the few facts that checks need.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::store::{self, ChangeKind};

use super::super::clock::Moment;
use super::past::Past;

/// All objects of interest, by uid.
#[derive(Debug, Default)]
pub(in crate::sim) struct Model {
    pub(in crate::sim) objects: BTreeMap<String, Rc<Facts>>,
    /// Objects that are gone, and since when.
    pub(in crate::sim) gone: BTreeMap<String, Moment>,
    /// What there was.
    pub(in crate::sim) past: Past,
}

/// What is known of an object.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Facts {
    pub(in crate::sim) plural: &'static str,
    pub(in crate::sim) key: String,
    pub(in crate::sim) uid: String,
    pub(in crate::sim) deleting: bool,
    /// The uid of its controller.
    pub(in crate::sim) controller: Option<String>,
    pub(in crate::sim) object: Value,
}

/// A change, before and after.
pub(in crate::sim) struct Change {
    pub(in crate::sim) before: Option<Rc<Facts>>,
    /// Absent if the object is gone.
    pub(in crate::sim) after: Option<Rc<Facts>>,
}

impl Model {
    pub(in crate::sim) fn apply(
        &mut self,
        plural: &'static str,
        change: &store::Change,
        now: Moment,
    ) -> Change {
        let entry = &change.entry;
        let uid = entry.uid.to_string();
        let before = self.objects.remove(&uid);
        if change.kind == ChangeKind::Deleted {
            self.gone.insert(uid, now);
            self.past.add(plural, &entry.key, entry.revision, None);
            return Change { before, after: None };
        }
        let object = entry.parse();
        let facts = Facts {
            plural,
            key: entry.key.to_string(),
            deleting: entry.deletion.is_some(),
            controller: controller(&object),
            uid: uid.clone(),
            object,
        };
        let facts = Rc::new(facts);
        self.objects.insert(uid, facts.clone());
        let after = Some(facts.clone());
        self.past.add(plural, &entry.key, entry.revision, after.clone());
        Change { before, after: Some(facts) }
    }

    /// All objects of a resource.
    pub(in crate::sim) fn all<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = &'a Facts> {
        self.objects.values().map(|facts| &**facts).filter(move |facts| facts.plural == plural)
    }

    /// What an object controls.
    pub(in crate::sim) fn controlled_by<'a>(
        &'a self,
        uid: &'a str,
    ) -> impl Iterator<Item = &'a Facts> {
        let all = self.objects.values().map(|facts| &**facts);
        all.filter(move |facts| facts.controller.as_deref() == Some(uid))
    }
}

impl Facts {
    /// Whether it is a pod that counts: neither ended nor going.
    pub(in crate::sim) fn is_active(&self) -> bool {
        let phase = self.object["status"]["phase"].as_str();
        !self.deleting && !matches!(phase, Some("Succeeded" | "Failed"))
    }

    pub(in crate::sim) fn is_ready(&self) -> bool {
        let conditions = self.object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
    }

    /// A number of its spec.
    pub(in crate::sim) fn spec(&self, field: &str) -> i64 {
        self.object["spec"][field].as_i64().unwrap_or_default()
    }

    /// A number of its status.
    pub(in crate::sim) fn status(&self, field: &str) -> i64 {
        self.object["status"][field].as_i64().unwrap_or_default()
    }

    /// Its `resourceVersion`.
    pub(in crate::sim) fn version(&self) -> u64 {
        let version = self.object["metadata"]["resourceVersion"].as_str();
        version.and_then(|version| version.parse().ok()).unwrap_or(0)
    }

    pub(in crate::sim) fn annotation(&self, name: &str) -> Option<&str> {
        self.object["metadata"]["annotations"][name].as_str()
    }

    /// Whether pods of its template can run: the workload's images that cannot have other tags.
    pub(in crate::sim) fn runs(&self) -> bool {
        let image = self.object["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
        image.is_some_and(|image| image.starts_with("img:v") || image == "img:healed")
    }
}

impl Change {
    /// What was done, in a word.
    pub(in crate::sim) fn done(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "created",
            (Some(_), None) => "deleted",
            (Some(before), Some(after)) if before.deleting != after.deleting => "deleted",
            (Some(before), Some(after)) if before.controller != after.controller => {
                "adopted or let go"
            }
            (Some(before), Some(after)) if before.object["spec"] != after.object["spec"] => {
                "changed"
            }
            _ => "status or metadata written",
        }
    }

    /// What there is to say about it in a trace.
    pub(in crate::sim) fn told(&self) -> String {
        let Some(after) = &self.after else { return String::new() };
        let going = if after.deleting { " (going)" } else { "" };
        match after.plural {
            "pods" => {
                let phase = after.object["status"]["phase"].as_str().unwrap_or_default();
                let ready = if after.is_ready() { ", ready" } else { "" };
                format!(": {phase}{ready}{going}")
            }
            "persistentvolumeclaims" => {
                let phase = after.object["status"]["phase"].as_str().unwrap_or_default();
                let owners = after.object["metadata"]["ownerReferences"].as_array();
                let owners: Vec<&str> = owners
                    .into_iter()
                    .flatten()
                    .filter_map(|owner| owner["kind"].as_str())
                    .collect();
                format!(": {phase}, of {owners:?}{going}")
            }
            "controllerrevisions" => format!(": revision {}{going}", after.object["revision"]),
            "statefulsets" => {
                let count = |field| after.status(field);
                format!(
                    ": {} wanted, {} there, {} ready, {} current, {} updated{going}",
                    after.spec("replicas"),
                    count("replicas"),
                    count("readyReplicas"),
                    count("currentReplicas"),
                    count("updatedReplicas"),
                )
            }
            _ => format!(
                ": {} wanted, {} there, {} available{going}",
                after.spec("replicas"),
                after.status("replicas"),
                after.status("availableReplicas"),
            ),
        }
    }
}

fn controller(object: &Value) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    owner["uid"].as_str().map(str::to_owned)
}
