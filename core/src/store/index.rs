//! What every kind's table has, whatever is kept of its objects: who is where, by which name, in
//! which lists. Compiled once for all kinds.

use core::hash::Hasher;

use crate::kind::Kind;
use crate::link::{Link, Slot, bucket};
use crate::text::{Interner, Name, NameDisplay, Text};
use crate::wire::{Meta, ResourceVersion, Uid};

use super::groups::List;
use super::packed::Packed64;

/// What is kept of an object of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    uid: Uid,
    version: Packed64,
    name: Name,
    namespace: Text,
    /// Bits of [`flag`].
    pub(super) flags: u8,
    name_bucket: Link,
    name_next: Link,
    owned: Place,
}

/// Where an object stands in the list of a group.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub(super) group: Link,
    pub(super) before: Link,
    pub(super) after: Link,
}

/// Bits of [`Head::flags`].
pub(super) mod flag {
    /// The slot holds an object.
    pub(in crate::store) const USED: u8 = 1;
    /// The object was in the list that is being read, or changed since it began.
    pub(in crate::store) const SEEN: u8 = 1 << 1;
    /// The object is gone but its slot is still someone's key.
    pub(in crate::store) const RETIRED: u8 = 1 << 2;
    /// A newer state of the object did not fit.
    pub(in crate::store) const STALE: u8 = 1 << 3;
    /// The owner awaits the object's deletion.
    pub(in crate::store) const EXPECTED: u8 = 1 << 4;
    /// The owner is about to ask for the object's deletion.
    pub(in crate::store) const VICTIM: u8 = 1 << 5;
    /// Someone was told that the object is blind.
    pub(in crate::store) const TOLD: u8 = 1 << 6;
}

/// The objects of one kind, without what is kept of that kind alone.
#[derive(Debug)]
pub(super) struct Index<'a> {
    pub(super) kind: Kind,
    pub(super) state: &'a mut IndexState,
    heads: &'a mut [Head],
    /// Where objects stand in the lists of their namespaces; empty if there are no such lists.
    in_namespace: &'a mut [Place],
}

/// The part of an [`Index`] that does not grow with its capacity.
#[derive(Debug)]
pub(super) struct IndexState {
    free: Link,
    /// Slots from here on were never used.
    fresh: u16,
    taken: u16,
    pub(super) shortage: Shortage,
}

/// The shortage of room for one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortage {
    /// Refusals since the last complete list, and since the running one began.
    pub(super) refused: u32,
    pub(super) refused_anew: u32,
    /// Nobody knows whose objects are missing: every owner is blind.
    pub(super) all_blind: bool,
    pub(super) all_blind_anew: bool,
    /// Something was freed since a refusal.
    pub(super) room: bool,
}

/// What identifies an object in its table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) namespace: Text,
    pub(super) name: Name,
    pub(super) uid: Uid,
    pub(super) version: ResourceVersion,
}

impl Place {
    pub(super) const NONE: Self = Self { group: None, before: None, after: None };
}

impl IndexState {
    pub(super) const NEW: Self = Self {
        free: None,
        fresh: 0,
        taken: 0,
        shortage: Shortage {
            refused: 0,
            refused_anew: 0,
            all_blind: false,
            all_blind_anew: false,
            room: false,
        },
    };
}

impl Head {
    pub(super) const EMPTY: Self = Self {
        uid: Uid::NIL,
        version: Packed64::new(0),
        name: Name::EMPTY,
        namespace: Text::EMPTY,
        flags: 0,
        name_bucket: None,
        name_next: None,
        owned: Place::NONE,
    };

    /// The object's uid.
    pub const fn uid(&self) -> Uid {
        self.uid
    }

    /// The version of the object that is cached.
    pub const fn version(&self) -> ResourceVersion {
        ResourceVersion::new(self.version.get())
    }

    /// The object's namespace.
    pub const fn namespace(&self) -> Text {
        self.namespace
    }

    /// The object's name.
    pub const fn name(&self) -> Name {
        self.name
    }

