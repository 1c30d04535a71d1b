//! The small documents that requests carry.

use core::fmt::{self, Write};

use crate::control::{write_adoption, write_release};
use crate::deployment::{self, ConditionWrite, NewSet, StatusWrite};
use crate::event::write_text;
use crate::json::Escape;
use crate::link::Slot;
use crate::replicaset::{self, FailureWrite};
use crate::store::Cache;

use super::names::{append_history, new_set_name};
use super::workspace::{Job, Task};

/// Where the content of documents comes from.
pub(super) struct Author<'s, 'a> {
    pub(super) cache: &'s Cache<'a>,
    pub(super) replica_set_worker: Option<&'s replicaset::Worker>,
    pub(super) deployment_worker: Option<&'s deployment::Worker>,
}

impl Author<'_, '_> {
    /// Writes the document of a job.
    pub(super) fn write(&self, job: &Job, out: &mut dyn Write) -> fmt::Result {
        match job.task {
            Task::AdoptPod => {
                let worker = self.replica_set_worker.ok_or(fmt::Error)?;
                let rs = worker.key.and_then(|key| self.cache.replica_sets.get(key));
                let name = rs.ok_or(fmt::Error)?.display_name(self.cache.texts);
                write_adoption(out, job.uid, "ReplicaSet", name, worker.uid)
            }
            Task::ReleasePod => {
                let worker = self.replica_set_worker.ok_or(fmt::Error)?;
                write_release(out, job.uid, worker.uid)
            }
            Task::AdoptReplicaSet => {
                let worker = self.deployment_worker.ok_or(fmt::Error)?;
                let d = worker.key.and_then(|key| self.cache.deployments.get(key));
                let name = d.ok_or(fmt::Error)?.display_name(self.cache.texts);
                write_adoption(out, job.uid, "Deployment", name, worker.uid)
            }
            Task::ReleaseReplicaSet => {
                let worker = self.deployment_worker.ok_or(fmt::Error)?;
                write_release(out, job.uid, worker.uid)
            }
            Task::DeletePod | Task::DeleteReplicaSet => {
                write!(out, "{{\"preconditions\":{{\"uid\":\"{}\"}}}}", job.uid)
            }
            Task::ReplicaSetStatus => self.replica_set_status(job, out),
            Task::DeploymentStatus => self.deployment_status(job, out),
            Task::ScaleReplicaSet { to, .. } => self.scale(job, to, out),
            Task::UpdateReplicaSet { revision, .. } => self.update(job, revision, out),
            Task::ClearRollback => {
                self.preconditions(job, out)?;
                out.write_str(",\"annotations\":{\"deprecated.deployment.rollback.to\":null}}}")
            }
            Task::RecheckReplicaSet
            | Task::RecheckDeployment
            | Task::CreatePod
            | Task::CreateReplicaSet
            | Task::Rollback { .. } => Err(fmt::Error),
        }
    }

    /// The beginning of a patch that wants an object to be as it was read.
    fn preconditions(&self, job: &Job, out: &mut dyn Write) -> fmt::Result {
        let Job { uid, version, .. } = job;
        write!(out, "{{\"metadata\":{{\"uid\":\"{uid}\",\"resourceVersion\":\"{version}\"")
    }

    fn scale(&self, job: &Job, to: i32, out: &mut dyn Write) -> fmt::Result {
        let (desired, max) = self.deployment_worker.ok_or(fmt::Error)?.sizes;
        self.preconditions(job, out)?;
        write!(
            out,
            ",\"annotations\":{{\"deployment.kubernetes.io/desired-replicas\":\"{desired}\",\
             \"deployment.kubernetes.io/max-replicas\":\"{max}\"}}}},\"spec\":{{\"replicas\":{to}}}}}"
        )
    }

