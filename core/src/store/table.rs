//! The cached objects of one kind: the index that every kind has, and records of its own.

use core::ops::Deref;

use crate::kind::Kind;
use crate::link::Slot;
use crate::text::{Interner, LabelSet, StoredSelector};
use crate::wire::Uid;

use super::index::{Head, Index, IndexState, Place};

/// What is kept of an object of one kind, as far as all kinds have something of the sort.
pub trait Record {
    /// The object's labels.
    fn labels(&self) -> LabelSet;

    /// Whether the object is being deleted.
    fn is_deleting(&self) -> bool;

    /// From now on it counts as being deleted, if its kind controls others.
    fn note_gone(&mut self) {}

    /// Whether the object is ready, if its kind knows that.
    fn is_ready(&self) -> bool {
        false
    }

    /// Whether a controller may claim the object.
    fn is_active(&self) -> bool {
        true
    }

    /// What the object selects, if it controls others.
    fn selector(&self) -> Option<&StoredSelector> {
        None
    }

    /// Gives back what the record holds of the interner.
    fn release(&self, texts: &mut Interner);
}

/// A [`Record`] that a [`Table`] can be filled with.
pub trait Stored: Record + Copy {
    /// A record with all bits zero.
    const EMPTY: Self;
    /// A [`Place`], or `()` where objects are in no list of their namespace.
    type InNamespace: InNamespace;
}

/// Memory for the place of an object in the list of its namespace.
pub trait InNamespace: Copy {
    /// In no list.
    const NOWHERE: Self;

    /// The places, or none.
    fn places(memory: &mut [Self]) -> &mut [Place];
}

impl InNamespace for Place {
    const NOWHERE: Self = Self::NONE;

    fn places(memory: &mut [Self]) -> &mut [Place] {
        memory
    }
}

impl InNamespace for () {
    const NOWHERE: Self = ();

    fn places(_: &mut [Self]) -> &mut [Place] {
        &mut []
    }
}

/// Memory for `N` objects of one kind.
#[derive(Debug)]
pub struct TableMemory<R: Stored, const N: usize> {
    state: IndexState,
    heads: [Head; N],
    in_namespace: [R::InNamespace; N],
    records: [R; N],
}

/// The objects of one kind.
#[derive(Debug)]
pub struct Table<'a, R> {
    pub(super) index: Index<'a>,
    pub(super) records: &'a mut [R],
}

/// An object in a [`Table`].
#[derive(Debug)]
pub struct Entry<'a, R> {
    head: &'a Head,
    /// What controllers decide on.
    pub record: &'a R,
}

impl<R> Clone for Entry<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Entry<'_, R> {}

impl<R> Deref for Entry<'_, R> {
    type Target = Head;

    fn deref(&self) -> &Head {
        self.head
    }
}

impl<R: Stored, const N: usize> TableMemory<R, N> {
    /// No objects: all bits zero.
    pub const NEW: Self = {
        assert!(N <= Slot::MOST);
        Self {
            state: IndexState::NEW,
            heads: [Head::EMPTY; N],
            in_namespace: [R::InNamespace::NOWHERE; N],
            records: [R::EMPTY; N],
        }
    };

    /// Bytes that an object takes.
    pub const PER_OBJECT: usize = size_of::<Head>() + size_of::<R::InNamespace>() + size_of::<R>();

    /// The table in this memory.
    pub(crate) fn table(&mut self, kind: Kind) -> Table<'_, R> {
        let in_namespace = InNamespace::places(&mut self.in_namespace);
        let index = Index::new(kind, &mut self.state, &mut self.heads, in_namespace);
        Table { index, records: &mut self.records }
    }
}

impl<R> Table<'_, R> {
    /// The object in a slot.
    pub fn get(&self, slot: Slot) -> Option<Entry<'_, R>> {
        let head = self.index.get(slot)?;
        Some(Entry { head, record: self.records.get(slot.index())? })
    }

    /// The slot of the object with this namespace and name.
    pub fn find(&self, texts: &Interner, namespace: &str, name: &str) -> Option<Slot> {
        self.index.find(texts, namespace, name)
    }

    /// The slot of the object with this uid. Looks at all of them, which no controller needs to do.
    pub fn find_uid(&self, uid: Uid) -> Option<Slot> {
        self.iter().find(|(_, entry)| entry.uid() == uid).map(|(slot, _)| slot)
    }

    /// All objects, in order of slots.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, Entry<'_, R>)> {
        self.index.slots().filter_map(|slot| Some((slot, self.get(slot)?)))
    }

    /// Slots that are taken, also by objects that are gone but still someone's key.
    pub fn taken(&self) -> usize {
        self.index.taken()
    }

    /// Objects the table can hold.
    pub fn capacity(&self) -> usize {
        self.index.capacity()
    }
}
