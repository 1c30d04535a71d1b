//! From what a worker wants to a request.

use core::fmt::Write;

use crate::deployment;
use crate::json::template_hash;
use crate::link::Slot;
use crate::replicaset;
use crate::store::{Cache, Entry, Kind, Record};
use crate::time::Timestamp;
use crate::wire::Uid;

use super::names::{append_history, display, new_set_name, object, write_collection};
use super::request::{Body, ContentType, Make, Method, Request, Splice, Target, Ticket};
use super::workspace::{Job, Task};

impl Task {
    /// The kind of object in the answer.
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::AdoptPod | Self::ReleasePod | Self::CreatePod | Self::DeletePod => Kind::Pod,
            Self::RecheckReplicaSet
            | Self::ReplicaSetStatus
            | Self::AdoptReplicaSet
            | Self::ReleaseReplicaSet
            | Self::CreateReplicaSet
            | Self::UpdateReplicaSet { .. }
            | Self::ScaleReplicaSet { .. }
            | Self::DeleteReplicaSet => Kind::ReplicaSet,
            Self::RecheckDeployment
            | Self::DeploymentStatus
            | Self::Rollback { .. }
            | Self::ClearRollback => Kind::Deployment,
        }
    }

    /// Whether the task is one of the ReplicaSet controller's.
    pub(super) const fn is_of_replica_set(self) -> bool {
        matches!(
            self,
            Self::RecheckReplicaSet
                | Self::AdoptPod
                | Self::ReleasePod
                | Self::CreatePod
                | Self::DeletePod
                | Self::ReplicaSetStatus
        )
    }
}

/// The job for what a ReplicaSet's worker wants.
pub(super) fn replica_set_job(
    cache: &Cache<'_>,
    worker: &replicaset::Worker,
    index: u8,
    want: replicaset::Want,
) -> Option<Job> {
    use replicaset::Want;
    let key = worker.key?;
    match want {
        Want::Recheck => set_job(cache, key, Task::RecheckReplicaSet, index),
        Want::Create => set_job(cache, key, Task::CreatePod, index),
        Want::Status => set_job(cache, key, Task::ReplicaSetStatus, index),
        Want::Adopt(pod) => Some(job(pod, cache.pods.get(pod)?, Task::AdoptPod, index)),
        Want::Release(pod) => Some(job(pod, cache.pods.get(pod)?, Task::ReleasePod, index)),
        Want::Delete(pod) => Some(job(pod, cache.pods.get(pod)?, Task::DeletePod, index)),
    }
}

/// The job for what a Deployment's worker wants.
pub(super) fn deployment_job(
    cache: &Cache<'_>,
    worker: &deployment::Worker,
    index: u8,
    want: deployment::Want,
) -> Option<Job> {
    use deployment::{Step, Want};
    let key = worker.key?;
    let own = |task| Some(job(key, cache.deployments.get(key)?, task, index));
    let set = |set, task| set_job(cache, set, task, index);
    match want {
        Want::Recheck => own(Task::RecheckDeployment),
        Want::Adopt(slot) => set(slot, Task::AdoptReplicaSet),
        Want::Release(slot) => set(slot, Task::ReleaseReplicaSet),
        Want::Step => match *worker.plan.steps.get(worker.at)? {
            Step::Create { .. } => own(Task::CreateReplicaSet).map(|job| Job { slot: None, ..job }),
            Step::Update { set: slot, revision, annotations } => {
                set(slot, Task::UpdateReplicaSet { revision, annotations })
            }
            Step::Scale { set: slot, from, to, .. } => {
                set(slot, Task::ScaleReplicaSet { from, to })
            }
            Step::Status => own(Task::DeploymentStatus),
            Step::Delete { set: slot } => set(slot, Task::DeleteReplicaSet),
            Step::Rollback { revision, .. } => own(Task::Rollback { revision }),
            Step::ClearRollback => own(Task::ClearRollback),
            Step::Warn(_) => None,
        },
    }
}

fn set_job(cache: &Cache<'_>, slot: Slot, task: Task, worker: u8) -> Option<Job> {
    Some(job(slot, cache.replica_sets.get(slot)?, task, worker))
}

fn job<R: Record>(slot: Slot, entry: &Entry<R>, task: Task, worker: u8) -> Job {
    Job {
        task,
        worker,
        slot: Some(slot),
        namespace: entry.namespace(),
        name: entry.name(),
        uid: entry.uid(),
        version: entry.version(),
        at: Timestamp::EPOCH,
    }
}

