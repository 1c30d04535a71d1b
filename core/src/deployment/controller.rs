//! The Deployment controller: its memory, which changes concern it, and what its answers mean.

use crate::control::{
    self, ControllerInfo, Keys, KeysMemory, Outcome, Reply, Runner, Verdict, WorkerMemory,
    WorkerSlots, Write, set_condition,
};
use crate::event::Message;
use crate::kind::Kind;
use crate::planted::{Bug, planted};
use crate::request::Failure;
use crate::store::ConditionReason;
use crate::store::{Cache, Change, ChangeType, Owner};
use crate::text::{Name, push_cut};
use crate::wire::{ConditionStatus, Strategy};

use super::names::new_replica_set_name;
use super::plan::{ConditionWrite, NewSet, StatusWrite, Step};
use super::view::View;
use super::worker::Worker;

/// What is fixed about the Deployment controller.
pub static INFO: ControllerInfo = ControllerInfo {
    name: "deployment-controller",
    alias: "deployment",
    component: "deployment-controller",
    queue: "deployment",
    key: Kind::Deployment,
    watches: &[Kind::Pod, Kind::ReplicaSet, Kind::Deployment],
};

/// Memory for `N` Deployments.
pub type Memory<const N: usize> = KeysMemory<N>;

/// Views of the parts of [`Memory`].
pub type Parts<'a> = Keys<'a>;

/// Memory for `N` syncs at a time, one of which decides.
#[derive(Debug)]
pub(crate) struct Workers<const N: usize> {
    workers: WorkerMemory<Worker, N>,
    view: View,
}

/// Views of the parts of [`Workers`].
#[derive(Debug)]
pub(crate) struct WorkerParts<'a> {
    workers: WorkerSlots<'a, Worker>,
    view: &'a mut View,
}

impl<const N: usize> Workers<N> {
    /// No syncs: all bits zero.
    pub(crate) const NEW: Self = Self { workers: WorkerMemory::NEW, view: View::EMPTY };

    /// The parts, whatever their number.
    pub(crate) fn parts(&mut self) -> WorkerParts<'_> {
        WorkerParts { workers: self.workers.parts(), view: &mut self.view }
    }
}

/// The controller.
pub(crate) type DeploymentController<'a> = Runner<'a, Worker>;

/// Begins with nothing done.
pub(crate) fn start<'a>(keys: Parts<'a>, workers: WorkerParts<'a>) -> DeploymentController<'a> {
    Runner::new(keys, workers.workers, workers.view)
}

/// What one sync works with, for as long as one call takes.
pub(super) type Sync<'s, 'w, 'a> = control::Sync<'s, 'w, 'a, &'a mut View>;

/// A Deployment that recreates its pods waits until the old ones are gone. To leave its
/// ReplicaSet is as good; of one that is being deleted, no status tells.
pub(super) fn pod_changed(keys: &mut Keys<'_>, cache: &Cache<'_>, change: &Change) {
    let is_replay = change.event == ChangeType::Updated && change.same_version;
    let has_left = change.deleting && change.owner_changed && !is_replay;
    if (change.event != ChangeType::Deleted && !has_left) || planted(Bug::WakeForgotten) {
        return;
    }
    let Some(rs) = change.old_owner.of(Kind::ReplicaSet) else { return };
    let owner = cache.owner_of(Kind::ReplicaSet, rs);
    let recreates = |d| {
        let d = cache.deployments.get(d);
        d.is_some_and(|d| d.record.strategy() == Strategy::Recreate)
    };
    if owner.of(Kind::Deployment).is_some_and(recreates) {
        keys.add_owner(owner);
    }
}

/// A ReplicaSet has changed: who has to look?
pub(super) fn replica_set_changed(keys: &mut Keys<'_>, cache: &Cache<'_>, change: &Change) {
    let Change { slot, event, old_owner, new_owner, .. } = *change;
    match event {
        ChangeType::Deleted => return keys.add_owner(old_owner),
        // The echo of an own write whose answer was heard before.
        ChangeType::Updated if change.same_version => return,
        ChangeType::Updated | ChangeType::Added => {}
    }
    if change.owner_changed {
        keys.add_owner(old_owner);
    }
    keys.add_owner(new_owner);
    let is_news = event == ChangeType::Added || change.labels_changed || change.owner_changed;
    if new_owner == Owner::None && is_news && !change.deleting {
        keys.add_selecting(cache, Kind::ReplicaSet, slot);
    }
}

