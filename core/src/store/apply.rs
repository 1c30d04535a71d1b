//! Applying what a list or watch delivers.

use crate::json::Digest;
use crate::kind::Kind;
use crate::link::{Link, Slot};
use crate::text::{Interner, Name, Text};
use crate::wire::{self, Meta, ResourceVersion};

use super::Cache;
use super::cached::Cached;
use super::change::{Applied, Change, ChangeType, Owner, RefusalReason};
use super::groups::{GroupKey, Groups, List, Role};
use super::index::{Head, Identity, Index, flag};
use super::table::Record;

impl Cache<'_> {
    /// An object was listed, added or modified.
    pub fn apply<K: Cached>(&mut self, object: &K) -> Applied {
        let (kind, meta) = (K::CACHED, object.meta());
        let before = match self.compare(kind, meta) {
            Ok(before) => before,
            Err(applied) => return applied,
        };
        let placed = object.condense(self.texts).and_then(|record| {
            let placed = self.place(kind, meta, before);
            match placed {
                Ok(change) => Ok(self.keep::<K>(record, change)),
                Err(reason) => {
                    record.release(self.texts);
                    Err(reason)
                }
            }
        });
        match placed {
            Ok(change) => Applied::Changed(self.settle(kind, change)),
            Err(reason) => {
                Applied::Refused(self.refuse(kind, meta, before.slot, before.owner, reason))
            }
        }
    }

    /// Puts a record into its place, and tells what it makes different.
    fn keep<K: Cached>(&mut self, record: K::Record, change: Change) -> Change {
        let old = {
            let records = &mut *K::table_mut(self).records;
            let Some(place) = records.get_mut(change.slot.index()) else { return change };
            core::mem::replace(place, record)
        };
        if change.event == ChangeType::Added {
            return change;
        }
        let labels_changed = old.labels() != record.labels();
        let became_ready = !old.is_ready() && record.is_ready();
        old.release(self.texts);
        Change { labels_changed, became_ready, ..change }
    }

    /// Whether this state of an object, or a later one, is cached.
    pub fn has(&self, kind: Kind, meta: &Meta) -> bool {
        let found = self.index(kind).find_same(self.texts, meta);
        found.is_some_and(|(_, head)| !head.is_stale() && head.version() >= meta.resource_version)
    }

    /// The digest of an object's pod template, if that is cached; what else is kept of a template is
    /// filled in. A generation has one template, if the server counts generations, and has not gone
    /// back in time since.
    pub fn recall_template<K: Cached>(&self, object: &mut K) -> Option<Digest> {
        let meta = object.meta();
        if !K::HAS_TEMPLATE || meta.generation == 0 {
            return None;
        }
        let found = self.index(K::CACHED).find_same(self.texts, meta);
        let (slot, _) = found.filter(|(_, head)| head.version() != ResourceVersion::ANY)?;
        object.recall_template(K::table(self).records.get(slot.index())?, self.texts)
    }

    /// An object was deleted. `None` if it was not cached, or if another one of the same name is. The
    /// slot of an object that is a controller's key stays taken until [`free`](Self::free).
    pub fn delete(&mut self, kind: Kind, meta: &Meta) -> Option<Change> {
        let index = self.index(kind);
        let Some(slot) = index.find(self.texts, &meta.namespace, &meta.name) else {
            // An object that was refused before may be gone now: a list will tell.
            let shortage = &mut self.split(kind).0.state.shortage;
            shortage.room = shortage.refused > 0;
            return None;
        };
        // One that has a successor of the same name already.
        let is_predecessor = index
            .get(slot)
            .is_some_and(|head| head.uid() != meta.uid && meta.resource_version < head.version());
        if is_predecessor { None } else { self.remove(kind, slot) }
    }

    /// Frees the slot of a deleted object, once no queue knows it any more.
    pub fn free(&mut self, kind: Kind, slot: Slot) {
        if self.split(kind).0.free(slot) {
            self.room_appeared();
        }
    }

    pub(super) fn remove(&mut self, kind: Kind, slot: Slot) -> Option<Change> {
        let head = *self.head(kind, slot)?;
        let deleting = self.record(kind, slot)?.is_deleting();
        let owner = self.resolve(head.owned_group());
        self.release_record(kind, slot);
        let (index, groups, texts) = self.split(kind);
        groups.unlink_entry(texts, index, List::Owned, slot);
        groups.unlink_entry(texts, index, List::InNamespace, slot);
        index.retire(texts, slot);
        if !kind.info().is_key {
            index.free(slot);
        }
        self.room_appeared();
        Some(Change {
            slot,
            event: ChangeType::Deleted,
            same_version: false,
            uid_changed: false,
            labels_changed: false,
            owner_changed: false,
            old_owner: owner,
            new_owner: owner,
            old_uid: head.uid(),
            deleting,
            became_ready: false,
            was_expected: head.is_deletion_expected(),
            gone_from: head.namespace(),
        })
    }

    /// What is cached of an object that comes, or what became of it if that is all.
    fn compare(&mut self, kind: Kind, meta: &Meta) -> Result<Before, Applied> {
        if kind.is_foreign(meta.controller.as_ref().map(|owner| owner.kind)) {
            return Err(self.delete(kind, meta).map_or(Applied::Foreign, Applied::Changed));
        }
        let Some(slot) = self.find(kind, &meta.namespace, &meta.name) else {
            return Ok(Before { slot: None, owner: Owner::None });
        };
        if let Some(head) = self.split(kind).0.get_mut(slot)
            && meta.resource_version < head.version()
        {
            // It counts as listed.
            head.flags |= flag::SEEN;
            return Err(Applied::Older);
        }
        Ok(Before { slot: Some(slot), owner: self.owner_of(kind, slot) })
    }

    /// Gives an object its place. On failure the cache is as it was.
    fn place(&mut self, kind: Kind, meta: &Meta, old: Before) -> Result<Change, RefusalReason> {
        let (index, groups, texts) = self.split(kind);
        let group = match same_group(index, groups, texts, meta, old.slot) {
            Some(group) => group,
            None => obtain_group(groups, texts, kind, meta)?,
        };
        let was_missing = old.slot.is_none_or(|slot| index.get(slot).is_none_or(Head::is_stale));
        if was_missing && groups.get(group).is_some_and(|group| group.is_blind()) {
            // It may be the one that was refused: a list will tell.
            index.state.shortage.room = index.state.shortage.refused > 0;
        }
        let placed = match old.slot {
            Some(slot) => Ok(update(index, groups, texts, meta, slot, group, old.owner)),
            None => insert(index, groups, texts, meta, group).map(|slot| Change {
                slot,
                event: ChangeType::Added,
                same_version: false,
                uid_changed: false,
                labels_changed: false,
                owner_changed: false,
                old_owner: old.owner,
                new_owner: Owner::None,
                old_uid: meta.uid,
                deleting: meta.deletion.is_some(),
                became_ready: false,
                was_expected: false,
                gone_from: Text::EMPTY,
            }),
        };
        if placed.is_err() {
            groups.free_unused(texts, group);
        }
        placed
    }

    /// What only the object in its place can tell.
    fn settle(&mut self, kind: Kind, change: Change) -> Change {
        if change.event == ChangeType::Added || change.uid_changed {
            self.inherit_blindness(kind, change.slot);
        }
        Change { new_owner: self.owner_of(kind, change.slot), ..change }
    }
}

