//! The garbage collector: objects go when their owners have gone.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use crate::api::kind;
use crate::store::{Change, ChangeKind, Entry, OwnerReference, ResourceId, Store, object_key};
use crate::time::Timestamp;

use super::super::Server;
use super::super::delete::{DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use super::super::request::Request;

/// How long the collector takes from one write about an owner to the next, unless told otherwise.
/// Kubernetes' collector follows watches, as the owner's controller does, which has its say in
/// between: the last statuses of an object are written while it is being deleted.
const TURN_MILLIS: i64 = 20;

/// Objects whose ownership has to be looked at, each once, in the order they came up.
#[derive(Debug)]
pub(super) struct Garbage {
    queue: VecDeque<Item>,
    /// What has its time, and when that is.
    turns: VecDeque<(Timestamp, Item)>,
    /// All that is in one of the two.
    queued: BTreeSet<Item>,
    /// How long it takes to hear that an owner has gone.
    pub(super) reaction_millis: i64,
    /// How long it takes from one write about an owner to the next.
    pub(super) turn_millis: i64,
}

impl Default for Garbage {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            turns: VecDeque::new(),
            queued: BTreeSet::new(),
            reaction_millis: 0,
            turn_millis: TURN_MILLIS,
        }
    }
}

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// An object that has owners, or waits for its dependents.
    Object(ResourceId, Arc<str>),
    /// The owner of an object that has changed, by reference and the dependent's namespace.
    Owner { namespace: Box<str>, api_version: Box<str>, kind: Box<str>, name: Box<str> },
    /// The dependents of an object that is gone.
    DependentsOf(Box<str>),
    /// An owner that can let go of dependents, or go itself.
    Turn(ResourceId, Arc<str>),
}

/// What an owner reference is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The owner is there.
    Solid,
    /// The owner is gone.
    Dangling,
    /// The owner waits for its dependents to go.
    Waiting,
}

impl Garbage {
    pub(super) fn observe(
        &mut self,
        store: &Store,
        now: Timestamp,
        id: ResourceId,
        change: &Change,
    ) {
        let entry = &change.entry;
        let previous = change.previous.as_ref();
        let owners_before = previous.map_or(&[][..], |entry| &entry.owners);
        if change.kind == ChangeKind::Deleted {
            if store.dependents_of(&entry.uid).next().is_some() {
                self.push_later(now, self.reaction_millis, Item::DependentsOf(entry.uid.clone()));
            }
            entry.owners.iter().for_each(|owner| self.push(Item::owner_of(entry, owner)));
            return;
        }
        if *entry.owners != *owners_before {
            self.push(Item::Object(id, entry.key.clone()));
            // An owner may have waited for a dependent that no longer blocks it.
            for owner in owners_before {
                self.push(Item::owner_of(entry, owner));
            }
        }
        let starts_to_go = entry.deletion.is_some()
            && previous.is_none_or(|before| {
                before.deletion.is_none() || before.finalizers != entry.finalizers
            });
        if starts_to_go && (entry.has_finalizer(FOREGROUND) || entry.has_finalizer(ORPHAN)) {
            self.push(Item::Object(id, entry.key.clone()));
        }
    }

    pub(super) fn next(&mut self, now: Timestamp) -> Option<Item> {
        let item = match self.turn_at() {
            Some(at) if at <= now => self.turns.pop_front().map(|(_, item)| item),
            _ => self.queue.pop_front(),
        }?;
        self.queued.remove(&item);
        Some(item)
    }

    /// When the next of them is due.
    pub(super) fn turn_at(&self) -> Option<Timestamp> {
        self.turns.front().map(|(at, _)| *at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&mut self, item: Item) {
        if self.queued.insert(item.clone()) {
            self.queue.push_back(item);
        }
    }

    fn take_turn_later(&mut self, now: Timestamp, id: ResourceId, key: &Arc<str>) {
        self.push_later(now, self.turn_millis, Item::Turn(id, key.clone()));
    }

    fn push_later(&mut self, now: Timestamp, millis: i64, item: Item) {
        if millis == 0 {
            self.push(item);
        } else if self.queued.insert(item.clone()) {
            self.turns.push_back((now.plus_millis(millis), item));
        }
    }
}

impl Item {
    fn owner_of(dependent: &Entry, owner: &OwnerReference) -> Self {
        Self::Owner {
            namespace: dependent.namespace().into(),
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
        }
    }
}

impl Server {
    /// Looks at one item of the garbage collector's queue.
    pub(super) fn collect(&mut self, now: Timestamp, item: Item) {
        let (id, key) = match item {
            Item::Object(id, key) => (id, key),
            Item::Owner { namespace, api_version, kind, name } => {
                let Some((id, key)) = self.locate(&namespace, &api_version, &kind, &name) else {
                    return;
                };
                match self.store.get(id, &key) {
                    Some(owner) if waits_for_dependents(owner) => (id, owner.key.clone()),
                    _ => return,
                }
            }
            Item::DependentsOf(uid) => {
                let dependents: Vec<_> =
                    self.store.dependents_of(&uid).map(|(id, key)| (id, key.clone())).collect();
                for (id, key) in dependents {
                    self.housekeeping.garbage.push(Item::Object(id, key));
                }
                return;
            }
            Item::Turn(id, key) => {
                if let Some(entry) = self.store.get(id, &key).cloned() {
                    self.take_turn(now, id, &entry);
                }
                return;
            }
        };
        let Some(entry) = self.store.get(id, &key).cloned() else { return };
        if entry.deletion.is_none() {
            return self.judge(now, id, &entry);
        }
        if entry.has_finalizer(ORPHAN) || entry.has_finalizer(FOREGROUND) {
            self.housekeeping.garbage.take_turn_later(now, id, &entry.key);
        }
    }

