//! The StatefulSet controller: its memory, and which changes concern it.

use core::fmt;

use crate::control::{Activity, Controller, ControllerInfo, Keys, KeysMemory, Reply, World, Write};
use crate::event::Message;
use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::splice::Splice;
use crate::store::{Cache, Change, ChangeType, Owner, StatefulSet};
use crate::time::{Duration, Instant};

use super::body::RequestBodies;
use super::identity::Parts as NameParts;
use super::worker::Worker;

/// What is fixed about the StatefulSet controller.
pub static INFO: ControllerInfo = ControllerInfo {
    name: "statefulset-controller",
    alias: "statefulset",
    component: "statefulset-controller",
    queue: "statefulset",
    key: Kind::StatefulSet,
    watches: &[Kind::Pod, Kind::StatefulSet, Kind::ControllerRevision, Kind::PersistentVolumeClaim],
};

/// Memory for `N` StatefulSets.
#[derive(Debug)]
pub struct Memory<const N: usize> {
    keys: KeysMemory<N>,
}

/// Views of the parts of [`Memory`].
#[derive(Debug)]
pub struct Parts<'a> {
    pub(crate) keys: Keys<'a>,
}

/// Memory for `N` syncs at a time.
#[derive(Debug)]
pub struct Workers<const N: usize>([Worker; N]);

/// Views of the parts of [`Workers`].
#[derive(Debug)]
pub struct WorkerParts<'a>(&'a mut [Worker]);

impl<const N: usize> Memory<N> {
    /// No StatefulSets: all bits zero.
    pub const NEW: Self = Self { keys: KeysMemory::NEW };

    /// The parts, whatever their capacity.
    pub fn parts(&mut self, info: &'static ControllerInfo) -> Parts<'_> {
        Parts { keys: self.keys.keys(info.key) }
    }
}

impl<const N: usize> Workers<N> {
    /// No syncs: all bits zero.
    pub const NEW: Self = Self([const { Worker::IDLE }; N]);

    /// The parts, whatever their number.
    pub fn parts(&mut self) -> WorkerParts<'_> {
        WorkerParts(&mut self.0)
    }
}

/// Begins with nothing done.
pub(crate) fn start<'a>(parts: Parts<'a>, workers: WorkerParts<'a>) -> StatefulSetController<'a> {
    StatefulSetController { keys: parts.keys, workers: workers.0 }
}

/// The controller.
pub(crate) struct StatefulSetController<'a> {
    keys: Keys<'a>,
    workers: &'a mut [Worker],
}

/// What one sync works with, for as long as one call takes.
pub(super) struct Sync<'s, 'w, 'a> {
    pub(super) keys: &'s mut Keys<'a>,
    pub(super) world: &'s mut World<'w, 'a>,
}

impl Sync<'_, '_, '_> {
    /// Tells something about a StatefulSet.
    pub(super) fn record(&mut self, key: Slot, message: Message) {
        self.world.record(&INFO, key, message);
    }
}

impl<'a> StatefulSetController<'a> {
    /// A worker, and what its sync works with.
    fn split<'s, 'w>(
        &'s mut self,
        world: &'s mut World<'w, 'a>,
        worker: usize,
    ) -> Option<(&'s mut Worker, Sync<'s, 'w, 'a>)> {
        let Self { keys, workers } = self;
        Some((workers.get_mut(worker)?, Sync { keys, world }))
    }

    /// What the bodies of a write are made of.
    fn bodies<'s, 'c>(
        &'s self,
        cache: &'s Cache<'c>,
        write: &Write,
    ) -> Option<RequestBodies<'s, 'c>> {
        RequestBodies::of(cache, self.workers.get(usize::from(write.worker))?)
    }

    fn pod_changed(&mut self, cache: &Cache<'_>, change: &Change, now: Instant) {
        let Change { slot, event, old_owner, new_owner, .. } = *change;
        let keys = &mut self.keys;
        match event {
            // The echo of an own write whose answer was heard before.
            ChangeType::Updated if change.same_version => {}
            // It may have had the name of one that is wanted.
            ChangeType::Deleted => match old_owner {
                Owner::Resolved(..) => keys.add_owner(old_owner),
                Owner::None | Owner::Unresolved => self.add_all(cache, |_| true),
            },
            ChangeType::Added if change.deleting => keys.add_owner(new_owner),
            ChangeType::Added | ChangeType::Updated => {
                if change.owner_changed {
                    keys.add_owner(old_owner);
                }
                keys.add_owner(new_owner);
                let is_news =
                    event == ChangeType::Added || change.labels_changed || change.owner_changed;
                if new_owner == Owner::None && is_news {
                    keys.add_selecting(cache, Kind::Pod, slot);
                }
                if let Some(owner) = new_owner.of(Kind::StatefulSet)
                    && change.became_ready
                {
                    self.look_when_available(cache, owner, now);
                }
            }
        }
    }

