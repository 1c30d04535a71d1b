//! A table of cached objects of one kind, with its index of names.

use core::fmt::Debug;
use core::hash::Hasher;

use crate::link::{Link, Slot, bucket};
use crate::text::{Interner, LabelSet, Name, NameDisplay, Text};
use crate::wire::{Meta, ResourceVersion, Uid};

use super::groups::List;
use super::packed::Packed64;

/// What a kind's record has to offer to be kept in a [`Table`].
pub trait Record: Copy {
    /// A record with all bits zero.
    const EMPTY: Self;
    /// Whether names of this kind are many variations of few stems.
    const SPLIT_NAMES: bool;
    /// Where such an object stands in the list of its namespace: a place, or none if there is no such
    /// list of the kind.
    type InNamespace: InNamespace;

    /// The object's labels.
    fn labels(&self) -> LabelSet;
    /// Whether the object is being deleted.
    fn is_deleting(&self) -> bool;
    /// Whether the object is ready, if its kind knows that.
    fn is_ready(&self) -> bool {
        false
    }
    /// Gives back what the record holds of the interner.
    fn release(&self, texts: &mut Interner);
}

/// An object in a [`Table`]: its record, and what every kind has.
#[derive(Clone, Copy, Debug)]
pub struct Entry<R: Record> {
    /// What controllers decide on.
    pub record: R,
    uid: Uid,
    version: Packed64,
    name: Name,
    namespace: Text,
    /// Bits of [`flag`].
    pub(super) flags: u8,
    name_bucket: Link,
    name_next: Link,
    owned: Place,
    in_namespace: R::InNamespace,
}

/// Where an entry stands in the list of a group.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub(super) group: Link,
    pub(super) before: Link,
    pub(super) after: Link,
}

/// A [`Place`], or `()` for none at all.
pub trait InNamespace: Copy + Debug {
    /// In no list.
    const NOWHERE: Self;

    /// The place.
    fn place(&self) -> Option<&Place>;

    /// The place, to be changed.
    fn place_mut(&mut self) -> Option<&mut Place>;
}

impl InNamespace for Place {
    const NOWHERE: Self = Self::NONE;

    fn place(&self) -> Option<&Place> {
        Some(self)
    }

    fn place_mut(&mut self) -> Option<&mut Place> {
        Some(self)
    }
}

impl InNamespace for () {
    const NOWHERE: Self = ();

    fn place(&self) -> Option<&Place> {
        None
    }

    fn place_mut(&mut self) -> Option<&mut Place> {
        None
    }
}

/// Bits of [`Entry::flags`].
pub(super) mod flag {
    /// The entry holds an object.
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
    /// Someone was told that the object's owner is blind.
    pub(in crate::store) const TOLD: u8 = 1 << 6;
}

/// The objects of one kind. `S` is `[Entry<R>; N]` where it lives, `[Entry<R>]` where it is used.
#[derive(Debug)]
pub struct Table<S: ?Sized> {
    free: Link,
    /// Entries from here on were never used.
    fresh: u16,
    taken: u16,
    entries: S,
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

impl<R: Record> Entry<R> {
    const EMPTY: Self = Self {
        record: R::EMPTY,
        uid: Uid::NIL,
        version: Packed64::new(0),
        name: Name::EMPTY,
        namespace: Text::EMPTY,
        flags: 0,
        name_bucket: None,
        name_next: None,
        owned: Place::NONE,
        in_namespace: R::InNamespace::NOWHERE,
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

    fn place(&self, list: List) -> Option<&Place> {
        match list {
            List::Owned => Some(&self.owned),
            List::InNamespace => self.in_namespace.place(),
        }
    }

    fn place_mut(&mut self, list: List) -> Option<&mut Place> {
        match list {
            List::Owned => Some(&mut self.owned),
            List::InNamespace => self.in_namespace.place_mut(),
        }
    }

    /// The next one in a list.
    pub(super) fn after(&self, list: List) -> Link {
        self.place(list)?.after
    }

    pub(super) fn forget_version(&mut self) {
        self.version = Packed64::default();
    }

    const fn is_present(&self) -> bool {
        self.flags & (flag::USED | flag::RETIRED) == flag::USED
    }
}

impl<R: Record, const N: usize> Table<[Entry<R>; N]> {
    /// An empty table.
    pub const fn new() -> Self {
        const { assert!(N > 0 && N <= Slot::MOST) };
        Self { free: None, fresh: 0, taken: 0, entries: [Entry::EMPTY; N] }
    }
}

impl<R: Record, const N: usize> Default for Table<[Entry<R>; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Record> Table<[Entry<R>]> {
    /// The object in a slot.
    pub fn get(&self, slot: Slot) -> Option<&Entry<R>> {
        self.entries.get(slot.index()).filter(|entry| entry.is_present())
    }

    /// The slot of the object with this namespace and name.
    pub fn find(&self, texts: &Interner, namespace: &str, name: &str) -> Option<Slot> {
        let namespace = texts.find(namespace.as_bytes())?;
        let name = if R::SPLIT_NAMES {
            Name::find_split(texts, name)?
        } else {
            Name::find_whole(texts, name)?
        };
        self.find_name(texts, namespace, name)
    }

    /// The slot of the object with this namespace, name and uid.
    pub(super) fn find_same(&self, texts: &Interner, meta: &Meta) -> Option<Slot> {
        let slot = self.find(texts, &meta.namespace, &meta.name)?;
        (self.get(slot)?.uid == meta.uid).then_some(slot)
    }

    /// The slot of the object with this uid. Looks at all of them, which no controller needs to do.
    pub fn find_uid(&self, uid: Uid) -> Option<Slot> {
        self.iter().find(|(_, entry)| entry.uid == uid).map(|(slot, _)| slot)
    }

    /// All objects, in order of slots.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Entry<R>)> {
        self.entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.is_present())
            .filter_map(|(index, entry)| Some((Slot::from_index(index)?, entry)))
    }