/// Composes the request of a job in its place. `None` if what it is about is gone.
pub(super) fn compose(
    cache: &Cache<'_>,
    ticket: Ticket,
    job: &Job,
    workers: Workers<'_>,
    place: &mut Option<Request>,
) -> Option<()> {
    use ContentType::{Json, JsonPatch, MergePatch, StrategicMergePatch};
    let (method, plural, content_type) = match job.task {
        Task::RecheckReplicaSet => (Method::Get, "replicasets", Json),
        Task::RecheckDeployment => (Method::Get, "deployments", Json),
        Task::AdoptPod | Task::ReleasePod => (Method::Patch, "pods", StrategicMergePatch),
        Task::AdoptReplicaSet | Task::ReleaseReplicaSet | Task::ReplicaSetStatus => {
            (Method::Patch, "replicasets", StrategicMergePatch)
        }
        Task::CreatePod => (Method::Post, "pods", Json),
        Task::CreateReplicaSet => (Method::Post, "replicasets", Json),
        Task::DeletePod => (Method::Delete, "pods", Json),
        Task::DeleteReplicaSet => (Method::Delete, "replicasets", Json),
        Task::DeploymentStatus => (Method::Patch, "deployments", StrategicMergePatch),
        Task::UpdateReplicaSet { .. } | Task::ScaleReplicaSet { .. } => {
            (Method::Patch, "replicasets", MergePatch)
        }
        Task::ClearRollback => (Method::Patch, "deployments", MergePatch),
        Task::Rollback { .. } => (Method::Patch, "deployments", JsonPatch),
    };
    let (target, body) = (Target::new(), Body::Empty);
    let request = place.insert(Request { ticket, method, target, content_type, body });
    let target = &mut request.target;
    write_collection(target, cache.texts, job.namespace, plural).ok()?;
    if method != Method::Post {
        write!(target, "/{}", job.name.display(cache.texts)).ok()?;
    }
    if matches!(job.task, Task::ReplicaSetStatus | Task::DeploymentStatus) {
        target.push_str("/status").ok()?;
    }
    request.body = match job.task {
        Task::RecheckReplicaSet | Task::RecheckDeployment => Body::Empty,
        Task::CreatePod
        | Task::CreateReplicaSet
        | Task::UpdateReplicaSet { annotations: true, .. }
        | Task::Rollback { .. } => Body::Splice(splice_of(cache, job, workers)?),
        _ => Body::Document,
    };
    Some(())
}

/// The worker that waits for a job.
#[derive(Clone, Copy)]
pub(super) struct Workers<'d> {
    pub(super) of_replica_set: Option<&'d replicaset::Worker>,
    pub(super) of_deployment: Option<&'d deployment::Worker>,
}

fn splice_of(cache: &Cache<'_>, job: &Job, workers: Workers<'_>) -> Option<Splice> {
    match job.task {
        Task::CreatePod => pod_of(cache, workers.of_replica_set?),
        Task::UpdateReplicaSet { revision, .. } => {
            annotations_of(cache, workers.of_deployment?, job, revision)
        }
        Task::Rollback { .. } => rollback_of(cache, workers.of_deployment?, job),
        _ => replica_set_of(cache, workers.of_deployment?),
    }
}

fn pod_of(cache: &Cache<'_>, worker: &replicaset::Worker) -> Option<Splice> {
    let rs = cache.replica_sets.get(worker.key?)?;
    Some(Splice {
        source: object(cache.texts, rs.namespace(), "replicasets", rs.name()).ok()?,
        uid: rs.uid(),
        template: rs.record.template(),
        make: Make::Pod {
            owner: display(rs.name(), cache.texts),
            more: worker.creations.to_come(),
        },
    })
}

fn replica_set_of(cache: &Cache<'_>, worker: &deployment::Worker) -> Option<Splice> {
    let d = cache.deployments.get(worker.key?)?;
    let deployment::Step::Create { replicas, revision } = *worker.plan.steps.get(worker.at)? else {
        return None;
    };
    Some(Splice {
        source: object(cache.texts, d.namespace(), "deployments", d.name()).ok()?,
        uid: d.uid(),
        template: d.record.template(),
        make: Make::ReplicaSet {
            name: new_set_name(cache.texts, d),
            owner: display(d.name(), cache.texts),
            hash: template_hash(d.record.template(), d.record.collision_count),
            replicas,
            min_ready_seconds: d.record.min_ready_seconds,
            revision,
            desired_replicas: worker.sizes.0,
            max_replicas: worker.sizes.1,
        },
    })
}

fn annotations_of(
    cache: &Cache<'_>,
    worker: &deployment::Worker,
    job: &Job,
    revision: Option<i64>,
) -> Option<Splice> {
    let d = cache.deployments.get(worker.key?)?;
    let set = cache.replica_sets.get(job.slot?)?;
    Some(Splice {
        source: object(cache.texts, d.namespace(), "deployments", d.name()).ok()?,
        uid: d.uid(),
        template: d.record.template(),
        make: Make::Annotations {
            target_uid: job.uid,
            target_version: job.version,
            revision,
            revision_history: revision.and_then(|_| append_history(cache.texts, &set.record)),
            min_ready_seconds: d.record.min_ready_seconds,
        },
    })
}

fn rollback_of(cache: &Cache<'_>, worker: &deployment::Worker, job: &Job) -> Option<Splice> {
    let deployment::Step::Rollback { set, .. } = *worker.plan.steps.get(worker.at)? else {
        return None;
    };
    let set = cache.replica_sets.get(set)?;
    Some(Splice {
        source: object(cache.texts, set.namespace(), "replicasets", set.name()).ok()?,
        uid: set.uid(),
        template: set.record.template(),
        make: Make::Rollback {
            target: object(cache.texts, job.namespace, "deployments", job.name).ok()?,
            target_uid: job.uid,
            target_version: job.version,
        },
    })
}

/// Whether a job is about this ReplicaSet and changes its version.
pub(super) fn writes_set(job: &Job, uid: Uid) -> bool {
    job.task.kind() == Kind::ReplicaSet
        && job.task != Task::RecheckReplicaSet
        && job.task != Task::CreateReplicaSet
        && job.uid == uid
}
