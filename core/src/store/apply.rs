//! Applying what a list or watch delivers.

use crate::link::Slot;
use crate::text::{Interner, Name, Text};
use crate::wire;
use crate::wire::Meta;

use super::cache::Kind;
use super::change::{Applied, Change, Event, Owner, RefusalReason};
use super::groups::{GroupKey, Groups, List, Role};
use super::table::{Identity, flag};
use super::{Cache, Deployment, Entry, Pod, Record, ReplicaSet, Table};

impl Cache<'_> {
    /// A pod was listed, added or modified.
    pub fn apply_pod(&mut self, pod: &wire::Pod) -> Applied {
        if pod.meta.is_foreign() {
            return match self.delete_pod(&pod.meta) {
                Some(change) => Applied::Changed(change),
                None => Applied::Foreign,
            };
        }
        let old = self.pods.find(self.texts, &pod.meta.namespace, &pod.meta.name);
        if is_older(self.pods, old, &pod.meta) {
            return Applied::Older;
        }
        let old_owner = self.owner_before(old.and_then(|slot| self.pods.get(slot)));
        let record = Pod::intern(self.texts, pod);
        let stored = upsert(self.pods, self.groups, self.texts, Kind::Pod, &pod.meta, old, record);
        match stored {
            Ok(upserted) => {
                let new_owner = self.owner_of_pod(upserted.slot);
                Applied::Changed(upserted.into_change(old_owner, new_owner))
            }
            Err(reason) => Applied::Refused(self.refuse_pod(&pod.meta, old, old_owner, reason)),
        }
    }

    /// A ReplicaSet was listed, added or modified.
    pub fn apply_replica_set(&mut self, rs: &wire::ReplicaSet) -> Applied {
        let old = self.replica_sets.find(self.texts, &rs.meta.namespace, &rs.meta.name);
        if is_older(self.replica_sets, old, &rs.meta) {
            return Applied::Older;
        }
        let old_owner = self.owner_before(old.and_then(|slot| self.replica_sets.get(slot)));
        let record = ReplicaSet::intern(self.texts, rs);
        let kind = Kind::ReplicaSet;
        match upsert(self.replica_sets, self.groups, self.texts, kind, &rs.meta, old, record) {
            Ok(upserted) => {
                if upserted.event == Event::Added || upserted.uid_changed {
                    self.inherit_blindness(Kind::Pod, upserted.slot);
                }
                let new_owner = self.owner_of_replica_set(upserted.slot);
                Applied::Changed(upserted.into_change(old_owner, new_owner))
            }
            Err(reason) => {
                Applied::Refused(self.refuse_replica_set(&rs.meta, old, old_owner, reason))
            }
        }
    }

    /// A Deployment was listed, added or modified.
    pub fn apply_deployment(&mut self, d: &wire::Deployment) -> Applied {
        let old = self.deployments.find(self.texts, &d.meta.namespace, &d.meta.name);
        if is_older(self.deployments, old, &d.meta) {
            return Applied::Older;
        }
        let record = Deployment::intern(self.texts, d);
        let kind = Kind::Deployment;
        match upsert(self.deployments, self.groups, self.texts, kind, &d.meta, old, record) {
            Ok(upserted) => {
                if upserted.event == Event::Added || upserted.uid_changed {
                    self.inherit_blindness(Kind::ReplicaSet, upserted.slot);
                }
                Applied::Changed(upserted.into_change(Owner::None, Owner::None))
            }
            Err(reason) => Applied::Refused(self.refuse_deployment(old, reason)),
        }
    }

    /// Whether this state of a pod, or a later one, is cached.
    pub fn has_pod(&self, meta: &Meta) -> bool {
        has(self.pods, self.texts, meta)
    }

    /// Whether this state of a ReplicaSet, or a later one, is cached.
    pub fn has_replica_set(&self, meta: &Meta) -> bool {
        has(self.replica_sets, self.texts, meta)
    }

    /// Whether this state of a Deployment, or a later one, is cached.
    pub fn has_deployment(&self, meta: &Meta) -> bool {
        has(self.deployments, self.texts, meta)
    }

    /// What is cached of a ReplicaSet, if that has the `spec` of this one.
    pub fn replica_set_of_same_spec(&self, meta: &Meta) -> Option<&ReplicaSet> {
        comparable(self.replica_sets, self.texts, meta)
            .filter(|cached| cached.generation() == meta.generation)
    }

    /// What is cached of a Deployment, if that has the `spec` of this one.
    pub fn deployment_of_same_spec(&self, meta: &Meta) -> Option<&Deployment> {
        comparable(self.deployments, self.texts, meta)
            .filter(|cached| cached.generation() == meta.generation)
    }

    /// A pod was deleted. `None` if it was not cached, or if another one of the same name is.
    pub fn delete_pod(&mut self, meta: &Meta) -> Option<Change> {
        match self.pods.find(self.texts, &meta.namespace, &meta.name) {
            Some(slot) if is_predecessor(self.pods, slot, meta) => None,
            Some(slot) => self.remove_pod(slot),
            None => self.unknown_deleted(Kind::Pod),
        }
    }

    /// A ReplicaSet was deleted. Its slot stays taken until
    /// [`free_replica_set`](Self::free_replica_set).
    pub fn delete_replica_set(&mut self, meta: &Meta) -> Option<Change> {
        match self.replica_sets.find(self.texts, &meta.namespace, &meta.name) {
            Some(slot) if is_predecessor(self.replica_sets, slot, meta) => None,
            Some(slot) => self.remove_replica_set(slot),
            None => self.unknown_deleted(Kind::ReplicaSet),
        }
    }

    /// A Deployment was deleted. Its slot stays taken until
    /// [`free_deployment`](Self::free_deployment).
    pub fn delete_deployment(&mut self, meta: &Meta) -> Option<Change> {
        match self.deployments.find(self.texts, &meta.namespace, &meta.name) {
            Some(slot) if is_predecessor(self.deployments, slot, meta) => None,
            Some(slot) => self.remove_deployment(slot),
            None => self.unknown_deleted(Kind::Deployment),
        }
    }

    /// Frees the slot of a deleted ReplicaSet, once no queue knows it any more.
    pub fn free_replica_set(&mut self, slot: Slot) {
        if self.replica_sets.free(slot) {
            self.state.room_appeared();
        }
    }

    /// Frees the slot of a deleted Deployment, once no queue knows it any more.
    pub fn free_deployment(&mut self, slot: Slot) {
        if self.deployments.free(slot) {
            self.state.room_appeared();
        }
    }

    pub(super) fn remove_pod(&mut self, slot: Slot) -> Option<Change> {
        let entry = *self.pods.get(slot)?;
        let owner = self.owner_before(Some(&entry));
        remove(self.pods, self.groups, self.texts, slot);
        self.pods.free(slot);
        self.state.room_appeared();
        Some(deletion(slot, &entry, owner))
    }

    pub(super) fn remove_replica_set(&mut self, slot: Slot) -> Option<Change> {
        let entry = *self.replica_sets.get(slot)?;
        let owner = self.owner_before(Some(&entry));
        remove(self.replica_sets, self.groups, self.texts, slot);
        self.state.room_appeared();
        Some(deletion(slot, &entry, owner))
    }

    pub(super) fn remove_deployment(&mut self, slot: Slot) -> Option<Change> {
        let entry = *self.deployments.get(slot)?;
        remove(self.deployments, self.groups, self.texts, slot);
        self.state.room_appeared();
        Some(deletion(slot, &entry, Owner::None))
    }

    fn owner_before<R: Record>(&self, entry: Option<&Entry<R>>) -> Owner {
        self.resolve(entry.and_then(|entry| entry.owned_group()))
    }

    /// An object that was refused before may be gone now: a list will tell.
    fn unknown_deleted(&mut self, kind: Kind) -> Option<Change> {
        let shortage = self.state.of_mut(kind);
        shortage.room = shortage.refused > 0;
        None
    }
}

