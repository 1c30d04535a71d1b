//! What answers mean for the sync that waits for them.

use crate::control::MayAdopt;
use crate::deployment::{
    self, ConditionWrite, NewSet, REPLICA_SET_CREATE_ERROR, StatusWrite, Step,
};
use crate::event::Message;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::replicaset::{self, failure_reason, push_cut};
use crate::text::Name;
use crate::wire::{ConditionStatus, Meta, Reason, Status};

use super::context::Context;
use super::names::{namespace, new_set_name};
use super::request::Failure;
use super::workspace::{Job, Task};

/// An answer, or what came instead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply<'r> {
    pub(super) kind: ReplyKind,
    /// Why, for people.
    pub(super) message: &'r str,
    /// The object that came back.
    pub(super) meta: Option<&'r Meta>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyKind {
    /// It was done.
    Done,
    NotFound,
    Conflict,
    AlreadyExists,
    Invalid,
    NamespaceTerminating,
    /// Any other refusal.
    Refused,
    Failed(Failure),
}

impl ReplyKind {
    pub(super) fn of(code: u16, status: Option<&Status>) -> Self {
        let reason = status.map_or(Reason::Unknown, |status| status.reason);
        match code {
            200..=299 => Self::Done,
            409 if planted(Bug::ConflictSwallowed) => Self::Done,
            _ if status.is_some_and(|status| status.namespace_terminating) => {
                Self::NamespaceTerminating
            }
            404 => Self::NotFound,
            409 if reason == Reason::AlreadyExists => Self::AlreadyExists,
            409 => Self::Conflict,
            422 => Self::Invalid,
            _ => Self::Refused,
        }
    }
}

impl Context<'_, '_> {
    /// A ReplicaSet's worker got an answer.
    pub(super) fn replica_set_answered(
        &mut self,
        worker: &mut replicaset::Worker,
        job: &Job,
        reply: &Reply<'_>,
    ) {
        use replicaset::Outcome;
        let Some(key) = worker.key else { return };
        worker.open = worker.open.saturating_sub(1);
        let is_done = reply.kind == ReplyKind::Done;
        match job.task {
            Task::RecheckReplicaSet => match reply.meta {
                Some(meta) if is_done && meta.uid == worker.uid && meta.deletion.is_none() => {
                    worker.may_adopt = MayAdopt::Yes;
                }
                _ => {
                    worker.may_adopt = MayAdopt::No;
                    worker.fail(Outcome::Retry, reply.message);
                }
            },
            Task::AdoptPod | Task::ReleasePod => {
                worker.cursor = job.slot.map_or(0, |slot| slot.index() + 1);
                let is_release = job.task == Task::ReleasePod;
                let is_ignored = reply.kind == ReplyKind::NotFound
                    || (is_release && reply.kind == ReplyKind::Invalid);
                if !is_done && !is_ignored {
                    worker.fail(Outcome::Retry, reply.message);
                }
            }
            Task::CreatePod => self.pod_created(worker, key, reply),
            Task::DeletePod => self.pod_deleted(worker, key, job, reply),
            _ if is_done => {
                self.note_replica_set_status(key);
                worker.phase = replicaset::Phase::Ending;
            }
            // Whatever went wrong, once more; then the key is retried.
            _ => {
                worker.status_tries += 1;
                if worker.status_tries > 1 {
                    worker.fail(Outcome::Retry, reply.message);
                }
            }
        }
    }

    fn pod_created(&mut self, worker: &mut replicaset::Worker, key: Slot, reply: &Reply<'_>) {
        use replicaset::Outcome;
        match (reply.kind, reply.meta) {
            (ReplyKind::Done, meta) => {
                if let Some(meta) = meta {
                    self.record_pod(key, &meta.name, Message::CreatedPod);
                }
                worker.creations.end(true);
            }
            // Nothing can be created there any more, and all that is there will go.
            (ReplyKind::NamespaceTerminating, _) => worker.creations.end(true),
            (kind, _) => {
                let outcome = match kind {
                    ReplyKind::Failed(Failure::Ambiguous) => Outcome::RetryLater,
                    _ => Outcome::Retry,
                };
                // A source that has changed or gone is no failure: the next sync sees that.
                let outdated = [Failure::SourceChanged, Failure::Source(404)];
                if !outdated.map(ReplyKind::Failed).contains(&kind) {
                    self.record_error(key, reply.message, Message::CreateFailed);
                    worker.failed = Some(failure_reason(true));
                }
                worker.fail(outcome, reply.message);
                self.expectations.creation_observed(key);
                worker.creations.end(false);
            }
        }
    }

    fn pod_deleted(
        &mut self,
        worker: &mut replicaset::Worker,
        key: Slot,
        job: &Job,
        reply: &Reply<'_>,
    ) {
        if reply.kind == ReplyKind::Done {
            return self.record_replica_set(key, Message::DeletedPod(job.name));
        }
        let pods = &self.cache.pods;
        let found = pods.find_name(self.cache.texts, job.namespace, job.name);
        let cached = found.filter(|pod| pods.get(*pod).is_some_and(|pod| pod.uid() == job.uid));
        if cached.is_some_and(|pod| self.cache.take_expected_deletion(pod)) {
            self.expectations.deletion_observed(key);
        }
        // Gone, or another pod of that name has taken its place.
        if matches!(reply.kind, ReplyKind::NotFound | ReplyKind::Conflict) {
            return;
        }
        self.record_error(key, reply.message, Message::DeleteFailed);
        worker.failed = Some(failure_reason(false));
        if worker.error.is_empty() {
            push_cut(&mut worker.error, "unable to delete pods: ");
            push_cut(&mut worker.error, reply.message);
        }
        worker.fail(replicaset::Outcome::Retry, reply.message);
    }

