//! What the requests of a Deployment say.

use core::fmt;

use crate::control::{Look, Write, object_target, write_terminating};
use crate::event::write_text;
use crate::json::{Escape, template_hash};
use crate::kind::Kind;
use crate::link::Slot;
use crate::splice::{Make, Splice};
use crate::store::Cache;
use crate::store::ConditionReason;

use super::names::{append_history, new_replica_set_name};
use super::plan::{ConditionWrite, NewSet, StatusWrite, Step};
use super::view::View;
use super::worker::Worker;

/// What the bodies of a sync's requests are made of.
pub(super) struct RequestBodies<'s, 'a> {
    cache: &'s Cache<'a>,
    worker: &'s Worker,
    error: &'s str,
    key: Slot,
}

impl<'s, 'a> RequestBodies<'s, 'a> {
    /// Those of a sync.
    pub(super) fn of(look: &Look<'s, 'a, &mut View>, worker: &'s Worker) -> Self {
        Self { cache: look.cache, worker, error: &look.run.error, key: look.key }
    }

    /// Writes the document of the step at hand.
    pub(super) fn write(&self, write: &Write, out: &mut dyn fmt::Write) -> fmt::Result {
        match *self.worker.step().ok_or(fmt::Error)? {
            Step::Update { revision, .. } => self.update(write, revision, out),
            Step::Scale { to, .. } => self.scale(write, to, out),
            Step::Status => self.deployment_status(write, out),
            Step::ClearRollback => {
                write.write_preconditions(out)?;
                out.write_str(",\"annotations\":{\"deprecated.deployment.rollback.to\":null}}}")
            }
            Step::Create { .. } | Step::Delete { .. } | Step::Rollback { .. } | Step::Warn(_) => {
                Err(fmt::Error)
            }
        }
    }

    /// The splice of the step at hand.
    pub(super) fn splice(&self, write: &Write) -> Option<Splice> {
        match *self.worker.step()? {
            Step::Create { replicas, revision } => self.replica_set(replicas, revision),
            Step::Update { revision, .. } => self.annotations(write, revision),
            Step::Rollback { set, .. } => self.rollback(write, set),
            _ => None,
        }
    }

    fn replica_set(&self, replicas: i32, revision: i64) -> Option<Splice> {
        let d = self.cache.deployments.get(self.key)?;
        let (desired_replicas, max_replicas) = self.worker.sizes;
        self.of_deployment(Make::ReplicaSet {
            name: new_replica_set_name(self.cache.texts, d),
            owner: d.name().to_object_name(self.cache.texts),
            hash: template_hash(d.record.template(), d.record.collision_count()),
            replicas,
            min_ready_seconds: d.record.min_ready_seconds,
            revision,
            desired_replicas,
            max_replicas,
        })
    }

    fn annotations(&self, write: &Write, revision: Option<i64>) -> Option<Splice> {
        let d = self.cache.deployments.get(self.key)?;
        let set = self.cache.replica_sets.get(write.slot)?;
        self.of_deployment(Make::Annotations {
            target_uid: write.uid,
            target_version: write.version,
            revision,
            revision_history: revision.and_then(|_| append_history(self.cache.texts, set.record)),
            min_ready_seconds: d.record.min_ready_seconds,
        })
    }

    fn of_deployment(&self, make: Make) -> Option<Splice> {
        let d = self.cache.deployments.get(self.key)?;
        Some(Splice {
            source: object_target(self.cache.texts, Kind::Deployment, d.namespace(), d.name())?,
            kind: Kind::Deployment,
            uid: d.uid(),
            template: d.record.template(),
            make,
        })
    }

    fn rollback(&self, write: &Write, set: Slot) -> Option<Splice> {
        let texts = &*self.cache.texts;
        let set = self.cache.replica_sets.get(set)?;
        let target = object_target(texts, Kind::Deployment, write.namespace, write.name)?;
        Some(Splice {
            source: object_target(texts, Kind::ReplicaSet, set.namespace(), set.name())?,
            kind: Kind::ReplicaSet,
            uid: set.uid(),
            template: set.record.template(),
            make: Make::Rollback { target, target_uid: write.uid, target_version: write.version },
        })
    }

    fn scale(&self, write: &Write, to: i32, out: &mut dyn fmt::Write) -> fmt::Result {
        let (desired, max) = self.worker.sizes;
        write.write_preconditions(out)?;
        write!(
            out,
            ",\"annotations\":{{\"deployment.kubernetes.io/desired-replicas\":\"{desired}\",\
             \"deployment.kubernetes.io/max-replicas\":\"{max}\"}}}},\"spec\":{{\"replicas\":{to}}}}}"
        )
    }