    /// All sets of this sort have to look: what has gone cannot be told from others any more.
    fn add_all(&mut self, cache: &Cache<'_>, is_concerned: fn(&StatefulSet) -> bool) {
        let sets = cache.stateful_sets.iter().filter(|(_, set)| is_concerned(set.record));
        sets.for_each(|(slot, _)| self.keys.queue.add(slot));
    }

    /// The set whose claim this is, by its name, has to look at it.
    fn add_user(&mut self, cache: &Cache<'_>, claim: Slot) {
        let Some(head) = cache.head(Kind::PersistentVolumeClaim, claim) else { return };
        let name = head.name().to_object_name(cache.texts);
        let Some(stem) = NameParts::of(&name).map(|parts| parts.set) else { return };
        let sets = cache.stateful_sets.iter().filter(|(_, set)| {
            let name = set.name().to_object_name(cache.texts);
            let template = stem.strip_suffix(name.as_str()).and_then(|it| it.strip_suffix('-'));
            set.namespace() == head.namespace() && template.is_some_and(|it| !it.is_empty())
        });
        sets.for_each(|(slot, _)| self.keys.queue.add(slot));
    }

    fn look_when_available(&mut self, cache: &Cache<'_>, owner: Slot, now: Instant) {
        let seconds = cache.stateful_sets.get(owner).map_or(0, |set| set.record.min_ready_seconds);
        if seconds > 0 && !planted(Bug::SetAvailabilityForgotten) {
            let wait = Duration::from_secs(u64::from(seconds.unsigned_abs()));
            self.keys.queue.add_after(owner, wait, now);
        }
    }
}

impl<'a> Controller<'a> for StatefulSetController<'a> {
    fn info(&self) -> &'static ControllerInfo {
        &INFO
    }

    fn keys(&self) -> &Keys<'a> {
        &self.keys
    }

    fn keys_mut(&mut self) -> &mut Keys<'a> {
        &mut self.keys
    }

    fn workers(&self) -> usize {
        self.workers.len()
    }

    fn is_working(&self) -> bool {
        self.workers.iter().any(|worker| worker.key.is_some())
    }

    /// In Kubernetes, claims and revisions are only looked at, whatever happens to them. Here, a claim may
    /// have been waited for or counted on, and a revision that is told of late is a set's too.
    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change, now: Instant) {
        match kind {
            Kind::Pod => self.pod_changed(cache, change, now),
            Kind::StatefulSet => self.keys.changed(cache, change),
            Kind::ControllerRevision if change.event == ChangeType::Deleted => {}
            Kind::ControllerRevision if !change.same_version => {
                self.keys.add_owner(change.new_owner);
            }
            Kind::PersistentVolumeClaim if change.event == ChangeType::Deleted => {
                self.add_all(cache, |set| !set.claim_templates.is_empty());
            }
            Kind::PersistentVolumeClaim if !change.same_version => {
                self.add_user(cache, change.slot)
            }
            _ => {}
        }
    }

    fn next(&mut self, world: &mut World<'_, 'a>, index: usize) -> Option<Write> {
        let (worker, mut sync) = self.split(world, index)?;
        loop {
            if worker.key.is_none() {
                let (key, uid) = sync.keys.begin(sync.world.cache)?;
                let set = sync.world.cache.stateful_sets.get(key);
                let collisions = set.and_then(|set| set.record.collision_count());
                worker.begin(key, uid, collisions);
            }
            match worker.next(&mut sync) {
                Some(write) if (sync.world.has_room)(&write) => {
                    worker.open = true;
                    return Some(Write { worker: index as u8, ..write });
                }
                Some(_) => return None,
                None if worker.key.is_some() => return None,
                None => {}
            }
        }
    }

    fn answered(&mut self, world: &mut World<'_, 'a>, write: &Write, reply: &Reply<'_>) {
        if let Some((worker, mut sync)) = self.split(world, usize::from(write.worker))
            && let Some(key) = worker.key
        {
            worker.answered(&mut sync, key, write, reply);
        }
    }

    fn write_body(
        &self,
        cache: &Cache<'_>,
        write: &Write,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        self.bodies(cache, write).ok_or(fmt::Error)?.write(write, out)
    }

    fn splice(&self, cache: &Cache<'_>, write: &Write) -> Option<Splice> {
        self.bodies(cache, write)?.splice(write)
    }

    fn activity(&self, key: Slot) -> Activity {
        match self.workers.iter().any(|worker| worker.key == Some(key)) {
            true => Activity::Begun,
            false if self.keys.queue.is_wanted(key) => Activity::Queued,
            false => Activity::Idle,
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        None
    }
}
