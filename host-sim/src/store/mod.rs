//! The objects of a cluster in memory: one revision counter, all resources, and who owns whom.
//!
//! The store knows nothing about kinds, requests or clocks. A write becomes visible at once to
//! reads of the same process; where a journal follows it, [`Store::durable`] says up to which
//! revision the outside may be told.

mod dependents;
mod entry;
mod resource;

use std::sync::Arc;

use serde_json::Value;

pub use entry::{Entry, OwnerReference, object_key};
pub use resource::{Change, ChangeKind, Compacted, HistoryLimits, Resource};

use dependents::Dependents;

/// Which resource of the store; an index into the table of kinds that the server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u16);

/// All objects of a cluster.
#[derive(Debug)]
pub struct Store {
    revision: u64,
    durable: Option<u64>,
    resources: Vec<Resource>,
    dependents: Dependents,
    limits: HistoryLimits,
    unsaved: Unsaved,
}

/// What a journal has not been given yet.
#[derive(Debug, Default)]
pub struct Unsaved {
    /// Changes, oldest first.
    pub changes: Vec<(ResourceId, Change)>,
    /// Revisions that have been dropped from the history since.
    pub forgotten: Vec<u64>,
}

impl Store {
    /// An empty store for `resources` resources that lives in memory only.
    pub fn new(resources: usize, limits: HistoryLimits) -> Self {
        Self {
            revision: 1,
            durable: None,
            resources: (0..resources).map(|_| Resource::default()).collect(),
            dependents: Dependents::default(),
            limits,
            unsaved: Unsaved::default(),
        }
    }

    /// The revision of the latest write.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The revision up to which every write has reached the disk, or memory if that is all.
    pub fn durable(&self) -> u64 {
        self.durable.unwrap_or(self.revision)
    }

    /// One resource.
    pub fn resource(&self, id: ResourceId) -> &Resource {
        &self.resources[usize::from(id.0)]
    }

    /// The current version of an object.
    pub fn get(&self, id: ResourceId, key: &str) -> Option<&Arc<Entry>> {
        self.resource(id).get(key)
    }

    /// Writes `object` under `key`, giving it the next revision, and returns what happened.
    pub fn put(&mut self, id: ResourceId, key: &str, object: &mut Value) -> Change {
        self.revision += 1;
        set_revision(object, self.revision);
        let previous = self.get(id, key).cloned();
        let shared_key = previous.as_ref().map_or_else(|| key.into(), |entry| entry.key.clone());
        let entry = Arc::new(Entry::new(shared_key, self.revision, object));
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.apply(id, Change { kind, entry, previous })
    }

    /// Removes the object under `key`; `object` is its final state and gets the next revision.
    pub fn remove(&mut self, id: ResourceId, key: &str, object: &mut Value) -> Option<Change> {
        let previous = self.get(id, key).cloned()?;
        self.revision += 1;
        set_revision(object, self.revision);
        let entry = Arc::new(Entry::new(previous.key.clone(), self.revision, object));
        let change = Change { kind: ChangeKind::Deleted, entry, previous: Some(previous) };
        Some(self.apply(id, change))
    }

    /// Keys of the objects that name `uid` among their owners, in a fixed order.
    pub fn dependents_of(&self, uid: &str) -> impl Iterator<Item = (ResourceId, &Arc<str>)> {
        self.dependents.of(uid)
    }

    /// Drops the history up to `revision`, as a compaction of etcd would.
    pub fn compact(&mut self, revision: u64) {
        for resource in &mut self.resources {
            let forgotten = resource.compact(revision);
            if self.durable.is_some() {
                self.unsaved.forgotten.extend(forgotten);
            }
        }
    }

    /// From here on every change waits in [`Store::take_unsaved`] for a journal.
    pub fn follow_with_journal(&mut self) {
        self.durable = Some(self.revision);
    }

    /// What a journal has not been given yet.
    pub fn take_unsaved(&mut self) -> Unsaved {
        std::mem::take(&mut self.unsaved)
    }

    /// The journal has everything up to `revision`.
    pub fn saved(&mut self, revision: u64) {
        if let Some(durable) = &mut self.durable {
            *durable = (*durable).max(revision);
        }
    }

    /// Puts an object back that a journal kept.
    pub fn restore(&mut self, id: ResourceId, entry: Entry) {
        let entry = Arc::new(entry);
        self.revision = self.revision.max(entry.revision);
        self.dependents.update(id, None, Some(&entry));
        self.resource_mut(id).restore(entry);
    }

    /// Puts a change of the past back that a journal kept; oldest first.
    pub fn restore_history(&mut self, id: ResourceId, change: Change) {
        self.revision = self.revision.max(change.entry.revision);
        let limits = self.limits;
        self.resource_mut(id).remember(change, limits);
    }

    /// Changes of a resource up to `revision` were dropped before the journal was closed.
    pub fn restore_compacted(&mut self, id: ResourceId, revision: u64) {
        self.resource_mut(id).compact(revision);
    }

    /// Continues counting above `revision`, which a journal has seen.
    pub fn restore_revision(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
    }

    fn apply(&mut self, id: ResourceId, change: Change) -> Change {
        let added = (change.kind != ChangeKind::Deleted).then_some(&change.entry);
        self.dependents.update(id, change.previous.as_ref(), added);
        let limits = self.limits;
        let forgotten = self.resource_mut(id).apply(change.clone(), limits);
        if self.durable.is_some() {
            self.unsaved.forgotten.extend(forgotten);
            self.unsaved.changes.push((id, change.clone()));
        }
        change
    }

    fn resource_mut(&mut self, id: ResourceId) -> &mut Resource {
        &mut self.resources[usize::from(id.0)]
    }
}

fn set_revision(object: &mut Value, revision: u64) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".into(), Value::String(revision.to_string()));
    }
}

#[cfg(test)]
mod tests;
