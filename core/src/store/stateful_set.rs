//! What the cache keeps of a StatefulSet.

use crate::json::Digest;
use crate::statefulset::retention::Policy;
use crate::statefulset::{Counts, PodManagementPolicy, UpdateStrategy};
use crate::text::{Interner, LabelSet, StoredSelector, Text};
use crate::wire;
use crate::wire::UpdateStrategyType;

use super::change::RefusalReason;
use super::packed::{Count24, Generation, Packed128, int_or_percent, share};
use super::{Condense, Place, Record, Stored};

/// A cached StatefulSet: what its controller decides on.
///
/// Flat and without padding; methods put together what belongs together.
#[derive(Clone, Copy, Debug)]
pub struct StatefulSet {
    template: Packed128,
    generation: Generation,
    observed_generation: Generation,
    /// `spec.replicas`
    pub replicas: i32,
    /// `spec.ordinals.start`
    pub start: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    revision_history_limit: i32,
    collision_count: i32,
    partition: i32,
    max_unavailable: i32,
    /// Its own labels.
    pub labels: LabelSet,
    /// `spec.selector`
    pub selector: StoredSelector,
    /// The names of `spec.volumeClaimTemplates` in their order, with commas between.
    pub claim_templates: Text,
    /// `spec.serviceName`
    pub service_name: Text,
    /// `status.currentRevision`
    pub current_revision: Text,
    /// `status.updateRevision`
    pub update_revision: Text,
    /// Bits of [`flag`].
    flags: u16,
    status_replicas: Count24,
    ready_replicas: Count24,
    available_replicas: Count24,
    current_replicas: Count24,
    updated_replicas: Count24,
}

/// Bits of [`StatefulSet::flags`].
mod flag {
    pub(super) const DELETING: u16 = 1;
    pub(super) const PARALLEL: u16 = 1 << 1;
    pub(super) const ON_DELETE: u16 = 1 << 2;
    pub(super) const OTHER_STRATEGY: u16 = 1 << 3;
    pub(super) const HAS_PARTITION: u16 = 1 << 4;
    pub(super) const HAS_UNAVAILABLE: u16 = 1 << 5;
    pub(super) const UNAVAILABLE_IN_PERCENT: u16 = 1 << 6;
    pub(super) const HAS_HISTORY_LIMIT: u16 = 1 << 7;
    pub(super) const HAS_COLLISIONS: u16 = 1 << 8;
    pub(super) const DELETES_WITH_SET: u16 = 1 << 9;
    pub(super) const DELETES_WITH_POD: u16 = 1 << 10;
    pub(super) const REPLACES_BROKEN_PODS: u16 = 1 << 11;
}

impl StatefulSet {
    fn of(set: &wire::StatefulSet, texts: &mut Interner) -> Result<Self, RefusalReason> {
        let (status, counts) = (&set.status, &set.status.counts);
        let (max_unavailable, unavailable_flags) =
            share(set.max_unavailable, flag::HAS_UNAVAILABLE, flag::UNAVAILABLE_IN_PERCENT);
        let is_set = |bit: u16, set: bool| if set { bit } else { 0 };
        let flags = is_set(flag::DELETING, set.meta.deletion.is_some())
            | is_set(flag::PARALLEL, set.policy == PodManagementPolicy::Parallel)
            | is_set(flag::ON_DELETE, set.strategy == UpdateStrategyType::OnDelete)
            | is_set(flag::OTHER_STRATEGY, set.strategy == UpdateStrategyType::Other)
            | is_set(flag::HAS_PARTITION, set.partition.is_some())
            | is_set(flag::HAS_HISTORY_LIMIT, set.revision_history_limit.is_some())
            | is_set(flag::HAS_COLLISIONS, status.collision_count.is_some())
            | is_set(flag::DELETES_WITH_SET, set.retention.deletes_with_set)
            | is_set(flag::DELETES_WITH_POD, set.retention.deletes_with_pod)
            | is_set(flag::REPLACES_BROKEN_PODS, set.replaces_broken_pods)
            | unavailable_flags;
        let mut record = Self {
            template: Packed128::new(set.template.to_bits()),
            generation: Generation::new(set.meta.generation),
            observed_generation: Generation::new(counts.observed_generation),
            replicas: set.replicas,
            start: set.start,
            min_ready_seconds: set.min_ready_seconds,
            revision_history_limit: set.revision_history_limit.unwrap_or_default(),
            collision_count: status.collision_count.unwrap_or_default(),
            partition: set.partition.unwrap_or_default(),
            max_unavailable,
            flags,
            status_replicas: Count24::new(counts.replicas),
            ready_replicas: Count24::new(counts.ready),
            available_replicas: Count24::new(counts.available),
            current_replicas: Count24::new(counts.current),
            updated_replicas: Count24::new(counts.updated),
            ..Self::EMPTY
        };
        match record.intern(texts, set) {
            Ok(()) => Ok(record),
            Err(reason) => {
                record.release(texts);
                Err(reason)
            }
        }
    }