    fn update(&self, job: &Job, revision: Option<i64>, out: &mut dyn Write) -> fmt::Result {
        let worker = self.deployment_worker.ok_or(fmt::Error)?;
        let d = worker.key.and_then(|key| self.cache.deployments.get(key)).ok_or(fmt::Error)?;
        self.preconditions(job, out)?;
        if let Some(revision) = revision {
            write!(out, ",\"annotations\":{{\"deployment.kubernetes.io/revision\":\"{revision}\"")?;
            let set = job.slot.and_then(|slot| self.cache.replica_sets.get(slot));
            if let Some(history) = set.and_then(|set| append_history(self.cache.texts, &set.record))
            {
                write!(out, ",\"deployment.kubernetes.io/revision-history\":\"{history}\"")?;
            }
            out.write_str("}")?;
        }
        write!(out, "}},\"spec\":{{\"minReadySeconds\":{}}}}}", d.record.min_ready_seconds)
    }

    fn replica_set_status(&self, job: &Job, out: &mut dyn Write) -> fmt::Result {
        let worker = self.replica_set_worker.ok_or(fmt::Error)?;
        let count = &worker.count;
        let had_terminating = job
            .slot
            .and_then(|slot| self.cache.replica_sets.get(slot))
            .is_some_and(|rs| rs.record.terminating_replicas().is_some());
        write!(
            out,
            "{{\"metadata\":{{\"uid\":\"{}\"}},\"status\":{{\"replicas\":{},\
             \"fullyLabeledReplicas\":{},\"readyReplicas\":{},\"availableReplicas\":{},\
             \"observedGeneration\":{}",
            job.uid,
            count.replicas,
            count.fully_labeled,
            count.ready,
            count.available,
            count.observed_generation
        )?;
        terminating(out, count.terminating, had_terminating)?;
        match worker.failure {
            FailureWrite::Keep => {}
            FailureWrite::Remove => out.write_str(
                ",\"conditions\":[{\"$patch\":\"delete\",\"type\":\"ReplicaFailure\"}]",
            )?,
            FailureWrite::Add(reason) => {
                let now = job.at.rfc3339();
                write!(
                    out,
                    ",\"conditions\":[{{\"type\":\"ReplicaFailure\",\"status\":\"True\",\
                     \"reason\":\"{reason}\",\"lastTransitionTime\":\"{now}\",\"message\":\""
                )?;
                Escape(out).write_str(&worker.error)?;
                out.write_str("\"}]")?;
            }
        }
        out.write_str("}}")
    }

    fn deployment_status(&self, job: &Job, out: &mut dyn Write) -> fmt::Result {
        let worker = self.deployment_worker.ok_or(fmt::Error)?;
        let key = worker.key.ok_or(fmt::Error)?;
        let status = &worker.plan.status;
        self.preconditions(job, out)?;
        if let Some(revision) = status.revision {
            write!(
                out,
                ",\"annotations\":{{\"deployment.kubernetes.io/revision\":\"{revision}\"}}"
            )?;
        }
        out.write_str("},\"status\":{")?;
        let mut first = true;
        let mut comma = |out: &mut dyn Write| {
            if core::mem::take(&mut first) { Ok(()) } else { out.write_str(",") }
        };
        if let Some(counts) = status.counts.as_ref() {
            comma(out)?;
            write!(
                out,
                "\"observedGeneration\":{},\"replicas\":{},\"updatedReplicas\":{},\
                 \"readyReplicas\":{},\"availableReplicas\":{},\"unavailableReplicas\":{}",
                counts.observed_generation,
                counts.replicas,
                counts.updated,
                counts.ready,
                counts.available,
                counts.unavailable
            )?;
            let d = self.cache.deployments.get(key);
            let had = d.is_some_and(|d| d.record.terminating_replicas.is_some());
            terminating(out, counts.terminating, had)?;
        }
        if let Some(count) = status.collision_count {
            comma(out)?;
            write!(out, "\"collisionCount\":{count}")?;
        }
        let conditions = [
            ("Available", status.available),
            ("Progressing", status.progressing),
            ("ReplicaFailure", status.replica_failure),
        ];
        if conditions.iter().any(|(_, write)| *write != ConditionWrite::Keep) {
            comma(out)?;
            out.write_str("\"conditions\":[")?;
            let mut separator = "";
            for (kind, write) in conditions {
                if write != ConditionWrite::Keep {
                    out.write_str(separator)?;
                    separator = ",";
                    self.condition(out, key, kind, write, worker)?;
                }
            }
            out.write_str("]")?;
        }
        out.write_str("}}")
    }

