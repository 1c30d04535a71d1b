//! Replacing a kind's objects by a complete list: mark, then sweep.
//!
//! Items are applied as they stream in, which marks them. Only when the list is complete, what is
//! not marked is removed: a list that breaks off leaves every cached object in place.

use super::cache::Kind;
use super::change::{Applied, Change, Owner};
use super::table::flag;
use super::{Cache, Entry, Record, Table};
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::text::Interner;
use crate::wire::{Meta, ResourceVersion};

/// Where a sweep has come to.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    kind: Kind,
    /// Objects of later versions are not in the list because they are newer than it.
    version: ResourceVersion,
    next: usize,
    next_group: usize,
    /// Everyone was blind and sees again; the owners from here on have not been told.
    next_owner: Option<usize>,
    finished: bool,
}

impl Cache<'_> {
    /// A list of this kind begins, from its first page.
    pub fn begin_relist(&mut self, kind: Kind) {
        match kind {
            Kind::Pod => unmark(self.pods),
            Kind::ReplicaSet => unmark(self.replica_sets),
            Kind::Deployment => unmark(self.deployments),
        }
        self.groups.begin_relist(kind);
        let shortage = self.state.of_mut(kind);
        shortage.refused_anew = 0;
        shortage.all_blind_anew = false;
        shortage.room = false;
    }

    /// Applies the object of an answer to an own write, which is not on a list that is being read:
    /// it may have gone again before the list was made.
    pub fn apply_answer(
        &mut self,
        kind: Kind,
        meta: &Meta,
        apply: impl FnOnce(&mut Self) -> Applied,
    ) -> Applied {
        let was_listed = match kind {
            Kind::Pod => is_listed(self.pods, self.texts, meta),
            Kind::ReplicaSet => is_listed(self.replica_sets, self.texts, meta),
            Kind::Deployment => is_listed(self.deployments, self.texts, meta),
        };
        let applied = apply(self);
        if let Applied::Changed(change) = applied
            && !was_listed
        {
            match kind {
                Kind::Pod => unlist(self.pods, change.slot),
                Kind::ReplicaSet => unlist(self.replica_sets, change.slot),
                Kind::Deployment => unlist(self.deployments, change.slot),
            }
        }
        applied
    }

    /// The server has gone back in time: every cached object of this kind is older than whatever
    /// comes.
    pub fn rewind(&mut self, kind: Kind) {
        match kind {
            Kind::Pod => forget_versions(self.pods),
            Kind::ReplicaSet => forget_versions(self.replica_sets),
            Kind::Deployment => forget_versions(self.deployments),
        }
    }

    /// The list is complete: [`sweep_next`](Self::sweep_next) removes what was not in it.
    pub fn sweep(&self, kind: Kind) -> Sweep {
        self.sweep_until(kind, ResourceVersion::new(u64::MAX))
    }

    /// As [`sweep`](Self::sweep), for a list of this version: what the answers to own writes have
    /// told of since is kept.
    pub fn sweep_until(&self, kind: Kind, version: ResourceVersion) -> Sweep {
        Sweep { kind, version, next: 0, next_group: 0, next_owner: None, finished: false }
    }

    /// Removes the next object that was not in the list: a synthetic delete, which carries the
    /// last known state.
    pub fn sweep_next(&mut self, sweep: &mut Sweep) -> Option<Change> {
        let found = match sweep.kind {
            _ if planted(Bug::GhostsStay) => None,
            Kind::Pod => unmarked(self.pods, sweep),
            Kind::ReplicaSet => unmarked(self.replica_sets, sweep),
            Kind::Deployment => unmarked(self.deployments, sweep),
        };
        match (found, sweep.kind) {
            (Some(slot), Kind::Pod) => self.remove_pod(slot),
            (Some(slot), Kind::ReplicaSet) => self.remove_replica_set(slot),
            (Some(slot), Kind::Deployment) => self.remove_deployment(slot),
            (None, kind) => {
                if !core::mem::replace(&mut sweep.finished, true) {
                    let shortage = self.state.of_mut(kind);
                    if shortage.all_blind && !shortage.all_blind_anew {
                        sweep.next_owner = Some(0);
                    }
                    shortage.refused = shortage.refused_anew;
                    shortage.all_blind = shortage.all_blind_anew;
                    shortage.room &= shortage.refused > 0;
                }
                None
            }
        }
    }

    /// After the sweep: the next owner that was blind and sees again, since all its objects fit.
    /// It has not been looked at for a while, so its key belongs into the queue.
    ///
    /// An owner that is not cached comes as [`Owner::Unresolved`]; orphans as [`Owner::None`].
    pub fn heal_next(&mut self, sweep: &mut Sweep) -> Option<Owner> {
        let Some(group) = self.groups.heal_next(sweep.kind, &mut sweep.next_group) else {
            return self.next_owner(sweep);
        };
        let owner = self.resolve(Some(group));
        self.groups.free_unused(self.texts, group);
        self.state.room_appeared();
        Some(owner)
    }

    /// The next of all owners, if all of them see again.
    fn next_owner(&self, sweep: &mut Sweep) -> Option<Owner> {
        let from = sweep.next_owner?;
        let owner = match sweep.kind {
            Kind::Pod => first_from(self.replica_sets, from),
            Kind::ReplicaSet => first_from(self.deployments, from),
            Kind::Deployment => None,
        };
        sweep.next_owner = owner.map(|owner| owner.index() + 1);
        owner.map(Owner::Resolved)
    }
}

/// The first slot from `from` on that is in use.
fn first_from<R: Record>(table: &Table<[Entry<R>]>, from: usize) -> Option<Slot> {
    let mut slots = (from..table.capacity()).filter_map(Slot::from_index);
    slots.find(|slot| table.get(*slot).is_some())
}

fn is_listed<R: Record>(table: &Table<[Entry<R>]>, texts: &Interner, meta: &Meta) -> bool {
    let slot = table.find(texts, &meta.namespace, &meta.name);
    slot.and_then(|slot| table.get(slot)).is_some_and(|entry| entry.flags & flag::SEEN != 0)
}

fn unlist<R: Record>(table: &mut Table<[Entry<R>]>, slot: Slot) {
    if let Some(entry) = table.get_mut(slot) {
        entry.flags &= !flag::SEEN;
    }
}

fn unmark<R: Record>(table: &mut Table<[Entry<R>]>) {
    table.iter_mut().for_each(|entry| entry.flags &= !flag::SEEN);
}

fn forget_versions<R: Record>(table: &mut Table<[Entry<R>]>) {
    table.iter_mut().for_each(Entry::forget_version);
}

fn unmarked<R: Record>(table: &Table<[Entry<R>]>, sweep: &mut Sweep) -> Option<Slot> {
    let gone = |entry: &Entry<R>| entry.flags & flag::SEEN == 0 && entry.version() <= sweep.version;
    while sweep.next < table.capacity() {
        let slot = Slot::from_index(sweep.next)?;
        sweep.next += 1;
        if table.get(slot).is_some_and(gone) {
            return Some(slot);
        }
    }
    None
}
