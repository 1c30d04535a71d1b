//! What the cache keeps of a Deployment.

use crate::json::Digest;
use crate::text::{Interner, LabelSet, StoredSelector};
use crate::wire;
use crate::wire::Strategy;

use super::annotations::Annotations;
use super::change::RefusalReason;
use super::packed::{Annotation, Condition, Generation, Packed128, Seconds, Share};
use super::{Condense, Place, Record, Stored};

/// A cached Deployment: what its controller decides on.
#[derive(Clone, Copy, Debug)]
pub struct Deployment {
    template: Packed128,
    /// `deployment.kubernetes.io/revision`
    pub revision: Annotation,
    /// `deprecated.deployment.rollback.to`
    pub rollback_to: Annotation,
    generation: Generation,
    observed_generation: Generation,
    /// The `Available` condition.
    pub available: Condition,
    /// The `Progressing` condition.
    pub progressing: Condition,
    /// The `ReplicaFailure` condition.
    pub replica_failure: Condition,
    /// When the server created it.
    pub created: Seconds,
    /// `spec.replicas`
    pub replicas: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    /// `spec.progressDeadlineSeconds`; `None` is no deadline.
    pub progress_deadline_seconds: Option<i32>,
    /// `spec.revisionHistoryLimit`; `None` is no limit.
    pub revision_history_limit: Option<i32>,
    /// `spec.strategy.rollingUpdate.maxSurge`
    pub max_surge: Share,
    /// `spec.strategy.rollingUpdate.maxUnavailable`
    pub max_unavailable: Share,
    /// `status.replicas`
    pub status_replicas: i32,
    /// `status.updatedReplicas`
    pub updated_replicas: i32,
    /// `status.readyReplicas`
    pub ready_replicas: i32,
    /// `status.availableReplicas`
    pub available_replicas: i32,
    /// `status.unavailableReplicas`
    pub unavailable_replicas: i32,
    /// `status.terminatingReplicas`, if the server keeps it.
    pub terminating_replicas: Option<i32>,
    /// `status.collisionCount`; absent and 0 lead to different hashes.
    pub collision_count: Option<i32>,
    /// `spec.selector`
    pub selector: StoredSelector,
    /// The annotations to be copied to its ReplicaSets.
    pub annotations: Annotations,
    /// `spec.strategy.type`
    pub strategy: Strategy,
    /// `spec.paused`
    pub paused: bool,
    deleting: bool,
}

impl Deployment {
    fn of(d: &wire::Deployment, texts: &mut Interner) -> Result<Self, RefusalReason> {
        let selector = StoredSelector::intern(texts, &d.selector)?;
        let annotations = match Annotations::intern(texts, &d.annotations) {
            Ok(annotations) => annotations,
            Err(reason) => {
                selector.release(texts);
                return Err(reason.into());
            }
        };
        Ok(Self {
            template: Packed128::new(d.template.to_bits()),
            revision: Annotation::new(d.revision),
            rollback_to: Annotation::new(d.rollback_to),
            generation: Generation::new(d.meta.generation),
            observed_generation: Generation::new(d.status.observed_generation),
            available: Condition::new(d.status.available.as_ref()),
            progressing: Condition::new(d.status.progressing.as_ref()),
            replica_failure: Condition::new(d.status.replica_failure.as_ref()),
            created: Seconds::new(d.meta.creation),
            replicas: d.replicas,
            min_ready_seconds: d.min_ready_seconds,
            progress_deadline_seconds: d.progress_deadline_seconds,
            revision_history_limit: d.revision_history_limit,
            max_surge: Share::new(d.max_surge),
            max_unavailable: Share::new(d.max_unavailable),
            status_replicas: d.status.replicas,
            updated_replicas: d.status.updated_replicas,
            ready_replicas: d.status.ready_replicas,
            available_replicas: d.status.available_replicas,
            unavailable_replicas: d.status.unavailable_replicas,
            terminating_replicas: d.status.terminating_replicas,
            collision_count: d.status.collision_count,
            selector,
            annotations,
            strategy: d.strategy,
            paused: d.paused,
            deleting: d.meta.deletion.is_some(),
        })
    }

    /// The digest of the pod template.
    pub const fn template(&self) -> Digest {
        Digest::from_bits(self.template.get())
    }

    /// `metadata.generation`
    pub const fn generation(&self) -> i64 {
        self.generation.get()
    }

    /// `status.observedGeneration`
    pub const fn observed_generation(&self) -> i64 {
        self.observed_generation.get()
    }
}

impl Condense for wire::Deployment {
    type Record = Deployment;
    const HAS_TEMPLATE: bool = true;

    fn condense(&self, texts: &mut Interner) -> Result<Deployment, RefusalReason> {
        Deployment::of(self, texts)
    }

    fn recall_template(&mut self, record: &Deployment, _: &Interner) -> Option<Digest> {
        (record.generation() == self.meta.generation).then(|| record.template())
    }
}

impl Stored for Deployment {
    const EMPTY: Self = Self {
        template: Packed128::new(0),
        revision: Annotation::ABSENT,
        rollback_to: Annotation::ABSENT,
        generation: Generation::ZERO,
        observed_generation: Generation::ZERO,
        available: Condition::ABSENT,
        progressing: Condition::ABSENT,
        replica_failure: Condition::ABSENT,
        created: Seconds::NONE,
        replicas: 0,
        min_ready_seconds: 0,
        progress_deadline_seconds: None,
        revision_history_limit: None,
        max_surge: Share::ABSENT,
        max_unavailable: Share::ABSENT,
        status_replicas: 0,
        updated_replicas: 0,
        ready_replicas: 0,
        available_replicas: 0,
        unavailable_replicas: 0,
        terminating_replicas: None,
        collision_count: None,
        selector: StoredSelector::ABSENT,
        annotations: Annotations::EMPTY,
        strategy: Strategy::RollingUpdate,
        paused: false,
        deleting: false,
    };
    type InNamespace = Place;
}

impl Record for Deployment {
    /// Nobody selects Deployments by label here, so that the cache does not keep their labels.
    fn labels(&self) -> LabelSet {
        LabelSet::EMPTY
    }

    fn is_deleting(&self) -> bool {
        self.deleting
    }

    fn selector(&self) -> Option<&StoredSelector> {
        Some(&self.selector)
    }

    fn release(&self, texts: &mut Interner) {
        self.selector.release(texts);
        self.annotations.release(texts);
    }
}