    /// Slots that are taken, also by objects that are gone but still someone's key.
    pub fn taken(&self) -> usize {
        usize::from(self.taken)
    }

    /// Objects the table can hold.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Entry<R>> {
        self.entries.get_mut(slot.index()).filter(|entry| entry.is_present())
    }

    /// Where an object stands in a list, if it is there and such a list is.
    pub(super) fn place_mut(&mut self, slot: Link, list: List) -> Option<&mut Place> {
        self.get_mut(slot?)?.place_mut(list)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<R>> {
        self.entries.iter_mut().filter(|entry| entry.is_present())
    }

    pub(crate) fn find_name(&self, texts: &Interner, namespace: Text, name: Name) -> Link {
        let mut at = self.entries.get(self.name_bucket(texts, namespace, name))?.name_bucket;
        loop {
            let slot = at?;
            let entry = self.entries.get(slot.index())?;
            if entry.namespace == namespace && entry.name == name {
                return Some(slot);
            }
            at = entry.name_next;
        }
    }

    /// Puts a new object into a free slot, in no group yet. The table takes over the handles of
    /// the identity and the record; without a free slot they stay with the caller.
    pub(super) fn insert(&mut self, texts: &Interner, id: Identity, record: R) -> Link {
        let slot = self.allocate()?;
        let entry = self.entries.get_mut(slot.index())?;
        entry.record = record;
        entry.uid = id.uid;
        entry.version = Packed64::new(id.version.number());
        entry.name = id.name;
        entry.namespace = id.namespace;
        entry.flags = flag::USED | flag::SEEN;
        entry.owned = Place::NONE;
        entry.in_namespace = R::InNamespace::NOWHERE;
        self.index_name(texts, slot);
        Some(slot)
    }

    /// Gives the object in a slot its new state; returns the old record.
    pub(super) fn replace(
        &mut self,
        slot: Slot,
        uid: Uid,
        version: ResourceVersion,
        record: R,
    ) -> Option<R> {
        let entry = self.get_mut(slot)?;
        entry.uid = uid;
        entry.version = Packed64::new(version.number());
        entry.flags = (entry.flags | flag::SEEN) & !flag::STALE;
        Some(core::mem::replace(&mut entry.record, record))
    }

    /// Takes an object out of the index and gives its texts back. The slot stays taken until
    /// [`free`](Self::free).
    pub(super) fn retire(&mut self, texts: &mut Interner, slot: Slot) {
        if self.get(slot).is_none() {
            return;
        }
        self.unindex_name(texts, slot);
        let Some(entry) = self.entries.get_mut(slot.index()) else { return };
        entry.flags |= flag::RETIRED;
        let entry = *entry;
        entry.record.release(texts);
        entry.name.release(texts);
        texts.release(entry.namespace);
    }

    /// Frees the slot of a retired object.
    pub(super) fn free(&mut self, slot: Slot) -> bool {
        match self.entries.get_mut(slot.index()) {
            Some(entry) if entry.flags & flag::RETIRED != 0 => {
                entry.flags = 0;
                entry.name_next = self.free.replace(slot);
                self.taken -= 1;
                true
            }
            _ => false,
        }
    }

    fn allocate(&mut self) -> Link {
        let slot = match self.free {
            Some(slot) => {
                self.free = self.entries.get(slot.index())?.name_next;
                slot
            }
            None => {
                let index = usize::from(self.fresh);
                self.entries.get(index)?;
                self.fresh += 1;
                Slot::from_index(index)?
            }
        };
        self.taken += 1;
        Some(slot)
    }

    fn index_name(&mut self, texts: &Interner, slot: Slot) {
        let Some(entry) = self.entries.get(slot.index()) else { return };
        let bucket = self.name_bucket(texts, entry.namespace, entry.name);
        let Some(head) = self.entries.get_mut(bucket) else { return };
        let next = head.name_bucket.replace(slot);
        if let Some(entry) = self.entries.get_mut(slot.index()) {
            entry.name_next = next;
        }
    }

    fn unindex_name(&mut self, texts: &Interner, slot: Slot) {
        let Some(&Entry { namespace, name, name_next, .. }) = self.entries.get(slot.index()) else {
            return;
        };
        let bucket = self.name_bucket(texts, namespace, name);
        let Some(head) = self.entries.get_mut(bucket) else { return };
        if head.name_bucket == Some(slot) {
            head.name_bucket = name_next;
            return;
        }
        let mut at = head.name_bucket;
        while let Some(other) = at.and_then(|slot| self.entries.get_mut(slot.index())) {
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
        bucket(hash, self.entries.len())
    }
}