impl Worker {
    /// What the answer to the step at hand means.
    pub(super) fn step_answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        let Some(&step) = self.step() else { return self.stop(sync.run, Outcome::Retry) };
        match step {
            Step::Create { replicas, .. } => {
                return self.replica_set_created(sync, replicas, reply);
            }
            Step::Delete { .. } if reply.verdict == Verdict::NotFound => {}
            _ if !reply.is_done() => return self.step_failed(sync.run, Outcome::Retry),
            Step::Scale { from, to, .. } if from != to => {
                sync.record(Message::Scaled { set: write.name, from, to });
            }
            Step::Rollback { revision, .. } => sync.record(Message::RolledBack(revision)),
            Step::Status => sync.keys.status_told(sync.key),
            _ => {}
        }
        self.at += 1;
    }

    fn replica_set_created(&mut self, sync: &mut Sync<'_, '_, '_>, to: i32, reply: &Reply<'_>) {
        match reply.verdict {
            Verdict::Done => {
                self.at += 1;
                if let Some(meta) = reply.meta
                    && to > 0
                    && let Ok(set) = Name::whole(sync.world.cache.texts, &meta.name)
                {
                    sync.record(Message::Scaled { set, from: 0, to });
                    set.release(sync.world.cache.texts);
                }
            }
            Verdict::NamespaceTerminating => self.stop(sync.run, Outcome::Forget),
            Verdict::AlreadyExists => self.replica_set_exists(sync),
            // The watch will tell of what has become of it.
            Verdict::Failed(Failure::SourceChanged | Failure::Source(404)) => {
                self.stop(sync.run, Outcome::Forget);
            }
            Verdict::Failed(_) => self.stop(sync.run, Outcome::Retry),
            _ => self.replica_set_refused(sync, reply.message),
        }
    }

    /// The name of the new ReplicaSet is taken: by itself, after an answer that got lost, or by
    /// another one, whose name then is avoided.
    fn replica_set_exists(&mut self, sync: &mut Sync<'_, '_, '_>) {
        let (cache, key) = (&*sync.world.cache, sync.key);
        let Some(d) = cache.deployments.get(key) else {
            return self.stop(sync.run, Outcome::Retry);
        };
        let name = new_replica_set_name(cache.texts, d);
        let found = Name::find_whole(cache.texts, &name)
            .and_then(|name| cache.find_name(Kind::ReplicaSet, d.namespace(), name))
            .and_then(|slot| Some((slot, cache.replica_sets.get(slot)?)));
        let Some((slot, set)) = found else { return self.stop(sync.run, Outcome::Retry) };
        let is_ours = cache.owner_of(Kind::ReplicaSet, slot).of(Kind::Deployment) == Some(key);
        if is_ours && set.record.template() == d.record.template() {
            self.at += 1;
            self.plan.status.progressing = ConditionWrite::Keep;
            return;
        }
        let collisions = d.record.collision_count().unwrap_or(0).saturating_add(1);
        let collision_count = Some(collisions);
        self.end_with_status(sync.run, StatusWrite { collision_count, ..StatusWrite::EMPTY });
    }

    fn replica_set_refused(&mut self, sync: &mut Sync<'_, '_, '_>, error: &str) {
        sync.run.error.clear();
        push_cut(&mut sync.run.error, error);
        let cache = &mut *sync.world.cache;
        let Some(d) = cache.deployments.get(sync.key) else { return };
        let progressing = d.record.progressing;
        let name = new_replica_set_name(cache.texts, d);
        if let Ok(set) = Name::whole(cache.texts, &name) {
            let text = cache.texts.intern(error.as_bytes()).unwrap_or_default();
            sync.record(Message::SetCreateFailed { set, error: text });
            sync.world.cache.texts.release(text);
            set.release(sync.world.cache.texts);
        }
        let condition = set_condition(
            &progressing,
            ConditionStatus::False,
            ConditionReason::ReplicaSetCreateError,
            sync.world.wall,
        );
        match condition {
            Some(condition) if self.has_deadline => self.end_with_status(
                sync.run,
                StatusWrite {
                    progressing: ConditionWrite::Set(condition),
                    new_set: NewSet::Unborn,
                    ..StatusWrite::EMPTY
                },
            ),
            _ => self.stop(sync.run, Outcome::Retry),
        }
    }
}