    /// An owner that is being deleted lets go of dependents, or goes itself.
    fn take_turn(&mut self, now: Timestamp, id: ResourceId, owner: &Arc<Entry>) {
        if owner.deletion.is_none() {
            return;
        }
        if owner.has_finalizer(ORPHAN) {
            self.orphan_dependents(now, id, owner);
        } else if owner.has_finalizer(FOREGROUND) {
            self.send_dependents_away(now, id, owner);
        }
    }

    /// Deletes an object that has no owner left, or drops the references to those that are gone.
    fn judge(&mut self, now: Timestamp, id: ResourceId, entry: &Arc<Entry>) {
        let standings: Vec<Standing> =
            entry.owners.iter().map(|owner| self.standing(entry, owner)).collect();
        if standings.is_empty() || standings.iter().all(|s| *s == Standing::Solid) {
            return;
        }
        for (owner, standing) in entry.owners.iter().zip(&standings) {
            if *standing == Standing::Dangling && self.lives_elsewhere(owner) {
                self.warn_of_owner_elsewhere(now, id, entry, owner);
            }
        }
        if standings.contains(&Standing::Solid) {
            let gone: Vec<Box<str>> = entry
                .owners
                .iter()
                .zip(&standings)
                .filter(|(_, standing)| **standing != Standing::Solid)
                .map(|(owner, _)| owner.uid.clone())
                .collect();
            self.amend(now, id, entry, |object| drop_references(object, &gone));
            return;
        }
        let has_dependents = self.store.dependents_of(&entry.uid).next().is_some();
        let propagation = if standings.contains(&Standing::Waiting) && has_dependents {
            self.unblock_cycles(now, entry);
            Propagation::Foreground
        } else if entry.has_finalizer(ORPHAN) {
            Propagation::Orphan
        } else if entry.has_finalizer(FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        let options = DeleteOptions {
            uid: Some(entry.uid.to_string()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        // Nothing else writes in between, so the preconditions hold.
        let _ = self.delete_object(now, id, &entry.key, &options);
    }

    /// An owner in foreground deletion sends its dependents away, half of them in one turn. It
    /// goes when none is left that blocks it.
    fn send_dependents_away(&mut self, now: Timestamp, id: ResourceId, owner: &Arc<Entry>) {
        let mut blocked = false;
        let mut staying = Vec::new();
        for (dependent_id, key) in self.dependents_of(owner) {
            let Some(dependent) = self.store.get(dependent_id, &key) else { continue };
            let reference = dependent.owners.iter().find(|reference| reference.uid == owner.uid);
            blocked |= reference.is_some_and(|reference| reference.blocks_owner_deletion);
            if dependent.deletion.is_none() {
                staying.push((dependent_id, dependent.clone()));
            }
        }
        if !blocked {
            self.amend(now, id, owner, |object| drop_finalizer(object, FOREGROUND));
        }
        let half = staying.len().div_ceil(2);
        for (dependent_id, dependent) in staying.iter().take(half) {
            self.judge(now, *dependent_id, dependent);
        }
        if half < staying.len() {
            self.housekeeping.garbage.take_turn_later(now, id, &owner.key);
        }
    }

    /// An owner leaves dependents behind, half of them in one turn; when all have lost the
    /// reference, it goes.
    fn orphan_dependents(&mut self, now: Timestamp, id: ResourceId, owner: &Arc<Entry>) {
        let dependents = self.dependents_of(owner);
        if dependents.is_empty() {
            self.amend(now, id, owner, |object| drop_finalizer(object, ORPHAN));
            return;
        }
        let gone = [owner.uid.clone()];
        let half = dependents.len().div_ceil(2);
        for (dependent_id, key) in dependents.into_iter().take(half) {
            if let Some(dependent) = self.store.get(dependent_id, &key).cloned() {
                self.amend(now, dependent_id, &dependent, |object| drop_references(object, &gone));
            }
        }
        self.housekeeping.garbage.take_turn_later(now, id, &owner.key);
    }

    fn dependents_of(&self, owner: &Entry) -> Vec<(ResourceId, Arc<str>)> {
        self.store.dependents_of(&owner.uid).map(|(id, key)| (id, key.clone())).collect()
    }

    /// Owners that wait for each other would wait for ever.
    fn unblock_cycles(&mut self, now: Timestamp, entry: &Arc<Entry>) {
        for (id, key) in self.dependents_of(entry) {
            let Some(dependent) = self.store.get(id, &key).cloned() else { continue };
            if waits_for_dependents(&dependent) {
                self.amend(now, id, &dependent, |object| {
                    let references = object["metadata"]["ownerReferences"].as_array_mut();
                    for reference in references.into_iter().flatten() {
                        if reference["uid"] == *entry.uid {
                            reference["blockOwnerDeletion"] = Value::Bool(false);
                        }
                    }
                });
            }
        }
    }

    fn standing(&self, entry: &Entry, owner: &OwnerReference) -> Standing {
        let namespace = entry.namespace();
        let Some(owner_kind) = kind::find_kind(&owner.api_version, &owner.kind) else {
            // Who owns it is not served here, so nobody can say that it is gone.
            return Standing::Solid;
        };
        if namespace.is_empty() && owner_kind.namespaced {
            return Standing::Solid;
        }
        let located = self.locate(namespace, &owner.api_version, &owner.kind, &owner.name);
        let found = located.and_then(|(id, key)| self.store.get(id, &key));
        match found {
            Some(found) if found.uid == owner.uid => {
                if waits_for_dependents(found) {
                    Standing::Waiting
                } else {
                    Standing::Solid
                }
            }
            _ => Standing::Dangling,
        }
    }

    /// Whether the owner is there, but in another namespace than its dependent.
    fn lives_elsewhere(&self, owner: &OwnerReference) -> bool {
        let mut namespaces = self.store.resource(self.resources.namespaces).range("", None);
        namespaces.any(|namespace| {
            let located =
                self.locate(namespace.name(), &owner.api_version, &owner.kind, &owner.name);
            let found = located.and_then(|(id, key)| self.store.get(id, &key));
            found.is_some_and(|found| found.uid == owner.uid)
        })
    }

    /// Tells the user why the object goes although its owner is there.
    fn warn_of_owner_elsewhere(
        &mut self,
        now: Timestamp,
        id: ResourceId,
        entry: &Entry,
        owner: &OwnerReference,
    ) {
        const COLLECTOR: &str = "garbage-collector-controller";
        let (namespace, name) = (entry.namespace(), entry.name());
        let kind = self.resources.kind_of(id);
        let message = format!(
            "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in \
             namespace \"{namespace}\"",
            owner.api_version, owner.kind, owner.name, owner.uid
        );
        let event = json!({
            // Every event is a write, so the version makes its name unique.
            "metadata": {"name": format!("{name}.{:016x}", self.store.revision())},
            "involvedObject": {
                "apiVersion": kind.api_version(), "kind": kind.kind,
                "namespace": namespace, "name": name, "uid": &*entry.uid,
            },
            "type": "Warning", "reason": "OwnerRefInvalidNamespace", "message": message,
            "count": 1, "firstTimestamp": now.to_rfc3339(), "lastTimestamp": now.to_rfc3339(),
            "source": {"component": COLLECTOR}, "reportingComponent": COLLECTOR,
        });
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let request =
            Request::new(Method::POST, &path).with_body("application/json", event.to_string());
        // A namespace that is on its way out takes no events.
        let _ = self.handle(now, &request);
    }

    fn locate(
        &self,
        namespace: &str,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Option<(ResourceId, String)> {
        let kind = kind::find_kind(api_version, kind)?;
        let id = self.resources.id_of(kind)?;
        let namespace = if kind.namespaced { namespace } else { "" };
        Some((id, object_key(namespace, name)))
    }
}

fn waits_for_dependents(entry: &Entry) -> bool {
    entry.deletion.is_some() && entry.has_finalizer(FOREGROUND)
}

fn drop_references(object: &mut Value, uids: &[Box<str>]) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let Some(references) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else {
        return;
    };
    references.retain(|reference| !uids.iter().any(|uid| reference["uid"] == **uid));
    if references.is_empty() {
        metadata.remove("ownerReferences");
    }
}

fn drop_finalizer(object: &mut Value, name: &str) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else {
        return;
    };
    finalizers.retain(|finalizer| finalizer != name);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    }
}
