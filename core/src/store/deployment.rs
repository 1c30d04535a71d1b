//! What the cache keeps of a Deployment.

use crate::json::Digest;
use crate::text::{Interner, LabelSet, StoredSelector};
use crate::wire;
use crate::wire::{IntAnnotation, IntOrPercent, Strategy};

use super::annotations::Annotations;
use super::change::RefusalReason;
use super::condition::Condition;
use super::packed::{
    Count24, Generation, Packed64, Packed128, int_or_percent, pack_annotation, share,
    unpack_annotation,
};
use super::{Condense, Place, Record, Stored};

/// A cached Deployment: what its controller decides on.
///
/// Flat and without padding; methods put together what belongs together.
#[derive(Clone, Copy, Debug)]
pub struct Deployment {
    template: Packed128,
    revision: Packed64,
    rollback_to: Packed64,
    generation: Generation,
    observed_generation: Generation,
    /// The `Available` condition.
    pub available: Condition,
    /// The `Progressing` condition.
    pub progressing: Condition,
    /// The `ReplicaFailure` condition.
    pub replica_failure: Condition,
    /// `spec.replicas`
    pub replicas: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    progress_deadline_seconds: i32,
    revision_history_limit: i32,
    max_surge: i32,
    max_unavailable: i32,
    /// `status.unavailableReplicas`
    pub unavailable_replicas: i32,
    collision_count: i32,
    /// `spec.selector`
    pub selector: StoredSelector,
    /// The annotations to be copied to its ReplicaSets.
    pub annotations: Annotations,
    /// Bits of [`flag`].
    flags: u16,
    /// `status.replicas`
    pub status_replicas: Count24,
    /// `status.updatedReplicas`
    pub updated_replicas: Count24,
    /// `status.readyReplicas`
    pub ready_replicas: Count24,
    /// `status.availableReplicas`
    pub available_replicas: Count24,
    terminating_replicas: Count24,
}

