//! The ReplicaSet controller: its memory, which changes concern it, and what its answers mean.
//!
//! It serves every kind that is kept like a ReplicaSet: a number of pods of one template.

use core::fmt;

use crate::control::{
    Activity, Controller, ControllerInfo, Keys, KeysMemory, Purpose, Reply, Verdict, World, Write,
    write_claim,
};
use crate::event::Message;
use crate::expect::{Expectations, Expected};
use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::request::Failure;
use crate::splice::Splice;
use crate::store::ConditionReason;
use crate::store::{Cache, Change, ChangeType, Entry, Owner, ReplicaSet, Table};
use crate::text::{Name, Text, push_cut};
use crate::time::{Duration, Instant};

use super::body::{pod_of, write_status};
use super::worker::{Outcome, Phase, Worker};

/// What is fixed about the ReplicaSet controller.
pub static INFO: ControllerInfo = ControllerInfo {
    name: "replicaset-controller",
    alias: "replicaset",
    component: "replicaset-controller",
    queue: "replicaset",
    key: Kind::ReplicaSet,
    watches: &[Kind::Pod, Kind::ReplicaSet],
};

/// Memory for `N` ReplicaSets.
#[derive(Debug)]
pub struct Memory<const N: usize> {
    keys: KeysMemory<N>,
    expectations: Expectations<[Expected; N]>,
}

/// Views of the parts of [`Memory`].
#[derive(Debug)]
pub struct Parts<'a> {
    pub(crate) keys: Keys<'a>,
    pub(crate) expectations: &'a mut Expectations,
}

/// Memory for `N` syncs at a time.
#[derive(Debug)]
pub struct Workers<const N: usize>([Worker; N]);

/// Views of the parts of [`Workers`].
#[derive(Debug)]
pub struct WorkerParts<'a>(&'a mut [Worker]);

impl<const N: usize> Memory<N> {
    /// No ReplicaSets: all bits zero.
    pub const NEW: Self = Self { keys: KeysMemory::NEW, expectations: Expectations::new() };

    /// The parts, whatever their capacity.
    pub fn parts(&mut self, info: &'static ControllerInfo) -> Parts<'_> {
        Parts { keys: self.keys.keys(info.key), expectations: &mut self.expectations }
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
pub(crate) fn start<'a>(parts: Parts<'a>, workers: WorkerParts<'a>) -> ReplicaSetController<'a> {
    static REPLICA_SETS: ReplicaSetLike = ReplicaSetLike {
        info: &INFO,
        table: |cache| &cache.replica_sets,
        counts_terminating: true,
    };
    ReplicaSetController::new(&REPLICA_SETS, parts, workers)
}

/// What tells kinds apart that are kept like a ReplicaSet.
pub(crate) struct ReplicaSetLike {
    pub(crate) info: &'static ControllerInfo,
    /// Where the objects of the controller's keys are.
    pub(crate) table: for<'c, 'a> fn(&'c Cache<'a>) -> &'c Table<'a, ReplicaSet>,
    /// Whether there is `status.terminatingReplicas`.
    pub(crate) counts_terminating: bool,
}

/// The controller, of ReplicaSets or of something that is kept like one.
pub(crate) struct ReplicaSetController<'a> {
    like: &'static ReplicaSetLike,
    parts: Parts<'a>,
    workers: &'a mut [Worker],
}

/// What one sync works with, for as long as one call takes.
pub(super) struct Sync<'s, 'w, 'a> {
    pub(super) like: &'static ReplicaSetLike,
    pub(super) keys: &'s mut Keys<'a>,
    pub(super) expectations: &'s mut Expectations,
    pub(super) world: &'s mut World<'w, 'a>,
}

impl Sync<'_, '_, '_> {
    /// The kind of the controller's keys.
    pub(super) fn kind(&self) -> Kind {
        self.keys.kind
    }

    /// The ReplicaSet in a slot.
    pub(super) fn get(&self, key: Slot) -> Option<Entry<'_, ReplicaSet>> {
        (self.like.table)(self.world.cache).get(key)
    }

    /// Tells something about a ReplicaSet.
    pub(super) fn record(&mut self, key: Slot, message: Message) {
        self.world.record(self.like.info, key, message);
    }

    /// As [`record`](Self::record), with an error in it.
    fn record_error(&mut self, key: Slot, error: &str, message: fn(Text) -> Message) {
        let text = self.world.cache.texts.intern(error.as_bytes()).unwrap_or_default();
        self.record(key, message(text));
        self.world.cache.texts.release(text);
    }
}