    /// A Deployment's worker got an answer.
    pub(super) fn deployment_answered(
        &mut self,
        worker: &mut deployment::Worker,
        job: &Job,
        reply: &Reply<'_>,
    ) {
        use deployment::Outcome;
        let Some(key) = worker.key else { return };
        worker.open = false;
        let is_done = reply.kind == ReplyKind::Done;
        match job.task {
            Task::RecheckDeployment => match reply.meta {
                Some(meta) if is_done && meta.uid == worker.uid && meta.deletion.is_none() => {
                    worker.may_adopt = MayAdopt::Yes;
                }
                _ => {
                    worker.may_adopt = MayAdopt::No;
                    worker.outcome = Outcome::Retry;
                }
            },
            Task::AdoptReplicaSet | Task::ReleaseReplicaSet => {
                worker.cursor = job.slot.map_or(0, |slot| slot.index() + 1);
                let is_release = job.task == Task::ReleaseReplicaSet;
                let is_ignored = reply.kind == ReplyKind::NotFound
                    || (is_release && reply.kind == ReplyKind::Invalid);
                if !is_done && !is_ignored {
                    worker.outcome = Outcome::Retry;
                }
            }
            Task::CreateReplicaSet => self.set_created(worker, key, reply),
            Task::ScaleReplicaSet { from, to } if is_done => {
                if from != to {
                    self.record_deployment(key, Message::Scaled { set: job.name, from, to });
                }
                worker.at += 1;
            }
            Task::Rollback { revision } if is_done => {
                self.record_deployment(key, Message::RolledBack(revision));
                worker.at += 1;
            }
            Task::DeploymentStatus if is_done => {
                self.note_deployment_status(key);
                worker.at += 1;
            }
            Task::DeleteReplicaSet if reply.kind == ReplyKind::NotFound => worker.at += 1,
            _ if is_done => worker.at += 1,
            _ => worker.step_failed(Outcome::Retry),
        }
    }

    fn set_created(&mut self, worker: &mut deployment::Worker, key: Slot, reply: &Reply<'_>) {
        use deployment::Outcome;
        let Some(&Step::Create { replicas: to, .. }) = worker.plan.steps.get(worker.at) else {
            return worker.stop(Outcome::Retry);
        };
        match (reply.kind, reply.meta) {
            (ReplyKind::Done, meta) => {
                worker.at += 1;
                if let Some(meta) = meta
                    && to > 0
                    && let Ok(set) = Name::whole(self.cache.texts, &meta.name)
                {
                    self.record_deployment(key, Message::Scaled { set, from: 0, to });
                    set.release(self.cache.texts);
                }
            }
            (ReplyKind::NamespaceTerminating, _) => worker.stop(Outcome::Forget),
            (ReplyKind::AlreadyExists, _) => self.set_exists(worker, key),
            // The watch will tell of what has become of it.
            (ReplyKind::Failed(Failure::SourceChanged | Failure::Source(404)), _) => {
                worker.stop(Outcome::Forget);
            }
            (ReplyKind::Failed(_), _) => worker.stop(Outcome::Retry),
            _ => self.set_refused(worker, key, reply.message),
        }
    }

    /// The name of the new ReplicaSet is taken: by itself, after an answer that got lost, or by
    /// another one, whose name then is avoided.
    fn set_exists(&mut self, worker: &mut deployment::Worker, key: Slot) {
        use deployment::Outcome;
        let Some(d) = self.cache.deployments.get(key) else { return worker.stop(Outcome::Retry) };
        let name = new_set_name(self.cache.texts, d);
        let place = namespace(self.cache.texts, d.namespace());
        let found = self.cache.replica_sets.find(self.cache.texts, &place, &name);
        let Some((slot, set)) = found.and_then(|at| Some((at, self.cache.replica_sets.get(at)?)))
        else {
            return worker.stop(Outcome::Retry);
        };
        let is_ours = self.cache.owner_of_replica_set(slot).slot() == Some(key);
        if is_ours && set.record.template() == d.record.template() {
            worker.at += 1;
            worker.plan.status.progressing = ConditionWrite::Keep;
            return;
        }
        let collisions = d.record.collision_count.unwrap_or(0).saturating_add(1);
        let collision_count = Some(collisions);
        worker.end_with_status(StatusWrite { collision_count, ..StatusWrite::EMPTY });
    }

    fn set_refused(&mut self, worker: &mut deployment::Worker, key: Slot, error: &str) {
        worker.error.clear();
        push_cut(&mut worker.error, error);
        let Some(d) = self.cache.deployments.get(key) else { return };
        let progressing = d.record.progressing;
        let name = new_set_name(self.cache.texts, d);
        if let Ok(set) = Name::whole(self.cache.texts, &name) {
            let text = self.cache.texts.intern(error.as_bytes()).unwrap_or_default();
            self.record_deployment(key, Message::SetCreateFailed { set, error: text });
            self.cache.texts.release(text);
            set.release(self.cache.texts);
        }
        let condition = crate::control::set_condition(
            &progressing,
            ConditionStatus::False,
            REPLICA_SET_CREATE_ERROR,
            self.wall,
        );
        match condition {
            Some(condition) if worker.has_deadline => worker.end_with_status(StatusWrite {
                progressing: ConditionWrite::Set(condition),
                new_set: NewSet::Unborn,
                ..StatusWrite::EMPTY
            }),
            _ => worker.stop(deployment::Outcome::Retry),
        }
    }
}
