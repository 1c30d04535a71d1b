//! All tables together.

use crate::kind::{Kind, kinds};
use crate::link::{Link, Slot};
use crate::text::{Interner, Name, Text};
use crate::wire::Uid;

use super::cached::Cached;
use super::change::Owner;
use super::groups::{GroupKey, Groups, Role};
use super::index::{Head, Index};
use super::{Record, Table};

macro_rules! define {
    ($(
        $(#[$meta:meta])*
        $kind:ident $doc:literal $table:ident $capacity:ident ($record:ty, $object:ty) $info:tt
    )*) => {
        /// The cached cluster: tables that live elsewhere, see [`resources!`](crate::resources!).
        #[derive(Debug)]
        pub struct Cache<'a> {
            /// Names, label sets and selectors.
            pub texts: &'a mut Interner,
            /// Owners and namespaces.
            pub groups: &'a mut Groups,
            $($(#[$meta])* #[doc = $doc] pub $table: Table<'a, $record>,)*
        }

        impl<'a> Cache<'a> {
            pub(super) fn index(&self, kind: Kind) -> &Index<'a> {
                match kind {
                    $($(#[$meta])* Kind::$kind => &self.$table.index,)*
                }
            }

            /// The index of a kind, and what changes with it.
            pub(super) fn split(
                &mut self,
                kind: Kind,
            ) -> (&mut Index<'a>, &mut Groups, &mut Interner) {
                let index = match kind {
                    $($(#[$meta])* Kind::$kind => &mut self.$table.index,)*
                };
                (index, self.groups, self.texts)
            }

            /// What is kept of an object.
            pub fn record(&self, kind: Kind, slot: Slot) -> Option<&dyn Record> {
                match kind {
                    $($(#[$meta])* Kind::$kind => Some(self.$table.get(slot)?.record),)*
                }
            }

            /// The server has told that it knows nothing of an object: until more is told of it, it counts as
            /// one that is being deleted.
            pub(crate) fn note_gone(&mut self, kind: Kind, slot: Slot, uid: Uid) {
                if self.head(kind, slot).is_none_or(|head| head.uid() != uid) {
                    return;
                }
                match kind {
                    $($(#[$meta])* Kind::$kind => {
                        let record = self.$table.records.get_mut(slot.index());
                        record.into_iter().for_each(Record::note_gone);
                    })*
                }
            }

            /// Gives back what the record of an object holds of the interner.
            pub(super) fn release_record(&mut self, kind: Kind, slot: Slot) {
                let record: Option<&dyn Record> = match kind {
                    $($(#[$meta])* Kind::$kind => {
                        self.$table.get(slot).map(|entry| entry.record as _)
                    })*
                };
                if let Some(record) = record {
                    record.release(self.texts);
                }
            }
        }

        $($(#[$meta])*
        impl Cached for $object {
            const CACHED: Kind = Kind::$kind;

            fn table<'c, 'a>(cache: &'c Cache<'a>) -> &'c Table<'a, Self::Record> {
                &cache.$table
            }

            fn table_mut<'c, 'a>(cache: &'c mut Cache<'a>) -> &'c mut Table<'a, Self::Record> {
                &mut cache.$table
            }
        })*
    };
}
kinds!(define);

impl Cache<'_> {
    /// What is kept of an object, whatever its kind.
    pub fn head(&self, kind: Kind, slot: Slot) -> Option<&Head> {
        self.index(kind).get(slot)
    }

    /// The slot of the object with this namespace and name.
    pub fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<Slot> {
        self.index(kind).find(self.texts, namespace, name)
    }

    /// The slot of the object with this namespace and name, both interned.
    pub(crate) fn find_name(&self, kind: Kind, namespace: Text, name: Name) -> Link {
        self.index(kind).find_name(self.texts, namespace, name)
    }

    /// The objects of a kind, in order of slots.
    pub fn slots(&self, kind: Kind) -> impl Iterator<Item = Slot> {
        self.index(kind).slots()
    }

    /// Slots of a kind that are taken, also by objects that are gone but still someone's key.
    pub fn taken(&self, kind: Kind) -> usize {
        self.index(kind).taken()
    }

    /// Objects of a kind that there is room for.
    pub fn capacity(&self, kind: Kind) -> usize {
        self.index(kind).capacity()
    }

    /// The controller of an object.
    pub fn owner_of(&self, kind: Kind, slot: Slot) -> Owner {
        self.resolve(self.head(kind, slot).and_then(Head::owned_group))
    }

    /// Kubernetes' rule: the kind must be right, the owner is looked up by name, and its uid must
    /// be the reference's.
    pub(super) fn resolve(&self, group: Link) -> Owner {
        let Some(key) = group.and_then(|group| self.groups.get(group)).map(|group| group.key())
        else {
            return Owner::None;
        };
        if !key.role.is_owned() {
            return Owner::None;
        }
        let owners = key.members.info().owners.iter();
        let found = owners.copied().find(|kind| key.role == Role::owned_by((*kind).into()));
        let found = found.and_then(|kind| Some((kind, self.named(kind, &key)?)));
        found.map_or(Owner::Unresolved, |(kind, slot)| Owner::Resolved(kind, slot))
    }

    fn named(&self, kind: Kind, key: &GroupKey) -> Link {
        let index = self.index(kind);
        let slot = index.find_name(self.texts, key.namespace, Name::from_text(key.name))?;
        (index.get(slot)?.uid() == key.uid).then_some(slot)
    }

    /// The key of the group of objects of a kind that this one controls.
    pub(super) fn owned_key(&self, members: Kind, owner: Kind, slot: Slot) -> Option<GroupKey> {
        let head = self.head(owner, slot)?;
        Some(GroupKey {
            members,
            role: Role::owned_by(owner.into()),
            namespace: head.namespace(),
            name: head.name().as_text()?,
            uid: head.uid(),
        })
    }

    /// Something was freed: whatever was refused may fit now.
    pub(super) fn room_appeared(&mut self) {
        for kind in Kind::ALL {
            let shortage = &mut self.split(*kind).0.state.shortage;
            shortage.room = shortage.refused > 0;
        }
    }
}
