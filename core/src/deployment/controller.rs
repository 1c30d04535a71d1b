//! The Deployment controller: its memory, which changes concern it, and what its answers mean.

use core::fmt;

use crate::control::{
    Activity, Controller, ControllerInfo, Keys, KeysMemory, Purpose, Reply, Verdict, World, Write,
    set_condition, write_claim,
};
use crate::event::Message;
use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::request::Failure;
use crate::splice::Splice;
use crate::store::ConditionReason;
use crate::store::{Cache, Change, ChangeType, Owner};
use crate::text::{Name, push_cut};
use crate::time::Instant;
use crate::wire::{ConditionStatus, Strategy};

use super::body::RequestBodies;
use super::names::new_replica_set_name;
use super::plan::{ConditionWrite, NewSet, StatusWrite, Step};
use super::view::View;
use super::worker::{Outcome, Phase, Worker};

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
pub struct Workers<const N: usize> {
    workers: [Worker; N],
    view: View,
}

/// Views of the parts of [`Workers`].
#[derive(Debug)]
pub struct WorkerParts<'a> {
    workers: &'a mut [Worker],
    view: &'a mut View,
}

impl<const N: usize> Memory<N> {
    /// No Deployments: all bits zero.
    pub const NEW: Self = Self { keys: KeysMemory::NEW };

    /// The parts, whatever their capacity.
    pub fn parts(&mut self, info: &'static ControllerInfo) -> Parts<'_> {
        Parts { keys: self.keys.keys(info.key) }
    }
}

impl<const N: usize> Workers<N> {
    /// No syncs: all bits zero.
    pub const NEW: Self = Self { workers: [const { Worker::IDLE }; N], view: View::EMPTY };

    /// The parts, whatever their number.
    pub fn parts(&mut self) -> WorkerParts<'_> {
        WorkerParts { workers: &mut self.workers, view: &mut self.view }
    }
}

/// Begins with nothing done.
pub(crate) fn start<'a>(parts: Parts<'a>, workers: WorkerParts<'a>) -> DeploymentController<'a> {
    DeploymentController { keys: parts.keys, workers: workers.workers, view: workers.view }
}

/// The controller.
pub(crate) struct DeploymentController<'a> {
    keys: Keys<'a>,
    workers: &'a mut [Worker],
    /// What the sync that decides looks at.
    view: &'a mut View,
}

/// What one sync works with, for as long as one call takes.
pub(super) struct Sync<'s, 'w, 'a> {
    pub(super) keys: &'s mut Keys<'a>,
    pub(super) view: &'s mut View,
    pub(super) world: &'s mut World<'w, 'a>,
}

impl Sync<'_, '_, '_> {
    /// Tells something about a Deployment.
    pub(super) fn record(&mut self, key: Slot, message: Message) {
        self.world.record(&INFO, key, message);
    }
}

impl<'a> DeploymentController<'a> {
    /// A worker, and what its sync works with.
    fn split<'s, 'w>(
        &'s mut self,
        world: &'s mut World<'w, 'a>,
        worker: usize,
    ) -> Option<(&'s mut Worker, Sync<'s, 'w, 'a>)> {
        let Self { keys, workers, view } = self;
        Some((workers.get_mut(worker)?, Sync { keys, view, world }))
    }

    /// What the bodies of a write are made of.
    fn bodies<'s, 'c>(
        &'s self,
        cache: &'s Cache<'c>,
        write: &Write,
    ) -> Option<RequestBodies<'s, 'c>> {
        let worker = self.workers.get(usize::from(write.worker))?;
        Some(RequestBodies { cache, worker, key: worker.key? })
    }

    /// A Deployment that recreates its pods waits until the old ones are gone. To leave its
    /// ReplicaSet is as good; of one that is being deleted, no status tells.
    fn pod_changed(&mut self, cache: &Cache<'_>, change: &Change) {
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
            self.keys.add_owner(owner);
        }
    }

    fn replica_set_changed(&mut self, cache: &Cache<'_>, change: &Change) {
        let Change { slot, event, old_owner, new_owner, .. } = *change;
        match event {
            ChangeType::Deleted => return self.keys.add_owner(old_owner),
            // The echo of an own write whose answer was heard before.
            ChangeType::Updated if change.same_version => return,
            ChangeType::Updated | ChangeType::Added => {}
        }
        if change.owner_changed {
            self.keys.add_owner(old_owner);
        }
        self.keys.add_owner(new_owner);
        let is_news = event == ChangeType::Added || change.labels_changed || change.owner_changed;
        if new_owner == Owner::None && is_news && !change.deleting {
            self.keys.add_selecting(cache, Kind::ReplicaSet, slot);
        }
    }
}