    /// The object's name as text.
    pub fn display_name<'a>(&self, texts: &'a Interner) -> NameDisplay<'a> {
        self.name.display(texts)
    }

    /// Whether a newer state of the object came that could not be stored. Its owner is blind.
    pub const fn is_stale(&self) -> bool {
        self.flags & flag::STALE != 0
    }

    /// Whether the owner has asked for the object's deletion and not yet seen it.
    pub const fn is_deletion_expected(&self) -> bool {
        self.flags & flag::EXPECTED != 0
    }

    /// The group of objects with the same controller, or of orphans, that it is in.
    pub(super) const fn owned_group(&self) -> Link {
        self.owned.group
    }

    const fn is_present(&self) -> bool {
        self.flags & (flag::USED | flag::RETIRED) == flag::USED
    }
}

impl<'a> Index<'a> {
    pub(super) fn new(
        kind: Kind,
        state: &'a mut IndexState,
        heads: &'a mut [Head],
        in_namespace: &'a mut [Place],
    ) -> Self {
        Self { kind, state, heads, in_namespace }
    }

    /// The object in a slot.
    pub(super) fn get(&self, slot: Slot) -> Option<&Head> {
        self.heads.get(slot.index()).filter(|head| head.is_present())
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Head> {
        self.heads.get_mut(slot.index()).filter(|head| head.is_present())
    }

    /// The slot of the object with this namespace and name.
    pub(super) fn find(&self, texts: &Interner, namespace: &str, name: &str) -> Link {
        let namespace = texts.find(namespace.as_bytes())?;
        let name = if self.kind.info().has_generated_names {
            Name::find_split(texts, name)?
        } else {
            Name::find_whole(texts, name)?
        };
        self.find_name(texts, namespace, name)
    }

    /// The slot of the object with this namespace, name and uid.
    pub(super) fn find_same(&self, texts: &Interner, meta: &Meta) -> Option<(Slot, &Head)> {
        let slot = self.find(texts, &meta.namespace, &meta.name)?;
        let head = self.get(slot)?;
        (head.uid == meta.uid).then_some((slot, head))
    }

    pub(super) fn find_name(&self, texts: &Interner, namespace: Text, name: Name) -> Link {
        let mut at = self.heads.get(self.name_bucket(texts, namespace, name))?.name_bucket;
        loop {
            let slot = at?;
            let head = self.heads.get(slot.index())?;
            if head.namespace == namespace && head.name == name {
                return Some(slot);
            }
            at = head.name_next;
        }
    }

    /// The first object from an index on.
    pub(super) fn first_from(&self, index: usize) -> Link {
        let rest = self.heads.get(index..)?;
        Slot::from_index(index + rest.iter().position(Head::is_present)?)
    }

    /// All objects, in order of slots.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        let present = self.heads.iter().enumerate().filter(|(_, head)| head.is_present());
        present.filter_map(|(index, _)| Slot::from_index(index))
    }

    pub(super) fn heads_mut(&mut self) -> impl Iterator<Item = &mut Head> {
        self.heads.iter_mut().filter(|head| head.is_present())
    }

    pub(super) fn forget_versions(&mut self) {
        self.heads_mut().for_each(|head| head.version = Packed64::new(0));
    }

    /// Slots that are taken, also by objects that are gone but still someone's key.
    pub(super) fn taken(&self) -> usize {
        usize::from(self.state.taken)
    }

    /// Objects there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are lists of all objects of a namespace.
    pub(super) fn lists_namespaces(&self) -> bool {
        !self.in_namespace.is_empty()
    }

    /// The next object in a list.
    pub(super) fn after(&self, slot: Slot, list: List) -> Link {
        match list {
            List::Owned => self.get(slot)?.owned.after,
            List::InNamespace => self.in_namespace.get(slot.index())?.after,
        }
    }

