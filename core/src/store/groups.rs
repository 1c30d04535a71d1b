//! Lists of cached objects that belong together: by controller, orphans of a namespace, all of a
//! namespace.
//!
//! A group also remembers whether its controller is blind, so it may exist without members.

use core::hash::Hasher;

use crate::kind::{Kind, OwnerKind};
use crate::link::{Link, Slot, bucket};
use crate::text::{Interner, Text};
use crate::wire::{ControllerRef, Uid};

use super::change::RefusalReason;
use super::index::{Index, Place};

/// One list of objects. [`Groups`] holds them.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    uid: Uid,
    namespace: Text,
    /// Of the controller.
    name: Text,
    members: Kind,
    /// Bits of [`flag`], and above them the role.
    flags: u8,
    first: Link,
    len: u16,
    bucket: Link,
    next: Link,
}

/// What the members of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Role(u8);

impl Role {
    /// Their namespace.
    pub(super) const IN_NAMESPACE: Self = Self(0);
    /// Their namespace, and that they have no controller.
    pub(super) const ORPHANS: Self = Self(1);

    /// Their controller.
    pub(super) const fn owned_by(kind: OwnerKind) -> Self {
        Self(Self::ORPHANS.0 + kind as u8)
    }

    pub(super) const fn is_owned(self) -> bool {
        self.0 > Self::ORPHANS.0
    }
}

/// Which of its two groups an entry is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Owned,
    InNamespace,
}

/// What tells groups apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupKey {
    pub(super) members: Kind,
    pub(super) role: Role,
    pub(super) namespace: Text,
    pub(super) name: Text,
    pub(super) uid: Uid,
}

mod flag {
    /// Where the role begins.
    pub(super) const ROLE: u32 = 3;
    pub(super) const USED: u8 = 1;
    pub(super) const BLIND: u8 = 1 << 1;
    /// Blind because of something that happened since the running relist began.
    pub(super) const BLIND_ANEW: u8 = 1 << 2;
}

/// All groups. `S` is `[Group; N]` where they live, `[Group]` where they are used.
#[derive(Debug)]
pub struct Groups<S: ?Sized = [Group]> {
    free: Link,
    fresh: u16,
    used: u16,
    groups: S,
}

impl Group {
    const EMPTY: Self = Self {
        uid: Uid::NIL,
        namespace: Text::EMPTY,
        name: Text::EMPTY,
        members: Kind::ReplicaSet,
        flags: 0,
        first: None,
        len: 0,
        bucket: None,
        next: None,
    };

    pub(super) const fn key(&self) -> GroupKey {
        let Self { members, namespace, name, uid, .. } = *self;
        GroupKey { members, role: self.role(), namespace, name, uid }
    }

    const fn role(&self) -> Role {
        Role(self.flags >> flag::ROLE)
    }

    /// Whether it is that of a controller of its namespace.
    pub(super) fn is_of(&self, texts: &Interner, owner: &ControllerRef) -> bool {
        self.role() == Role::owned_by(owner.kind)
            && self.uid == owner.uid
            && texts.is(self.name, owner.name.as_bytes())
    }

    pub(super) const fn is_blind(&self) -> bool {
        self.flags & flag::BLIND != 0
    }

    pub(super) const fn first(&self) -> Link {
        self.first
    }
}

impl<const N: usize> Groups<[Group; N]> {
    /// No groups.
    pub const fn new() -> Self {
        const { assert!(N > 0 && N <= Slot::MOST) };
        Self { free: None, fresh: 0, used: 0, groups: [Group::EMPTY; N] }
    }
}