    fn condition(
        &self,
        out: &mut dyn Write,
        key: Slot,
        kind: &str,
        write: ConditionWrite,
        worker: &deployment::Worker,
    ) -> fmt::Result {
        let ConditionWrite::Set(set) = write else {
            return write!(out, "{{\"$patch\":\"delete\",\"type\":\"{kind}\"}}");
        };
        let (update, transition) = (set.last_update.rfc3339(), set.last_transition.rfc3339());
        write!(
            out,
            "{{\"type\":\"{kind}\",\"status\":\"{}\",\"reason\":\"{}\",\"lastUpdateTime\":\
             \"{update}\",\"lastTransitionTime\":\"{transition}\",\"message\":\"",
            set.status.name(),
            set.reason
        )?;
        self.message(&mut Escape(out), key, set.reason, worker)?;
        out.write_str("\"}")
    }

    /// The sentence that goes with the reason of a condition.
    fn message(
        &self,
        out: &mut dyn Write,
        key: Slot,
        reason: &str,
        worker: &deployment::Worker,
    ) -> fmt::Result {
        use crate::deployment as d;
        let StatusWrite { new_set, failing, .. } = worker.plan.status;
        match reason {
            d::MINIMUM_REPLICAS_AVAILABLE => out.write_str("Deployment has minimum availability."),
            d::MINIMUM_REPLICAS_UNAVAILABLE => {
                out.write_str("Deployment does not have minimum availability.")
            }
            d::DEPLOYMENT_PAUSED => out.write_str("Deployment is paused"),
            d::DEPLOYMENT_RESUMED => out.write_str("Deployment is resumed"),
            d::NEW_REPLICA_SET_AVAILABLE => {
                self.about(out, key, new_set)?;
                out.write_str(" has successfully progressed.")
            }
            d::REPLICA_SET_UPDATED => {
                self.about(out, key, new_set)?;
                out.write_str(" is progressing.")
            }
            d::PROGRESS_DEADLINE_EXCEEDED => {
                self.about(out, key, new_set)?;
                out.write_str(" has timed out progressing.")
            }
            d::FOUND_NEW_REPLICA_SET => {
                out.write_str("Found new replica set ")?;
                self.quote_set(out, key, new_set)
            }
            d::NEW_REPLICA_SET_CREATED => {
                out.write_str("Created new replica set ")?;
                self.quote_set(out, key, new_set)
            }
            d::REPLICA_SET_CREATE_ERROR => {
                out.write_str("Failed to create new replica set ")?;
                self.quote_set(out, key, new_set)?;
                write!(out, ": {}", worker.error)
            }
            _ => match failing.and_then(|slot| self.cache.replica_sets.get(slot)) {
                Some(set) => write_text(out, self.cache.texts, set.record.failure_message),
                None => Ok(()),
            },
        }
    }

    fn about(&self, out: &mut dyn Write, key: Slot, set: NewSet) -> fmt::Result {
        match set {
            NewSet::None => {
                let d = self.cache.deployments.get(key).ok_or(fmt::Error)?;
                write!(out, "Deployment \"{}\"", d.display_name(self.cache.texts))
            }
            NewSet::Cached(_) | NewSet::Unborn => {
                out.write_str("ReplicaSet ")?;
                self.quote_set(out, key, set)
            }
        }
    }

    fn quote_set(&self, out: &mut dyn Write, key: Slot, set: NewSet) -> fmt::Result {
        let cached = match set {
            NewSet::Cached(slot) => self.cache.replica_sets.get(slot),
            NewSet::Unborn | NewSet::None => None,
        };
        match cached {
            Some(set) => write!(out, "\"{}\"", set.display_name(self.cache.texts)),
            None => {
                let d = self.cache.deployments.get(key).ok_or(fmt::Error)?;
                write!(out, "\"{}\"", new_set_name(self.cache.texts, d))
            }
        }
    }
}

/// `terminatingReplicas`, where it is kept or has to go.
fn terminating(out: &mut dyn Write, count: Option<i32>, stored: bool) -> fmt::Result {
    match count {
        Some(count) => write!(out, ",\"terminatingReplicas\":{count}"),
        None if stored => out.write_str(",\"terminatingReplicas\":null"),
        None => Ok(()),
    }
}