/// Bits of [`Deployment::flags`].
mod flag {
    pub(super) const DELETING: u16 = 1;
    pub(super) const PAUSED: u16 = 1 << 1;
    pub(super) const RECREATE: u16 = 1 << 2;
    pub(super) const HAS_DEADLINE: u16 = 1 << 3;
    pub(super) const HAS_HISTORY_LIMIT: u16 = 1 << 4;
    pub(super) const HAS_COLLISIONS: u16 = 1 << 5;
    pub(super) const HAS_TERMINATING: u16 = 1 << 6;
    pub(super) const HAS_SURGE: u16 = 1 << 7;
    pub(super) const SURGE_IN_PERCENT: u16 = 1 << 8;
    pub(super) const HAS_UNAVAILABLE: u16 = 1 << 9;
    pub(super) const UNAVAILABLE_IN_PERCENT: u16 = 1 << 10;
    /// Where two bits tell what the annotations are, see [`super::pack_annotation`].
    pub(super) const REVISION: u16 = 11;
    pub(super) const ROLLBACK_TO: u16 = 13;
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
        let (revision, revision_state) = pack_annotation(d.revision);
        let (rollback_to, rollback_state) = pack_annotation(d.rollback_to);
        let (max_surge, surge_flags) = share(d.max_surge, flag::HAS_SURGE, flag::SURGE_IN_PERCENT);
        let (max_unavailable, unavailable_flags) =
            share(d.max_unavailable, flag::HAS_UNAVAILABLE, flag::UNAVAILABLE_IN_PERCENT);
        let is_set = |bit: u16, set: bool| if set { bit } else { 0 };
        let flags = is_set(flag::DELETING, d.meta.deletion.is_some())
            | is_set(flag::PAUSED, d.paused)
            | is_set(flag::RECREATE, d.strategy == Strategy::Recreate)
            | is_set(flag::HAS_DEADLINE, d.progress_deadline_seconds.is_some())
            | is_set(flag::HAS_HISTORY_LIMIT, d.revision_history_limit.is_some())
            | is_set(flag::HAS_COLLISIONS, d.status.collision_count.is_some())
            | is_set(flag::HAS_TERMINATING, d.status.terminating_replicas.is_some())
            | u16::from(revision_state) << flag::REVISION
            | u16::from(rollback_state) << flag::ROLLBACK_TO
            | surge_flags
            | unavailable_flags;
        Ok(Self {
            template: Packed128::new(d.template.to_bits()),
            revision,
            rollback_to,
            generation: Generation::new(d.meta.generation),
            observed_generation: Generation::new(d.status.observed_generation),
            available: Condition::new(d.status.available.as_ref()),
            progressing: Condition::new(d.status.progressing.as_ref()),
            replica_failure: Condition::new(d.status.replica_failure.as_ref()),
            replicas: d.replicas,
            min_ready_seconds: d.min_ready_seconds,
            progress_deadline_seconds: d.progress_deadline_seconds.unwrap_or_default(),
            revision_history_limit: d.revision_history_limit.unwrap_or_default(),
            max_surge,
            max_unavailable,
            unavailable_replicas: d.status.unavailable_replicas,
            collision_count: d.status.collision_count.unwrap_or_default(),
            selector,
            annotations,
            flags,
            status_replicas: Count24::new(d.status.replicas),
            updated_replicas: Count24::new(d.status.updated_replicas),
            ready_replicas: Count24::new(d.status.ready_replicas),
            available_replicas: Count24::new(d.status.available_replicas),
            terminating_replicas: Count24::new(d.status.terminating_replicas.unwrap_or_default()),
        })
    }

    const fn has(&self, bit: u16) -> bool {
        self.flags & bit != 0
    }

    /// `deployment.kubernetes.io/revision`
    pub const fn revision(&self) -> IntAnnotation {
        unpack_annotation(self.revision, (self.flags >> flag::REVISION) as u8)
    }

    /// `deprecated.deployment.rollback.to`
    pub const fn rollback_to(&self) -> IntAnnotation {
        unpack_annotation(self.rollback_to, (self.flags >> flag::ROLLBACK_TO) as u8)
    }

    /// `spec.strategy.type`
    pub const fn strategy(&self) -> Strategy {
        if self.has(flag::RECREATE) { Strategy::Recreate } else { Strategy::RollingUpdate }
    }

    /// `spec.paused`
    pub const fn is_paused(&self) -> bool {
        self.has(flag::PAUSED)
    }

    /// `spec.progressDeadlineSeconds`; `None` is no deadline.
    pub fn progress_deadline_seconds(&self) -> Option<i32> {
        self.has(flag::HAS_DEADLINE).then_some(self.progress_deadline_seconds)
    }

    /// `spec.revisionHistoryLimit`; `None` is no limit.
    pub fn revision_history_limit(&self) -> Option<i32> {
        self.has(flag::HAS_HISTORY_LIMIT).then_some(self.revision_history_limit)
    }

    /// `spec.strategy.rollingUpdate.maxSurge`
    pub fn max_surge(&self) -> Option<IntOrPercent> {
        let number = self.has(flag::HAS_SURGE).then_some(self.max_surge)?;
        Some(int_or_percent(number, self.has(flag::SURGE_IN_PERCENT)))
    }

    /// `spec.strategy.rollingUpdate.maxUnavailable`
    pub fn max_unavailable(&self) -> Option<IntOrPercent> {
        let number = self.has(flag::HAS_UNAVAILABLE).then_some(self.max_unavailable)?;
        Some(int_or_percent(number, self.has(flag::UNAVAILABLE_IN_PERCENT)))
    }

    /// `status.terminatingReplicas`, if the server keeps it.
    pub fn terminating_replicas(&self) -> Option<i32> {
        self.has(flag::HAS_TERMINATING).then_some(self.terminating_replicas.get())
    }

    /// `status.collisionCount`; absent and 0 lead to different hashes.
    pub fn collision_count(&self) -> Option<i32> {
        self.has(flag::HAS_COLLISIONS).then_some(self.collision_count)
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
        revision: Packed64::new(0),
        rollback_to: Packed64::new(0),
        generation: Generation::ZERO,
        observed_generation: Generation::ZERO,
        available: Condition::ABSENT,
        progressing: Condition::ABSENT,
        replica_failure: Condition::ABSENT,
        replicas: 0,
        min_ready_seconds: 0,
        progress_deadline_seconds: 0,
        revision_history_limit: 0,
        max_surge: 0,
        max_unavailable: 0,
        unavailable_replicas: 0,
        collision_count: 0,
        selector: StoredSelector::ABSENT,
        annotations: Annotations::EMPTY,
        flags: 0,
        status_replicas: Count24::ZERO,
        updated_replicas: Count24::ZERO,
        ready_replicas: Count24::ZERO,
        available_replicas: Count24::ZERO,
        terminating_replicas: Count24::ZERO,
    };
    type InNamespace = Place;
}

impl Record for Deployment {
    /// Nobody selects Deployments by label here, so that the cache does not keep their labels.
    fn labels(&self) -> LabelSet {
        LabelSet::EMPTY
    }

    fn is_deleting(&self) -> bool {
        self.has(flag::DELETING)
    }

    fn note_gone(&mut self) {
        self.flags |= flag::DELETING;
    }

    fn selector(&self) -> Option<&StoredSelector> {
        Some(&self.selector)
    }

    fn release(&self, texts: &mut Interner) {
        self.selector.release(texts);
        self.annotations.release(texts);
    }
}