    fn intern(
        &mut self,
        texts: &mut Interner,
        set: &wire::StatefulSet,
    ) -> Result<(), RefusalReason> {
        self.labels = LabelSet::intern(texts, set.meta.labels.as_slice()?)?;
        self.selector = StoredSelector::intern_within(texts, &set.selector, self.labels)?;
        self.claim_templates = texts.intern(set.claim_templates.as_bytes())?;
        self.service_name = texts.intern(set.service_name.as_bytes())?;
        self.current_revision = texts.intern(set.status.current_revision.as_bytes())?;
        self.update_revision = texts.intern(set.status.update_revision.as_bytes())?;
        Ok(())
    }

    const fn has(&self, bit: u16) -> bool {
        self.flags & bit != 0
    }

    /// `metadata.generation`
    pub const fn generation(&self) -> i64 {
        self.generation.get()
    }

    /// The digest of the pod template.
    pub const fn template(&self) -> Digest {
        Digest::from_bits(self.template.get())
    }

    /// `spec.revisionHistoryLimit`
    pub fn revision_history_limit(&self) -> Option<i32> {
        self.has(flag::HAS_HISTORY_LIMIT).then_some(self.revision_history_limit)
    }

    /// `status.collisionCount`; absent and 0 lead to different hashes.
    pub fn collision_count(&self) -> Option<i32> {
        self.has(flag::HAS_COLLISIONS).then_some(self.collision_count)
    }

    /// `spec.podManagementPolicy`
    pub const fn policy(&self) -> PodManagementPolicy {
        match self.has(flag::PARALLEL) {
            true => PodManagementPolicy::Parallel,
            false => PodManagementPolicy::OrderedReady,
        }
    }

    /// `spec.updateStrategy`
    pub fn strategy(&self) -> UpdateStrategy {
        if self.has(flag::ON_DELETE) {
            return UpdateStrategy::OnDelete;
        }
        if self.has(flag::OTHER_STRATEGY) {
            return UpdateStrategy::Other;
        }
        let in_percent = self.has(flag::UNAVAILABLE_IN_PERCENT);
        UpdateStrategy::RollingUpdate {
            partition: self.has(flag::HAS_PARTITION).then_some(self.partition),
            max_unavailable: self
                .has(flag::HAS_UNAVAILABLE)
                .then(|| int_or_percent(self.max_unavailable, in_percent)),
        }
    }

    /// `spec.persistentVolumeClaimRetentionPolicy`
    pub const fn retention(&self) -> Policy {
        Policy {
            deletes_with_set: self.has(flag::DELETES_WITH_SET),
            deletes_with_pod: self.has(flag::DELETES_WITH_POD),
        }
    }

    /// The numbers of `status`.
    pub const fn counts(&self) -> Counts {
        Counts {
            observed_generation: self.observed_generation.get(),
            replicas: self.status_replicas.get(),
            ready: self.ready_replicas.get(),
            available: self.available_replicas.get(),
            current: self.current_replicas.get(),
            updated: self.updated_replicas.get(),
        }
    }

    /// `picokube.dev/replace-broken-pods` is `true`: pods of an outdated revision that are not Ready do not
    /// hold up an update.
    pub const fn replaces_broken_pods(&self) -> bool {
        self.has(flag::REPLACES_BROKEN_PODS)
    }
}

impl Condense for wire::StatefulSet {
    type Record = StatefulSet;
    const HAS_TEMPLATE: bool = true;

    fn condense(&self, texts: &mut Interner) -> Result<StatefulSet, RefusalReason> {
        StatefulSet::of(self, texts)
    }

    fn recall_template(&mut self, record: &StatefulSet, _: &Interner) -> Option<Digest> {
        (record.generation() == self.meta.generation).then(|| record.template())
    }
}

impl Stored for StatefulSet {
    const EMPTY: Self = Self {
        template: Packed128::new(0),
        generation: Generation::ZERO,
        observed_generation: Generation::ZERO,
        replicas: 0,
        start: 0,
        min_ready_seconds: 0,
        revision_history_limit: 0,
        collision_count: 0,
        partition: 0,
        max_unavailable: 0,
        labels: LabelSet::EMPTY,
        selector: StoredSelector::ABSENT,
        claim_templates: Text::EMPTY,
        service_name: Text::EMPTY,
        current_revision: Text::EMPTY,
        update_revision: Text::EMPTY,
        flags: 0,
        status_replicas: Count24::ZERO,
        ready_replicas: Count24::ZERO,
        available_replicas: Count24::ZERO,
        current_replicas: Count24::ZERO,
        updated_replicas: Count24::ZERO,
    };
    type InNamespace = Place;
}

impl Record for StatefulSet {
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
        self.selector.release(texts);
        texts.release(self.claim_templates);
        texts.release(self.service_name);
        texts.release(self.current_revision);
        texts.release(self.update_revision);
    }
}