impl<'a> ReplicaSetController<'a> {
    pub(crate) fn new(
        like: &'static ReplicaSetLike,
        parts: Parts<'a>,
        WorkerParts(workers): WorkerParts<'a>,
    ) -> Self {
        Self { like, parts, workers }
    }

    /// A worker, and what its sync works with.
    fn split<'s, 'w>(
        &'s mut self,
        world: &'s mut World<'w, 'a>,
        worker: usize,
    ) -> Option<(&'s mut Worker, Sync<'s, 'w, 'a>)> {
        let Self { like, parts: Parts { keys, expectations }, workers } = self;
        let sync = Sync { like, keys, expectations, world };
        Some((workers.get_mut(worker)?, sync))
    }

    fn pod_changed(&mut self, cache: &Cache<'_>, change: &Change, now: Instant) {
        let Change { slot, event, old_owner, new_owner, .. } = *change;
        let Parts { keys, expectations } = &mut self.parts;
        if change.was_expected
            && let Some(owner) = old_owner.of(keys.kind)
        {
            expectations.deletion_observed(owner);
        }
        match event {
            ChangeType::Updated if change.same_version => {}
            ChangeType::Deleted => keys.add_owner(old_owner),
            _ if change.deleting => {
                keys.add_owner(new_owner);
                if change.owner_changed || change.labels_changed {
                    keys.add_owner(old_owner);
                }
            }
            ChangeType::Added => {
                if let Some(owner) = new_owner.of(keys.kind) {
                    expectations.creation_observed(owner);
                }
                keys.add_owner(new_owner);
                if new_owner == Owner::None {
                    keys.add_selecting(cache, Kind::Pod, slot);
                }
            }
            ChangeType::Updated => {
                if change.owner_changed {
                    keys.add_owner(old_owner);
                }
                keys.add_owner(new_owner);
                if new_owner == Owner::None && (change.labels_changed || change.owner_changed) {
                    keys.add_selecting(cache, Kind::Pod, slot);
                }
                if let Some(owner) = new_owner.of(keys.kind)
                    && change.became_ready
                {
                    self.look_when_available(cache, owner, now);
                }
            }
        }
    }

    fn look_when_available(&mut self, cache: &Cache<'_>, owner: Slot, now: Instant) {
        let owner_entry = (self.like.table)(cache).get(owner);
        let seconds = owner_entry.map_or(0, |rs| rs.record.min_ready_seconds);
        if seconds > 0 && !planted(Bug::AvailabilityForgotten) {
            let wait = Duration::from_secs(u64::from(seconds.unsigned_abs()));
            self.parts.keys.queue.add_after(owner, wait, now);
        }
    }
}

