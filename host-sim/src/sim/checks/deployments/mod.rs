//! What a controller may do to Deployments, ReplicaSets, ReplicationControllers, and the pods of these.
//!
//! Judged at every change that a controller makes, on the server's objects, by plain code of its own:
//! what a selector selects, whose a pod is and what a template says is not asked of the controllers.
//! What their delay excuses is said in [`past`](super::past).

mod deployment;
mod pods;
mod replica_sets;
mod replication_controllers;
mod rollout;
mod statuses;
pub(in crate::sim) mod words;

use super::Verdict;
use super::model::{Change, Facts};
use super::own::Own;
use super::past::View;

/// Who has made a change, and what it may have known.
#[derive(Clone, Copy)]
pub(super) struct Act<'a> {
    pub(super) view: View<'a>,
    pub(super) own: &'a Own,
    pub(super) device: usize,
}

/// Judges a change that a controller has made.
pub(super) fn check(act: Act<'_>, change: &Change) -> Verdict {
    let object = change.after.as_ref().or(change.before.as_ref());
    match object.map(|object| object.plural) {
        Some("pods") => pods::check(act, change),
        Some("replicasets") => replica_sets::check(act, change),
        Some("deployments") => deployment::check(act, change),
        Some("replicationcontrollers") => replication_controllers::check(act, change),
        _ => Ok(()),
    }
}

impl<'a> Act<'a> {
    /// The versions of a workload that the controller may have acted for: it is not being deleted.
    fn workloads(self, plural: &'static str, key: &str, uid: &str) -> Vec<&'a Facts> {
        let versions = self.view.versions(plural, key).flatten();
        versions.filter(|it| it.uid == uid && !it.deleting).collect()
    }

    /// As it says, the ReplicaSet, ReplicationController or Deployment that controls an object.
    fn owners_of(self, object: &Facts) -> Vec<&'a Facts> {
        let plural = match object.kind_of_controller() {
            Some("ReplicaSet") => "replicasets",
            Some("Deployment") => "deployments",
            Some("ReplicationController") => "replicationcontrollers",
            _ => return Vec::new(),
        };
        let uid = object.controller.as_deref().unwrap_or_default();
        self.workloads(plural, &object.owner_key(), uid)
    }

    /// The objects of a resource, in the namespace of another one, that may have been like that:
    /// all of their versions.
    fn siblings(
        self,
        plural: &'static str,
        of: &'a Facts,
    ) -> impl Iterator<Item = Vec<Option<&'a Facts>>> {
        let keys = self.view.past.keys(plural, of.namespace());
        keys.map(move |key| self.view.versions(plural, key).collect())
    }
}

fn wrong(property: &'static str, object: &Facts, detail: &str) -> Verdict {
    Err((property, format!("{}/{}: {detail}", object.plural, object.key)))
}