    /// Where an object stands in a list, if it is there and such a list is.
    pub(super) fn place_mut(&mut self, slot: Link, list: List) -> Option<&mut Place> {
        match list {
            List::Owned => self.get_mut(slot?).map(|head| &mut head.owned),
            List::InNamespace => self.in_namespace.get_mut(slot?.index()),
        }
    }

    /// Puts a new object into a free slot, in no group yet. The index takes over the handles of the
    /// identity; without a free slot they stay with the caller.
    pub(super) fn insert(&mut self, texts: &Interner, id: Identity) -> Link {
        let slot = self.allocate()?;
        let head = self.heads.get_mut(slot.index())?;
        head.uid = id.uid;
        head.version = Packed64::new(id.version.number());
        head.name = id.name;
        head.namespace = id.namespace;
        head.flags = flag::USED | flag::SEEN;
        head.owned = Place::NONE;
        if let Some(place) = self.in_namespace.get_mut(slot.index()) {
            *place = Place::NONE;
        }
        self.index_name(texts, slot);
        Some(slot)
    }

    /// The object in a slot has a new state.
    pub(super) fn renew(&mut self, slot: Slot, uid: Uid, version: ResourceVersion) {
        if let Some(head) = self.get_mut(slot) {
            head.uid = uid;
            head.version = Packed64::new(version.number());
            head.flags = (head.flags | flag::SEEN) & !flag::STALE;
        }
    }

    /// Takes an object out of the index and gives its names back. The slot stays taken until
    /// [`free`](Self::free).
    pub(super) fn retire(&mut self, texts: &mut Interner, slot: Slot) {
        if self.get(slot).is_none() {
            return;
        }
        self.unindex_name(texts, slot);
        let Some(head) = self.heads.get_mut(slot.index()) else { return };
        head.flags |= flag::RETIRED;
        head.name.release(texts);
        texts.release(head.namespace);
    }

    /// Frees the slot of a retired object.
    pub(super) fn free(&mut self, slot: Slot) -> bool {
        match self.heads.get_mut(slot.index()) {
            Some(head) if head.flags & flag::RETIRED != 0 => {
                head.flags = 0;
                head.name_next = self.state.free.replace(slot);
                self.state.taken -= 1;
                true
            }
            _ => false,
        }
    }

    fn allocate(&mut self) -> Link {
        let slot = match self.state.free {
            Some(slot) => {
                self.state.free = self.heads.get(slot.index())?.name_next;
                slot
            }
            None => {
                let index = usize::from(self.state.fresh);
                self.heads.get(index)?;
                self.state.fresh += 1;
                Slot::from_index(index)?
            }
        };
        self.state.taken += 1;
        Some(slot)
    }

    fn index_name(&mut self, texts: &Interner, slot: Slot) {
        let Some(head) = self.heads.get(slot.index()) else { return };
        let bucket = self.name_bucket(texts, head.namespace, head.name);
        let Some(first) = self.heads.get_mut(bucket) else { return };
        let next = first.name_bucket.replace(slot);
        if let Some(head) = self.heads.get_mut(slot.index()) {
            head.name_next = next;
        }
    }

    fn unindex_name(&mut self, texts: &Interner, slot: Slot) {
        let Some(&Head { namespace, name, name_next, .. }) = self.heads.get(slot.index()) else {
            return;
        };
        let bucket = self.name_bucket(texts, namespace, name);
        let Some(first) = self.heads.get_mut(bucket) else { return };
        if first.name_bucket == Some(slot) {
            first.name_bucket = name_next;
            return;
        }
        let mut at = first.name_bucket;
        while let Some(other) = at.and_then(|slot| self.heads.get_mut(slot.index())) {
            if other.name_next == Some(slot) {
                other.name_next = name_next;
                return;
            }
            at = other.name_next;
        }
    }

    fn name_bucket(&self, texts: &Interner, namespace: Text, name: Name) -> usize {
        let hash = texts.hash(|hasher| {
            hasher.write(&name.bits());
            hasher.write_u16(namespace.bits());
        });
        bucket(hash, self.heads.len())
    }
}