impl<'a> Controller<'a> for ReplicaSetController<'a> {
    fn info(&self) -> &'static ControllerInfo {
        self.like.info
    }

    fn keys(&self) -> &Keys<'a> {
        &self.parts.keys
    }

    fn keys_mut(&mut self) -> &mut Keys<'a> {
        &mut self.parts.keys
    }

    fn workers(&self) -> usize {
        self.workers.len()
    }

    fn is_working(&self) -> bool {
        self.workers.iter().any(|worker| worker.key.is_some())
    }

    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change, now: Instant) {
        if kind == Kind::Pod {
            self.pod_changed(cache, change, now);
        } else if kind == self.like.info.key {
            if change.event == ChangeType::Deleted || change.uid_changed {
                self.parts.expectations.forget(change.slot);
            }
            self.parts.keys.changed(cache, change);
        }
    }

    fn next(&mut self, world: &mut World<'_, 'a>, index: usize) -> Option<Write> {
        let (worker, mut sync) = self.split(world, index)?;
        loop {
            if worker.key.is_none() {
                let (key, uid) = sync.keys.begin(sync.world.cache)?;
                worker.begin(key, uid);
            }
            match worker.next(&mut sync) {
                Some(write) if (sync.world.has_room)(&write) => {
                    worker.sent(&mut sync, &write);
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
        let worker = self.workers.get(usize::from(write.worker)).ok_or(fmt::Error)?;
        let key = worker.key.ok_or(fmt::Error)?;
        match write.purpose {
            Purpose::Adopt | Purpose::Release => {
                write_claim(cache, self.like.info.key, key, worker.uid, write, out)
            }
            Purpose::Delete => write.write_delete_options(out),
            Purpose::Status => write_status(worker, (self.like.table)(cache).get(key), write, out),
            Purpose::Recheck | Purpose::Create | Purpose::Step => Err(fmt::Error),
        }
    }

    fn splice(&self, cache: &Cache<'_>, write: &Write) -> Option<Splice> {
        let worker = self.workers.get(usize::from(write.worker))?;
        let rs = (self.like.table)(cache).get(worker.key?)?;
        pod_of(cache, self.like.info.key, rs, worker.creations.to_come())
    }

    fn activity(&self, key: Slot) -> Activity {
        match self.workers.iter().find(|worker| worker.key == Some(key)) {
            Some(worker) => worker.activity(),
            None if self.parts.keys.queue.is_wanted(key) => Activity::Queued,
            None => Activity::Idle,
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        self.workers.iter().filter_map(Worker::waits_until).min()
    }
}

impl Worker {
    /// A request is on its way.
    fn sent(&mut self, sync: &mut Sync<'_, '_, '_>, write: &Write) {
        self.open += 1;
        match write.purpose {
            Purpose::Create => {
                self.creations.begin();
            }
            Purpose::Delete => sync.world.cache.unmark_victim(write.slot),
            _ => {}
        }
    }

    fn answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        self.open = self.open.saturating_sub(1);
        match write.purpose {
            Purpose::Recheck | Purpose::Adopt | Purpose::Release => {
                if !self.claiming.answered(self.uid, write, reply) {
                    self.fail(Outcome::Retry, reply.message);
                }
            }
            Purpose::Create => self.pod_created(sync, key, reply),
            Purpose::Delete => self.pod_deleted(sync, key, write, reply),
            Purpose::Status | Purpose::Step if reply.is_done() => {
                sync.keys.status_told(key);
                self.phase = Phase::Ending;
            }
            // Whatever went wrong, once more; then the key is retried.
            Purpose::Status | Purpose::Step => {
                self.status_tries += 1;
                if self.status_tries > 1 {
                    self.fail(Outcome::Retry, reply.message);
                }
            }
        }
    }

    fn pod_created(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot, reply: &Reply<'_>) {
        match (reply.verdict, reply.meta) {
            (Verdict::Done, meta) => {
                let name = meta.map(|pod| Name::split(sync.world.cache.texts, &pod.name));
                if let Some(Ok(name)) = name {
                    sync.record(key, Message::CreatedPod(name));
                    name.release(sync.world.cache.texts);
                }
                self.creations.end(true);
            }
            // Nothing can be created there any more, and all that is there will go.
            (Verdict::NamespaceTerminating, _) => self.creations.end(true),
            (verdict, _) => {
                let outcome = match verdict {
                    Verdict::Failed(Failure::Ambiguous) => Outcome::RetryLater,
                    _ => Outcome::Retry,
                };
                // A source that has changed or gone is no failure: the next sync sees that.
                let outdated = [Failure::SourceChanged, Failure::Source(404)];
                if !outdated.map(Verdict::Failed).contains(&verdict) {
                    sync.record_error(key, reply.message, Message::CreateFailed);
                    self.failed = Some(ConditionReason::FailedCreate);
                }
                self.fail(outcome, reply.message);
                sync.expectations.creation_observed(key);
                self.creations.end(false);
            }
        }
    }

    fn pod_deleted(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        if reply.is_done() {
            return sync.record(key, Message::DeletedPod(write.name));
        }
        let cache = &mut *sync.world.cache;
        let is_cached = cache.pods.get(write.slot).is_some_and(|pod| pod.uid() == write.uid);
        if is_cached && cache.take_expected_deletion(write.slot) {
            sync.expectations.deletion_observed(key);
        }
        // Gone, or another pod of that name has taken its place.
        if matches!(reply.verdict, Verdict::NotFound | Verdict::Conflict) {
            return;
        }
        sync.record_error(key, reply.message, Message::DeleteFailed);
        self.failed = Some(ConditionReason::FailedDelete);
        if self.error.is_empty() {
            push_cut(&mut self.error, "unable to delete pods: ");
            push_cut(&mut self.error, reply.message);
        }
        self.fail(Outcome::Retry, reply.message);
    }
}