/// Whether the cache holds this state or a later one, of the very same object.
fn has<R: Record>(table: &Table<[Entry<R>]>, texts: &Interner, meta: &Meta) -> bool {
    let entry = table.find_same(texts, meta).and_then(|slot| table.get(slot));
    entry.is_some_and(|entry| !entry.is_stale() && entry.version() >= meta.resource_version)
}

/// What the cache holds of the very same object, if generations can be compared: the server counts
/// them, and has not gone back in time since.
fn comparable<'t, R: Record>(
    table: &'t Table<[Entry<R>]>,
    texts: &Interner,
    meta: &Meta,
) -> Option<&'t R> {
    if meta.generation == 0 {
        return None;
    }
    let entry = table.find_same(texts, meta).and_then(|slot| table.get(slot));
    entry.filter(|entry| entry.version() != wire::ResourceVersion::ANY).map(|entry| &entry.record)
}

/// Whether the cache holds a later state than this one. It then counts as listed.
fn is_older<R: Record>(table: &mut Table<[Entry<R>]>, old: Option<Slot>, meta: &Meta) -> bool {
    let Some(entry) = old.and_then(|slot| table.get_mut(slot)) else { return false };
    let older = meta.resource_version < entry.version();
    if older {
        entry.flags |= flag::SEEN;
    }
    older
}

