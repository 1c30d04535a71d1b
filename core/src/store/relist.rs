//! Replacing a kind's objects by a complete list: mark, then sweep.
//!
//! Items are applied as they stream in, which marks them. Only when the list is complete, what is
//! not marked is removed: a list that breaks off leaves every cached object in place.

use crate::kind::Kind;
use crate::link::Link;
use crate::planted::{Bug, planted};
use crate::wire::ResourceVersion;

use super::change::{Applied, Change, Owner};
use super::index::{Head, flag};
use super::{Cache, Cached};

/// Where a sweep has come to.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    kind: Kind,
    /// Objects of later versions are not in the list because they are newer than it.
    version: ResourceVersion,
    next: usize,
    next_group: usize,
    /// Everyone was blind and sees again; the owners from here on have not been told.
    next_owner: Option<(Kind, usize)>,
    finished: bool,
}

impl Cache<'_> {
    /// A list of this kind begins, from its first page.
    pub fn begin_relist(&mut self, kind: Kind) {
        let (index, groups, _) = self.split(kind);
        index.heads_mut().for_each(|head| head.flags &= !flag::SEEN);
        groups.begin_relist(kind);
        let shortage = &mut index.state.shortage;
        shortage.refused_anew = 0;
        shortage.all_blind_anew = false;
        shortage.room = false;
    }

    /// Applies the object of an answer to an own write, which is not on a list that is being read:
    /// it may have gone again before the list was made.
    pub fn apply_answer<K: Cached>(&mut self, object: &K) -> Applied {
        let (kind, meta) = (K::CACHED, object.meta());
        let old = self.find(kind, &meta.namespace, &meta.name);
        let is_listed = |head: &Head| head.flags & flag::SEEN != 0;
        let was_listed = old.and_then(|slot| self.head(kind, slot)).is_some_and(is_listed);
        let applied = self.apply(object);
        if let Applied::Changed(change) = applied
            && !was_listed
            && let Some(head) = self.split(kind).0.get_mut(change.slot)
        {
            head.flags &= !flag::SEEN;
        }
        applied
    }

    /// The server has gone back in time: every cached object of this kind is older than whatever
    /// comes.
    pub fn rewind(&mut self, kind: Kind) {
        self.split(kind).0.forget_versions();
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
        if let Some(slot) = self.next_unlisted(sweep) {
            return self.remove(sweep.kind, slot);
        }
        if !core::mem::replace(&mut sweep.finished, true) {
            let shortage = &mut self.split(sweep.kind).0.state.shortage;
            if shortage.all_blind && !shortage.all_blind_anew {
                sweep.next_owner = sweep.kind.info().owners.first().map(|owner| (*owner, 0));
            }
            shortage.refused = shortage.refused_anew;
            shortage.all_blind = shortage.all_blind_anew;
            shortage.room &= shortage.refused > 0;
        }
        None
    }

    fn next_unlisted(&self, sweep: &mut Sweep) -> Link {
        if planted(Bug::GhostsStay) {
            return None;
        }
        let index = self.index(sweep.kind);
        loop {
            let slot = index.first_from(sweep.next)?;
            sweep.next = slot.index() + 1;
            let head = index.get(slot)?;
            if head.flags & flag::SEEN == 0 && head.version() <= sweep.version {
                return Some(slot);
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
        self.room_appeared();
        Some(owner)
    }

    /// The next of all owners, if all of them see again.
    fn next_owner(&self, sweep: &mut Sweep) -> Option<Owner> {
        loop {
            let (kind, from) = sweep.next_owner?;
            if let Some(slot) = self.index(kind).first_from(from) {
                sweep.next_owner = Some((kind, slot.index() + 1));
                return Some(Owner::Resolved(kind, slot));
            }
            let mut rest = sweep.kind.info().owners.iter().skip_while(|owner| **owner != kind);
            sweep.next_owner = rest.nth(1).map(|owner| (*owner, 0));
        }
    }
}