impl<const N: usize> Default for Groups<[Group; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl Groups {
    /// Groups in use.
    pub fn used(&self) -> usize {
        usize::from(self.used)
    }

    /// Groups in all.
    pub fn capacity(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn get(&self, group: Slot) -> Option<&Group> {
        self.groups.get(group.index()).filter(|group| group.flags & flag::USED != 0)
    }

    pub(super) fn find(&self, texts: &Interner, key: &GroupKey) -> Link {
        let mut at = self.groups.get(self.bucket_of(texts, key))?.bucket;
        loop {
            let slot = at?;
            let group = self.groups.get(slot.index())?;
            if group.key() == *key {
                return Some(slot);
            }
            at = group.next;
        }
    }

    /// The group of this key, made if there is none. Without members or blindness it has to be
    /// given back with [`free_unused`](Self::free_unused).
    pub(super) fn obtain(
        &mut self,
        texts: &mut Interner,
        key: &GroupKey,
    ) -> Result<Slot, RefusalReason> {
        if let Some(found) = self.find(texts, key) {
            return Ok(found);
        }
        let slot = self.allocate().ok_or(RefusalReason::GroupsFull)?;
        texts.retain(key.namespace);
        texts.retain(key.name);
        let bucket = self.bucket_of(texts, key);
        let next = self.groups.get_mut(bucket).and_then(|head| head.bucket.replace(slot));
        if let Some(group) = self.groups.get_mut(slot.index()) {
            let GroupKey { members, role, namespace, name, uid } = *key;
            let bucket = group.bucket;
            let flags = flag::USED | role.0 << flag::ROLE;
            *group =
                Group { uid, namespace, name, members, flags, first: None, len: 0, bucket, next };
        }
        Ok(slot)
    }

    pub(super) fn free_unused(&mut self, texts: &mut Interner, slot: Slot) {
        let Some(&group) = self.get(slot) else { return };
        if group.len > 0 || group.is_blind() {
            return;
        }
        self.unlink(texts, slot, &group);
        if let Some(freed) = self.groups.get_mut(slot.index()) {
            freed.flags = 0;
            freed.next = self.free.replace(slot);
        }
        self.used -= 1;
        texts.release(group.namespace);
        texts.release(group.name);
    }

    /// Makes the owner of the group's members blind.
    pub(super) fn blind(&mut self, slot: Slot) {
        if let Some(group) = self.groups.get_mut(slot.index()) {
            group.flags |= flag::BLIND | flag::BLIND_ANEW;
        }
    }

    /// A relist of `members` begins: blindness has to prove itself again.
    pub(super) fn begin_relist(&mut self, members: Kind) {
        for group in self.groups.iter_mut().filter(|group| group.members == members) {
            group.flags &= !flag::BLIND_ANEW;
        }
    }

    /// The first group from `from` on whose blindness the complete relist did not confirm; it
    /// sees again.
    pub(super) fn heal_next(&mut self, members: Kind, from: &mut usize) -> Link {
        let healed = |group: &Group| {
            group.flags & flag::USED != 0
                && group.members == members
                && group.is_blind()
                && group.flags & flag::BLIND_ANEW == 0
        };
        let rest = self.groups.get_mut(*from..)?;
        let offset = rest.iter().position(healed)?;
        rest.get_mut(offset)?.flags &= !flag::BLIND;
        let index = *from + offset;
        *from = index + 1;
        Slot::from_index(index)
    }

    fn allocate(&mut self) -> Link {
        let slot = match self.free {
            Some(slot) => {
                self.free = self.groups.get(slot.index())?.next;
                slot
            }
            None => {
                let index = usize::from(self.fresh);
                self.groups.get(index)?;
                self.fresh += 1;
                Slot::from_index(index)?
            }
        };
        self.used += 1;
        Some(slot)
    }

    fn unlink(&mut self, texts: &Interner, slot: Slot, group: &Group) {
        let bucket = self.bucket_of(texts, &group.key());
        let Some(head) = self.groups.get_mut(bucket) else { return };
        if head.bucket == Some(slot) {
            head.bucket = group.next;
            return;
        }
        let mut at = head.bucket;
        while let Some(other) = at.and_then(|slot| self.groups.get_mut(slot.index())) {
            if other.next == Some(slot) {
                other.next = group.next;
                return;
            }
            at = other.next;
        }
    }

    fn bucket_of(&self, texts: &Interner, key: &GroupKey) -> usize {
        let hash = texts.hash(|hasher| {
            hasher.write(&key.uid.to_bytes());
            hasher.write_u16(key.namespace.bits());
            hasher.write_u16(key.members as u16 | u16::from(key.role.0) << 8);
        });
        bucket(hash, self.groups.len())
    }

    /// Puts an entry at the head of a group's list.
    pub(super) fn link(&mut self, index: &mut Index<'_>, list: List, group: Slot, slot: Slot) {
        let Some(head) = self.groups.get_mut(group.index()) else { return };
        let after = head.first.replace(slot);
        head.len += 1;
        if let Some(place) = index.place_mut(Some(slot), list) {
            *place = Place { group: Some(group), before: None, after };
        }
        if let Some(place) = index.place_mut(after, list) {
            place.before = Some(slot);
        }
    }

    /// Takes an entry out of the list it is in, and frees the group if it was the last.
    pub(super) fn unlink_entry(
        &mut self,
        texts: &mut Interner,
        index: &mut Index<'_>,
        list: List,
        slot: Slot,
    ) {
        let Some(place) = index.place_mut(Some(slot), list) else { return };
        let Place { group, before, after } = core::mem::replace(place, Place::NONE);
        let Some(group) = group else { return };
        if let Some(place) = index.place_mut(after, list) {
            place.before = before;
        }
        match index.place_mut(before, list) {
            Some(place) => place.after = after,
            None => {
                if let Some(head) = self.groups.get_mut(group.index()) {
                    head.first = after;
                }
            }
        }
        if let Some(head) = self.groups.get_mut(group.index()) {
            head.len -= 1;
        }
        self.free_unused(texts, group);
    }
}