/// Whether a deletion is about an object that has a successor of the same name already.
fn is_predecessor<R: Record>(table: &Table<[Entry<R>]>, slot: Slot, meta: &Meta) -> bool {
    table
        .get(slot)
        .is_some_and(|entry| entry.uid() != meta.uid && meta.resource_version < entry.version())
}

/// What [`upsert`] found to be different.
struct Upserted {
    slot: Slot,
    event: Event,
    same_version: bool,
    uid_changed: bool,
    labels_changed: bool,
    owner_changed: bool,
    old_uid: wire::Uid,
    deleting: bool,
    became_ready: bool,
    was_expected: bool,
}

impl Upserted {
    fn into_change(self, old_owner: Owner, new_owner: Owner) -> Change {
        let Self { slot, event, same_version, uid_changed, labels_changed, owner_changed, .. } =
            self;
        let Self { old_uid, deleting, became_ready, was_expected, .. } = self;
        Change {
            slot,
            event,
            same_version,
            uid_changed,
            labels_changed,
            owner_changed,
            old_owner,
            new_owner,
            old_uid,
            deleting,
            became_ready,
            was_expected,
        }
    }
}

fn deletion<R: Record>(slot: Slot, entry: &Entry<R>, owner: Owner) -> Change {
    Change {
        slot,
        event: Event::Deleted,
        same_version: false,
        uid_changed: false,
        labels_changed: false,
        owner_changed: false,
        old_owner: owner,
        new_owner: owner,
        old_uid: entry.uid(),
        deleting: entry.record.is_deleting(),
        became_ready: false,
        was_expected: entry.is_deletion_expected(),
    }
}

/// Stores an object's state. On failure the cache is as it was, and holds nothing of `record`.
fn upsert<R: Record>(
    table: &mut Table<[Entry<R>]>,
    groups: &mut Groups,
    texts: &mut Interner,
    kind: Kind,
    meta: &Meta,
    old: Option<Slot>,
    record: Result<R, RefusalReason>,
) -> Result<Upserted, RefusalReason> {
    let record = record?;
    let group = match obtain_group(groups, texts, kind, meta) {
        Ok(group) => group,
        Err(reason) => {
            record.release(texts);
            return Err(reason);
        }
    };
    let stored = match old {
        Some(slot) => update(table, groups, texts, meta, slot, group, record),
        None => insert(table, groups, texts, kind, meta, group, record),
    };
    if stored.is_err() {
        record.release(texts);
        groups.free_unused(texts, group);
    }
    stored
}

fn insert<R: Record>(
    table: &mut Table<[Entry<R>]>,
    groups: &mut Groups,
    texts: &mut Interner,
    kind: Kind,
    meta: &Meta,
    group: Slot,
    record: R,
) -> Result<Upserted, RefusalReason> {
    let namespace = texts.intern(meta.namespace.as_bytes())?;
    let name = if R::SPLIT_NAMES {
        Name::split(texts, &meta.name)
    } else {
        Name::whole(texts, &meta.name)
    };
    let name = match name {
        Ok(name) => name,
        Err(full) => {
            texts.release(namespace);
            return Err(full.into());
        }
    };
    let id = Identity { namespace, name, uid: meta.uid, version: meta.resource_version };
    match insert_named(table, groups, texts, kind, group, id, record) {
        Ok(slot) => Ok(Upserted {
            slot,
            event: Event::Added,
            same_version: false,
            uid_changed: false,
            labels_changed: false,
            owner_changed: false,
            old_uid: meta.uid,
            deleting: record.is_deleting(),
            became_ready: false,
            was_expected: false,
        }),
        Err(reason) => {
            name.release(texts);
            texts.release(namespace);
            Err(reason)
        }
    }
}

