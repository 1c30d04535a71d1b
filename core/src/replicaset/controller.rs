//! The ReplicaSet controller: its memory, which changes concern it, and what its answers mean.
//!
//! It serves every kind that is kept like a ReplicaSet: a number of pods of one template.

use crate::control::{
    self, ControllerInfo, Keys, KeysMemory, Outcome, Reply, Runner, Verdict, WorkerMemory,
    WorkerSlots, Write,
};
use crate::event::Message;
use crate::expect::{Expectations, Expected};
use crate::kind::Kind;
use crate::planted::{Bug, planted};
use crate::request::Failure;
use crate::store::ConditionReason;
use crate::store::{Cache, Change, ChangeType, Entry, Owner, ReplicaSet, Table};
use crate::text::{Name, push_cut};
use crate::time::Instant;

use super::worker::Worker;

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
pub(crate) type Workers<const N: usize> = WorkerMemory<Worker, N>;

/// Views of the parts of [`Workers`].
pub(crate) type WorkerParts<'a> = WorkerSlots<'a, Worker>;

impl<const N: usize> Memory<N> {
    /// No ReplicaSets: all bits zero.
    pub const NEW: Self = Self { keys: KeysMemory::NEW, expectations: Expectations::new() };

    /// The parts, whatever their capacity.
    pub fn parts(&mut self, info: &'static ControllerInfo) -> Parts<'_> {
        Parts { keys: self.keys.parts(info), expectations: &mut self.expectations }
    }
}

/// The controller, of ReplicaSets or of something that is kept like one.
pub(crate) type ReplicaSetController<'a> = Runner<'a, Worker>;

/// Begins with nothing done.
pub(crate) fn start<'a>(parts: Parts<'a>, workers: WorkerParts<'a>) -> ReplicaSetController<'a> {
    static REPLICA_SETS: ReplicaSetLike =
        ReplicaSetLike { table: |cache| &cache.replica_sets, counts_terminating: true };
    REPLICA_SETS.start(parts, workers)
}

/// What tells kinds apart that are kept like a ReplicaSet.
pub(crate) struct ReplicaSetLike {
    /// Where the objects of the controller's keys are.
    pub(crate) table: for<'c, 'a> fn(&'c Cache<'a>) -> &'c Table<'a, ReplicaSet>,
    /// Whether there is `status.terminatingReplicas`.
    pub(crate) counts_terminating: bool,
}

impl ReplicaSetLike {
    /// The controller of such a kind, with nothing done.
    pub(crate) fn start<'a>(
        &'static self,
        Parts { keys, expectations }: Parts<'a>,
        workers: WorkerParts<'a>,
    ) -> ReplicaSetController<'a> {
        Runner::new(keys, workers, Shared { like: self, expectations })
    }
}

/// What all syncs share.
pub(crate) struct Shared<'a> {
    pub(super) like: &'static ReplicaSetLike,
    pub(super) expectations: &'a mut Expectations,
}

/// What one sync works with, for as long as one call takes.
pub(super) type Sync<'s, 'w, 'a> = control::Sync<'s, 'w, 'a, Shared<'a>>;

impl Sync<'_, '_, '_> {
    /// The ReplicaSet.
    pub(super) fn get(&self) -> Option<Entry<'_, ReplicaSet>> {
        (self.shared.like.table)(self.world.cache).get(self.key)
    }
}

impl Shared<'_> {
    /// A ReplicaSet has changed.
    pub(super) fn key_changed(&mut self, change: &Change) {
        if change.event == ChangeType::Deleted || change.uid_changed {
            self.expectations.forget(change.slot);
        }
    }

    /// A pod has changed: who has to look?
    pub(super) fn pod_changed(
        &mut self,
        keys: &mut Keys<'_>,
        cache: &Cache<'_>,
        change: &Change,
        now: Instant,
    ) {
        let Change { slot, event, old_owner, new_owner, .. } = *change;
        let expectations = &mut *self.expectations;
        if change.was_expected
            && let Some(owner) = old_owner.of(keys.kind())
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
                if let Some(owner) = new_owner.of(keys.kind()) {
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
                if let Some(owner) = new_owner.of(keys.kind())
                    && change.became_ready
                    && let Some(rs) = (self.like.table)(cache).get(owner)
                    && !planted(Bug::AvailabilityForgotten)
                {
                    keys.add_when_available(owner, rs.record.min_ready_seconds, now);
                }
            }
        }
    }
}

impl Worker {
    /// The answer to a creation.
    pub(super) fn pod_created(&mut self, sync: &mut Sync<'_, '_, '_>, reply: &Reply<'_>) {
        match (reply.verdict, reply.meta) {
            (Verdict::Done, meta) => {
                let name = meta.map(|pod| Name::split(sync.world.cache.texts, &pod.name));
                if let Some(Ok(name)) = name {
                    sync.record(Message::CreatedPod(name));
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
                    sync.record_error(reply.message, Message::CreateFailed);
                    self.failed = Some(ConditionReason::FailedCreate);
                }
                sync.run.fail(outcome, reply.message);
                sync.shared.expectations.creation_observed(sync.key);
                self.creations.end(false);
            }
        }
    }

    /// The answer to a deletion.
    pub(super) fn pod_deleted(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        if reply.is_done() {
            return sync.record(Message::DeletedPod(write.name));
        }
        let cache = &mut *sync.world.cache;
        let is_cached = cache.pods.get(write.slot).is_some_and(|pod| pod.uid() == write.uid);
        if is_cached && cache.take_expected_deletion(write.slot) {
            sync.shared.expectations.deletion_observed(sync.key);
        }
        // Gone, or another pod of that name has taken its place.
        if matches!(reply.verdict, Verdict::NotFound | Verdict::Conflict) {
            return;
        }
        sync.record_error(reply.message, Message::DeleteFailed);
        self.failed = Some(ConditionReason::FailedDelete);
        if sync.run.error.is_empty() {
            push_cut(&mut sync.run.error, "unable to delete pods: ");
            push_cut(&mut sync.run.error, reply.message);
        }
        sync.run.fail(Outcome::Retry, reply.message);
    }
}
