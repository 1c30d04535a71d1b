//! What the cache keeps of a ReplicaSet.

use crate::json::Digest;
use crate::text::{Interner, LabelSet, StoredSelector, Text};
use crate::wire;
use crate::wire::IntAnnotation;

use super::annotations::Annotations;
use super::change::RefusalReason;
use super::condition::{Condition, ConditionReason, ConditionState};
use super::packed::{
    Count24, Generation, Packed64, Packed128, Seconds, pack_annotation, unpack_annotation,
};
use super::{Condense, Place, Record, Stored};

/// A cached ReplicaSet: what its own controller and the Deployment controller decide on.
///
/// Flat and without padding, because a cluster has many; methods put together what belongs
/// together.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaSet {
    template: Packed128,
    revision: Packed64,
    failure_transition: Seconds,
    generation: Generation,
    observed_generation: Generation,
    /// When the server created it.
    pub created: Seconds,
    /// `spec.replicas`
    pub replicas: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    desired_replicas: i32,
    max_replicas: i32,
    /// Its own labels.
    pub labels: LabelSet,
    /// The labels of its pod template.
    pub template_labels: LabelSet,
    /// `spec.selector`
    pub selector: StoredSelector,
    /// The annotations its Deployment may have copied to it.
    pub annotations: Annotations,
    /// The message of the `ReplicaFailure` condition, which its Deployment passes on; empty if
    /// there is no room for it.
    pub failure_message: Text,
    /// `deployment.kubernetes.io/revision-history`; see [`knows_history`](Self::knows_history).
    pub revision_history: Text,
    /// `status.replicas`
    pub status_replicas: Count24,
    /// `status.fullyLabeledReplicas`
    pub fully_labeled_replicas: Count24,
    /// `status.readyReplicas`
    pub ready_replicas: Count24,
    /// `status.availableReplicas`
    pub available_replicas: Count24,
    terminating_replicas: Count24,
    failure_reason: Option<ConditionReason>,
    failure_state: ConditionState,
    /// Bits of [`flag`].
    flags: u8,
}

mod flag {
    pub(super) const DELETING: u8 = 1;
    pub(super) const HAS_TERMINATING: u8 = 1 << 1;
    pub(super) const HAS_DESIRED: u8 = 1 << 2;
    pub(super) const HAS_MAX: u8 = 1 << 3;
    pub(super) const HISTORY_CUT: u8 = 1 << 4;
    /// Where two bits tell what the revision is, see [`super::pack_annotation`].
    pub(super) const REVISION: u8 = 5;
}

impl ReplicaSet {
    fn of(rs: &wire::ReplicaSet, texts: &mut Interner) -> Result<Self, RefusalReason> {
        let status = &rs.status;
        let (revision, revision_state) = pack_annotation(rs.revision);
        let failure = Condition::new(status.replica_failure.as_ref());
        let (desired, max) = (rs.desired_replicas.as_i32(), rs.max_replicas.as_i32());
        let mut record = Self {
            template: Packed128::new(rs.template.to_bits()),
            revision,
            failure_reason: failure.reason,
            failure_transition: failure.last_transition,
            failure_state: failure.state,
            generation: Generation::new(rs.meta.generation),
            observed_generation: Generation::new(status.observed_generation),
            created: Seconds::new(rs.meta.creation),
            replicas: rs.replicas,
            min_ready_seconds: rs.min_ready_seconds,
            status_replicas: Count24::new(status.replicas),
            fully_labeled_replicas: Count24::new(status.fully_labeled_replicas),
            ready_replicas: Count24::new(status.ready_replicas),
            available_replicas: Count24::new(status.available_replicas),
            terminating_replicas: Count24::new(status.terminating_replicas.unwrap_or_default()),
            desired_replicas: desired.unwrap_or_default(),
            max_replicas: max.unwrap_or_default(),
            flags: flags([
                (flag::DELETING, rs.meta.deletion.is_some()),
                (flag::HAS_TERMINATING, status.terminating_replicas.is_some()),
                (flag::HAS_DESIRED, desired.is_some()),
                (flag::HAS_MAX, max.is_some()),
            ]) | revision_state << flag::REVISION,
            ..Self::EMPTY
        };
        match record.intern_sets(texts, rs) {
            Ok(()) => Ok(record),
            Err(reason) => {
                record.release(texts);
                Err(reason)
            }
        }
    }

    fn intern_sets(
        &mut self,
        texts: &mut Interner,
        rs: &wire::ReplicaSet,
    ) -> Result<(), RefusalReason> {
        self.labels = LabelSet::intern(texts, rs.meta.labels.as_slice()?)?;
        self.template_labels = LabelSet::intern(texts, rs.template_labels.as_slice()?)?;
        self.selector = StoredSelector::intern_within(texts, &rs.selector, self.template_labels)?;
        self.annotations = Annotations::intern(texts, &rs.annotations)?;
        self.intern_texts(texts, rs);
        Ok(())
    }