/// What was cached of an object before.
#[derive(Clone, Copy)]
struct Before {
    slot: Link,
    owner: Owner,
}

fn insert(
    index: &mut Index<'_>,
    groups: &mut Groups,
    texts: &mut Interner,
    meta: &Meta,
    group: Slot,
) -> Result<Slot, RefusalReason> {
    let namespace = texts.intern(meta.namespace.as_bytes())?;
    let name = if index.kind.info().has_generated_names {
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
    let inserted = insert_named(index, groups, texts, group, id);
    if inserted.is_err() {
        name.release(texts);
        texts.release(namespace);
    }
    inserted
}

fn insert_named(
    index: &mut Index<'_>,
    groups: &mut Groups,
    texts: &mut Interner,
    group: Slot,
    id: Identity,
) -> Result<Slot, RefusalReason> {
    let in_namespace = if index.lists_namespaces() {
        let key = namespace_key(index.kind, Role::IN_NAMESPACE, id.namespace);
        Some(groups.obtain(texts, &key)?)
    } else {
        None
    };
    let Some(slot) = index.insert(texts, id) else {
        if let Some(group) = in_namespace {
            groups.free_unused(texts, group);
        }
        return Err(RefusalReason::TableFull);
    };
    groups.link(index, List::Owned, group, slot);
    if let Some(group) = in_namespace {
        groups.link(index, List::InNamespace, group, slot);
    }
    Ok(slot)
}

fn update(
    index: &mut Index<'_>,
    groups: &mut Groups,
    texts: &mut Interner,
    meta: &Meta,
    slot: Slot,
    group: Slot,
    old_owner: Owner,
) -> Change {
    let before = index.get(slot).copied().unwrap_or(Head::EMPTY);
    index.renew(slot, meta.uid, meta.resource_version);
    let owner_changed = before.owned_group() != Some(group);
    if owner_changed {
        groups.unlink_entry(texts, index, List::Owned, slot);
        groups.link(index, List::Owned, group, slot);
    }
    let deleting = meta.deletion.is_some();
    // Another one of the same name: the one that was to go has gone.
    let is_another = before.uid() != meta.uid;
    let was_expected = before.is_deletion_expected() && (deleting || owner_changed || is_another);
    // A server that has gone back in time may not know of the deletion.
    let is_undone = before.version() == ResourceVersion::ANY;
    if let Some(head) = index.get_mut(slot)
        && (was_expected || is_undone)
    {
        head.flags &= !flag::EXPECTED;
    }
    Change {
        slot,
        event: ChangeType::Updated,
        same_version: before.version() == meta.resource_version,
        uid_changed: is_another,
        labels_changed: false,
        owner_changed,
        old_owner,
        new_owner: Owner::None,
        old_uid: before.uid(),
        deleting,
        became_ready: false,
        was_expected,
        gone_from: Text::EMPTY,
    }
}

/// The group that a cached object is in, if it stays there: most do, and need not be looked for.
fn same_group(
    index: &Index<'_>,
    groups: &Groups,
    texts: &Interner,
    meta: &Meta,
    slot: Link,
) -> Link {
    let owner = meta.controller.as_ref()?;
    let group = index.get(slot?)?.owned_group()?;
    // Its namespace is the object's, which was found by that.
    let is_same = groups.get(group)?.is_of(texts, owner);
    is_same.then_some(group)
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
        None => Ok(namespace_key(kind, Role::ORPHANS, namespace)),
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