    fn update(
        &self,
        write: &Write,
        revision: Option<i64>,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        let d = self.cache.deployments.get(self.key).ok_or(fmt::Error)?;
        write.write_preconditions(out)?;
        if let Some(revision) = revision {
            write!(out, ",\"annotations\":{{\"deployment.kubernetes.io/revision\":\"{revision}\"")?;
            let set = self.cache.replica_sets.get(write.slot);
            if let Some(history) = set.and_then(|set| append_history(self.cache.texts, set.record))
            {
                write!(out, ",\"deployment.kubernetes.io/revision-history\":\"{history}\"")?;
            }
            out.write_str("}")?;
        }
        write!(out, "}},\"spec\":{{\"minReadySeconds\":{}}}}}", d.record.min_ready_seconds)
    }

    fn deployment_status(&self, write: &Write, out: &mut dyn fmt::Write) -> fmt::Result {
        let status = &self.worker.plan.status;
        write.write_preconditions(out)?;
        if let Some(revision) = status.revision {
            write!(
                out,
                ",\"annotations\":{{\"deployment.kubernetes.io/revision\":\"{revision}\"}}"
            )?;
        }
        out.write_str("},\"status\":{")?;
        let mut first = true;
        let mut comma = |out: &mut dyn fmt::Write| {
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
            let d = self.cache.deployments.get(self.key);
            let had = d.is_some_and(|d| d.record.terminating_replicas().is_some());
            write_terminating(out, counts.terminating, had)?;
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
                    self.condition(out, kind, write)?;
                }
            }
            out.write_str("]")?;
        }
        out.write_str("}}")
    }

    fn condition(
        &self,
        out: &mut dyn fmt::Write,
        kind: &str,
        write: ConditionWrite,
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
            set.reason.text()
        )?;
        self.message(&mut Escape(out), set.reason)?;
        out.write_str("\"}")
    }

    /// The sentence that goes with the reason of a condition.
    fn message(&self, out: &mut dyn fmt::Write, reason: ConditionReason) -> fmt::Result {
        let StatusWrite { new_set, failing, .. } = self.worker.plan.status;
        match reason {
            ConditionReason::MinimumReplicasAvailable => {
                out.write_str("Deployment has minimum availability.")
            }
            ConditionReason::MinimumReplicasUnavailable => {
                out.write_str("Deployment does not have minimum availability.")
            }
            ConditionReason::DeploymentPaused => out.write_str("Deployment is paused"),
            ConditionReason::DeploymentResumed => out.write_str("Deployment is resumed"),
            ConditionReason::NewReplicaSetAvailable => {
                self.about(out, new_set)?;
                out.write_str(" has successfully progressed.")
            }
            ConditionReason::ReplicaSetUpdated => {
                self.about(out, new_set)?;
                out.write_str(" is progressing.")
            }
            ConditionReason::ProgressDeadlineExceeded => {
                self.about(out, new_set)?;
                out.write_str(" has timed out progressing.")
            }
            ConditionReason::FoundNewReplicaSet => {
                out.write_str("Found new replica set ")?;
                self.quote_set(out, new_set)
            }
            ConditionReason::NewReplicaSetCreated => {
                out.write_str("Created new replica set ")?;
                self.quote_set(out, new_set)
            }
            ConditionReason::ReplicaSetCreateError => {
                out.write_str("Failed to create new replica set ")?;
                self.quote_set(out, new_set)?;
                write!(out, ": {}", self.error)
            }
            ConditionReason::FailedCreate | ConditionReason::FailedDelete => {
                match failing.and_then(|slot| self.cache.replica_sets.get(slot)) {
                    Some(set) => write_text(out, self.cache.texts, set.record.failure_message),
                    None => Ok(()),
                }
            }
        }
    }

    fn about(&self, out: &mut dyn fmt::Write, set: NewSet) -> fmt::Result {
        match set {
            NewSet::None => {
                let d = self.cache.deployments.get(self.key).ok_or(fmt::Error)?;
                write!(out, "Deployment \"{}\"", d.display_name(self.cache.texts))
            }
            NewSet::Cached(_) | NewSet::Unborn => {
                out.write_str("ReplicaSet ")?;
                self.quote_set(out, set)
            }
        }
    }

    fn quote_set(&self, out: &mut dyn fmt::Write, set: NewSet) -> fmt::Result {
        let cached = match set {
            NewSet::Cached(slot) => self.cache.replica_sets.get(slot),
            NewSet::Unborn | NewSet::None => None,
        };
        match cached {
            Some(set) => write!(out, "\"{}\"", set.display_name(self.cache.texts)),
            None => {
                let d = self.cache.deployments.get(self.key).ok_or(fmt::Error)?;
                write!(out, "\"{}\"", new_replica_set_name(self.cache.texts, d))
            }
        }
    }
}