    /// Texts that no decision depends on: without room for them, the object is stored all the
    /// same.
    fn intern_texts(&mut self, texts: &mut Interner, rs: &wire::ReplicaSet) {
        if let Some(failure) = rs.status.replica_failure.as_ref() {
            let message = texts.intern(failure.message.as_bytes());
            self.failure_message = message.unwrap_or_default();
        }
        if let Some(history) = &rs.revision_history {
            let whole = history.is_complete().then_some(&history.text);
            let text = whole.and_then(|text| texts.intern(text.as_bytes()).ok());
            match text {
                Some(text) => self.revision_history = text,
                None => self.flags |= flag::HISTORY_CUT,
            }
        }
    }

    /// Whether [`revision_history`](Self::revision_history) is all of the annotation.
    pub const fn knows_history(&self) -> bool {
        !self.has(flag::HISTORY_CUT)
    }

    /// The digest of the pod template, its hash label left out.
    pub const fn template(&self) -> Digest {
        Digest::from_bits(self.template.get())
    }

    /// `deployment.kubernetes.io/revision`
    pub const fn revision(&self) -> IntAnnotation {
        unpack_annotation(self.revision, self.flags >> flag::REVISION)
    }

    /// `deployment.kubernetes.io/desired-replicas`; `None` if absent or no number.
    pub const fn desired_replicas(&self) -> Option<i32> {
        if self.has(flag::HAS_DESIRED) { Some(self.desired_replicas) } else { None }
    }

    /// `deployment.kubernetes.io/max-replicas`; `None` if absent or no number.
    pub const fn max_replicas(&self) -> Option<i32> {
        if self.has(flag::HAS_MAX) { Some(self.max_replicas) } else { None }
    }

    /// The `ReplicaFailure` condition.
    pub const fn replica_failure(&self) -> Condition {
        Condition {
            reason: self.failure_reason,
            last_update: Seconds::NONE,
            last_transition: self.failure_transition,
            state: self.failure_state,
        }
    }

    /// `metadata.generation`
    pub const fn generation(&self) -> i64 {
        self.generation.get()
    }

    /// `status.observedGeneration`
    pub const fn observed_generation(&self) -> i64 {
        self.observed_generation.get()
    }

    /// `status.terminatingReplicas`, if the server keeps it.
    pub const fn terminating_replicas(&self) -> Option<i32> {
        if self.has(flag::HAS_TERMINATING) { Some(self.terminating_replicas.get()) } else { None }
    }

    const fn has(&self, bit: u8) -> bool {
        self.flags & bit != 0
    }
}

fn flags<const N: usize>(bits: [(u8, bool); N]) -> u8 {
    bits.into_iter().filter(|(_, set)| *set).fold(0, |flags, (bit, _)| flags | bit)
}

impl Condense for wire::ReplicaSet {
    type Record = ReplicaSet;
    const HAS_TEMPLATE: bool = true;

    fn condense(&self, texts: &mut Interner) -> Result<ReplicaSet, RefusalReason> {
        ReplicaSet::of(self, texts)
    }

    fn recall_template(&mut self, record: &ReplicaSet, texts: &Interner) -> Option<Digest> {
        if record.generation() != self.meta.generation {
            return None;
        }
        for label in record.template_labels.iter(texts) {
            self.template_labels.insert(label.key, label.value);
        }
        Some(record.template())
    }
}

impl Stored for ReplicaSet {
    const EMPTY: Self = Self {
        template: Packed128::new(0),
        revision: Packed64::new(0),
        failure_transition: Seconds::NONE,
        generation: Generation::ZERO,
        observed_generation: Generation::ZERO,
        created: Seconds::NONE,
        replicas: 0,
        min_ready_seconds: 0,
        desired_replicas: 0,
        max_replicas: 0,
        labels: LabelSet::EMPTY,
        template_labels: LabelSet::EMPTY,
        selector: StoredSelector::ABSENT,
        annotations: Annotations::EMPTY,
        failure_message: Text::EMPTY,
        revision_history: Text::EMPTY,
        status_replicas: Count24::ZERO,
        fully_labeled_replicas: Count24::ZERO,
        ready_replicas: Count24::ZERO,
        available_replicas: Count24::ZERO,
        terminating_replicas: Count24::ZERO,
        failure_reason: None,
        failure_state: ConditionState::Absent,
        flags: 0,
    };
    type InNamespace = Place;
}

impl Record for ReplicaSet {
    fn labels(&self) -> LabelSet {
        self.labels
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
        self.labels.release(texts);
        self.template_labels.release(texts);
        self.selector.release(texts);
        self.annotations.release(texts);
        texts.release(self.failure_message);
        texts.release(self.revision_history);
    }
}
