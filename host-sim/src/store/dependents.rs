//! Which objects name which owner: the graph that garbage collection walks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Entry, ResourceId};

/// Objects by the uid of their owners.
#[derive(Debug, Default)]
pub(super) struct Dependents {
    by_owner: BTreeMap<Box<str>, BTreeSet<(ResourceId, Arc<str>)>>,
}

impl Dependents {
    /// Objects that name `uid` as an owner.
    pub(super) fn of(&self, uid: &str) -> impl Iterator<Item = (ResourceId, &Arc<str>)> {
        self.by_owner.get(uid).into_iter().flatten().map(|(id, key)| (*id, key))
    }

    /// Moves an object from the owners it had to the owners it has.
    pub(super) fn update(
        &mut self,
        id: ResourceId,
        before: Option<&Arc<Entry>>,
        after: Option<&Arc<Entry>>,
    ) {
        let owners_before = before.map_or(&[][..], |entry| &entry.owners);
        let owners_after = after.map_or(&[][..], |entry| &entry.owners);
        if owners_before == owners_after {
            return;
        }
        for (entry, owner) in before.into_iter().flat_map(|e| e.owners.iter().map(move |o| (e, o)))
        {
            if let Some(objects) = self.by_owner.get_mut(&owner.uid) {
                objects.remove(&(id, entry.key.clone()));
                if objects.is_empty() {
                    self.by_owner.remove(&owner.uid);
                }
            }
        }
        for (entry, owner) in after.into_iter().flat_map(|e| e.owners.iter().map(move |o| (e, o))) {
            self.by_owner.entry(owner.uid.clone()).or_default().insert((id, entry.key.clone()));
        }
    }
}