fn insert_named<R: Record>(
    table: &mut Table<[Entry<R>]>,
    groups: &mut Groups,
    texts: &mut Interner,
    kind: Kind,
    group: Slot,
    id: Identity,
    record: R,
) -> Result<Slot, RefusalReason> {
    let in_namespace = match kind {
        Kind::Pod => None,
        Kind::ReplicaSet | Kind::Deployment => {
            let key = namespace_key(kind, Role::InNamespace, id.namespace);
            Some(groups.obtain(texts, &key)?)
        }
    };
    let Some(slot) = table.insert(texts, id, record) else {
        if let Some(group) = in_namespace {
            groups.free_unused(texts, group);
        }
        return Err(RefusalReason::TableFull);
    };
    groups.link(table, List::Owned, group, slot);
    if let Some(group) = in_namespace {
        groups.link(table, List::InNamespace, group, slot);
    }
    Ok(slot)
}

fn update<R: Record>(
    table: &mut Table<[Entry<R>]>,
    groups: &mut Groups,
    texts: &mut Interner,
    meta: &Meta,
    slot: Slot,
    group: Slot,
    record: R,
) -> Result<Upserted, RefusalReason> {
    let before = table.get(slot).copied().ok_or(RefusalReason::TableFull)?;
    table.replace(slot, meta.uid, meta.resource_version, record);
    before.record.release(texts);
    let owner_changed = before.owned_group() != Some(group);
    if owner_changed {
        groups.unlink_entry(texts, table, List::Owned, slot);
        groups.link(table, List::Owned, group, slot);
    }
    let deleting = record.is_deleting();
    let was_expected = before.is_deletion_expected() && (deleting || owner_changed);
    if let Some(entry) = table.get_mut(slot)
        && was_expected
    {
        entry.flags &= !flag::EXPECTED;
    }
    Ok(Upserted {
        slot,
        event: Event::Updated,
        same_version: before.version() == meta.resource_version,
        uid_changed: before.uid() != meta.uid,
        labels_changed: before.record.labels() != record.labels(),
        owner_changed,
        old_uid: before.uid(),
        deleting,
        became_ready: !before.record.is_ready() && record.is_ready(),
        was_expected,
    })
}

fn remove<R: Record>(
    table: &mut Table<[Entry<R>]>,
    groups: &mut Groups,
    texts: &mut Interner,
    slot: Slot,
) {
    groups.unlink_entry(texts, table, List::Owned, slot);
    groups.unlink_entry(texts, table, List::InNamespace, slot);
    table.retire(texts, slot);
}

/// The group of the object's controller, or of the orphans of its namespace.
pub(super) fn obtain_group(
    groups: &mut Groups,
    texts: &mut Interner,
    kind: Kind,
    meta: &Meta,
) -> Result<Slot, RefusalReason> {
    let namespace = texts.intern(meta.namespace.as_bytes())?;
    let key = match &meta.controller {
        None => Ok(namespace_key(kind, Role::Orphans, namespace)),
        Some(owner) => texts.intern(owner.name.as_bytes()).map(|name| GroupKey {
            members: kind,
            role: Role::owned_by(owner.kind),
            namespace,
            name,
            uid: owner.uid,
        }),
    };
    let group = match &key {
        Ok(key) => groups.obtain(texts, key),
        Err(full) => Err((*full).into()),
    };
    // The group holds texts of its own.
    if let Ok(key) = key {
        texts.release(key.name);
    }
    texts.release(namespace);
    group
}

pub(super) const fn namespace_key(members: Kind, role: Role, namespace: Text) -> GroupKey {
    GroupKey { members, role, namespace, name: Text::EMPTY, uid: wire::Uid::NIL }
}