impl<'a> Controller<'a> for DeploymentController<'a> {
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

    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change, _: Instant) {
        match kind {
            Kind::Pod => self.pod_changed(cache, change),
            Kind::ReplicaSet => self.replica_set_changed(cache, change),
            Kind::Deployment => self.keys.changed(cache, change),
            #[allow(unreachable_patterns, reason = "kinds may be left out of a build")]
            _ => {}
        }
    }

    /// What was decided before it had to wait for another request is decided anew: things may have
    /// changed, and where Kubernetes does not wait, it runs into a conflict.
    fn next(&mut self, world: &mut World<'_, 'a>, index: usize) -> Option<Write> {
        let (worker, mut sync) = self.split(world, index)?;
        loop {
            if worker.key.is_none() {
                let (key, uid) = sync.keys.begin(sync.world.cache)?;
                worker.begin(key, uid);
            }
            let Some(write) = worker.next(&mut sync) else {
                if worker.key.is_some() {
                    return None;
                }
                continue;
            };
            let has_room = (sync.world.has_room)(&write);
            let was_held_up = core::mem::replace(&mut worker.is_held_up, !has_room);
            if !has_room {
                return None;
            }
            if was_held_up && worker.is_about_to_change_replica_set() {
                worker.decide_anew();
                continue;
            }
            worker.open = true;
            return Some(Write { worker: index as u8, ..write });
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
        let bodies = self.bodies(cache, write).ok_or(fmt::Error)?;
        match write.purpose {
            Purpose::Adopt | Purpose::Release => {
                write_claim(cache, Kind::Deployment, bodies.key, bodies.worker.uid, write, out)
            }
            _ => bodies.write(write, out),
        }
    }

    fn splice(&self, cache: &Cache<'_>, write: &Write) -> Option<Splice> {
        self.bodies(cache, write)?.splice(write)
    }

    fn activity(&self, key: Slot) -> Activity {
        let at_work = |worker: &&Worker| worker.key == Some(key) && worker.phase != Phase::Waiting;
        match self.workers.iter().find(at_work) {
            Some(_) => Activity::Begun,
            None if self.keys.queue.is_wanted(key) => Activity::Queued,
            None => Activity::Idle,
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        self.workers.iter().filter_map(Worker::waits_until).min()
    }
}

impl Worker {
    fn answered(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        write: &Write,
        reply: &Reply<'_>,
    ) {
        self.open = false;
        if write.purpose != Purpose::Step {
            if !self.claiming.answered(self.uid, write, reply) {
                self.outcome = Outcome::Retry;
            }
            return;
        }
        let Some(&step) = self.step() else { return self.stop(Outcome::Retry) };
        match step {
            Step::Create { replicas, .. } => {
                return self.replica_set_created(sync, key, replicas, reply);
            }
            Step::Delete { .. } if reply.verdict == Verdict::NotFound => {}
            _ if !reply.is_done() => return self.step_failed(Outcome::Retry),
            Step::Scale { from, to, .. } if from != to => {
                sync.record(key, Message::Scaled { set: write.name, from, to });
            }
            Step::Rollback { revision, .. } => sync.record(key, Message::RolledBack(revision)),
            Step::Status => sync.keys.status_told(key),
            _ => {}
        }
        self.at += 1;
    }

    fn replica_set_created(
        &mut self,
        sync: &mut Sync<'_, '_, '_>,
        key: Slot,
        to: i32,
        reply: &Reply<'_>,
    ) {
        match reply.verdict {
            Verdict::Done => {
                self.at += 1;
                if let Some(meta) = reply.meta
                    && to > 0
                    && let Ok(set) = Name::whole(sync.world.cache.texts, &meta.name)
                {
                    sync.record(key, Message::Scaled { set, from: 0, to });
                    set.release(sync.world.cache.texts);
                }
            }
            Verdict::NamespaceTerminating => self.stop(Outcome::Forget),
            Verdict::AlreadyExists => self.replica_set_exists(sync.world.cache, key),
            // The watch will tell of what has become of it.
            Verdict::Failed(Failure::SourceChanged | Failure::Source(404)) => {
                self.stop(Outcome::Forget);
            }
            Verdict::Failed(_) => self.stop(Outcome::Retry),
            _ => self.replica_set_refused(sync, key, reply.message),
        }
    }

    /// The name of the new ReplicaSet is taken: by itself, after an answer that got lost, or by
    /// another one, whose name then is avoided.
    fn replica_set_exists(&mut self, cache: &Cache<'_>, key: Slot) {
        let Some(d) = cache.deployments.get(key) else { return self.stop(Outcome::Retry) };
        let name = new_replica_set_name(cache.texts, d);
        let found = Name::find_whole(cache.texts, &name)
            .and_then(|name| cache.find_name(Kind::ReplicaSet, d.namespace(), name))
            .and_then(|slot| Some((slot, cache.replica_sets.get(slot)?)));
        let Some((slot, set)) = found else { return self.stop(Outcome::Retry) };
        let is_ours = cache.owner_of(Kind::ReplicaSet, slot).of(Kind::Deployment) == Some(key);
        if is_ours && set.record.template() == d.record.template() {
            self.at += 1;
            self.plan.status.progressing = ConditionWrite::Keep;
            return;
        }
        let collisions = d.record.collision_count().unwrap_or(0).saturating_add(1);
        let collision_count = Some(collisions);
        self.end_with_status(StatusWrite { collision_count, ..StatusWrite::EMPTY });
    }

    fn replica_set_refused(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot, error: &str) {
        self.error.clear();
        push_cut(&mut self.error, error);
        let cache = &mut *sync.world.cache;
        let Some(d) = cache.deployments.get(key) else { return };
        let progressing = d.record.progressing;
        let name = new_replica_set_name(cache.texts, d);
        if let Ok(set) = Name::whole(cache.texts, &name) {
            let text = cache.texts.intern(error.as_bytes()).unwrap_or_default();
            sync.record(key, Message::SetCreateFailed { set, error: text });
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
            Some(condition) if self.has_deadline => self.end_with_status(StatusWrite {
                progressing: ConditionWrite::Set(condition),
                new_set: NewSet::Unborn,
                ..StatusWrite::EMPTY
            }),
            _ => self.stop(Outcome::Retry),
        }
    }
}
