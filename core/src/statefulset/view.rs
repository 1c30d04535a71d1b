//! What a decision about one StatefulSet looks at.

use core::fmt;
use core::ops::BitOr;

use crate::control::OrderedPod;
use crate::link::Slot;
use crate::wire::IntOrPercent;

/// The facts about one StatefulSet, its pods and their claims, as they are when a sync begins.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The StatefulSet.
    pub set: Facts,
    /// Its pods by ordinal, ascending: those that have one, and at most one of each.
    pub pods: &'a [PodFacts],
    /// The claims of its pods.
    pub claims: &'a dyn Claims,
}

/// The facts about a StatefulSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `metadata.generation`
    pub generation: i64,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// `spec.replicas`
    pub replicas: i32,
    /// `spec.ordinals.start`
    pub start: i32,
    /// `spec.podManagementPolicy`
    pub policy: PodManagementPolicy,
    /// `spec.updateStrategy`
    pub strategy: UpdateStrategy,
    /// The feature gate `MaxUnavailableStatefulSet`.
    pub honours_max_unavailable: bool,
    /// Pods of an outdated revision that are not Ready do not hold up an update; not in Kubernetes.
    pub replaces_broken_pods: bool,
    /// The current revision is the update revision.
    pub same_revision: bool,
    /// `status`, as last written.
    pub status: Counts,
    /// `status.currentRevision` or `status.updateRevision` does not name the revision of this sync.
    pub revisions_differ: bool,
}

/// The numbers in a StatefulSet's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `observedGeneration`
    pub observed_generation: i64,
    /// `replicas`
    pub replicas: i32,
    /// `readyReplicas`
    pub ready: i32,
    /// `availableReplicas`
    pub available: i32,
    /// `currentReplicas`
    pub current: i32,
    /// `updatedReplicas`
    pub updated: i32,
}

/// `spec.podManagementPolicy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PodManagementPolicy {
    /// One pod after the other, each when those before it are available.
    #[default]
    OrderedReady,
    /// All at once.
    Parallel,
}

/// `spec.updateStrategy`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum UpdateStrategy {
    /// Outdated pods are replaced, the highest ordinal first.
    RollingUpdate {
        /// `rollingUpdate.partition`; `None` without `rollingUpdate`.
        partition: Option<i32>,
        /// `rollingUpdate.maxUnavailable`
        max_unavailable: Option<IntOrPercent>,
    },
    /// Outdated pods stay until somebody deletes them.
    OnDelete,
    /// Another.
    Other,
}

/// What is known of the claims of one pod or the other.
pub trait Claims {
    /// A claim of the ordinal still belongs to a pod that was: no new one is created before it is gone.
    fn is_stale(&self, ordinal: i32) -> bool;
    /// The claims of the ordinal that are there belong to whom the retention policy says.
    fn are_right(&self, ordinal: i32, is_condemned: bool) -> bool;
    /// A claim of the ordinal is not there, or is being deleted.
    fn are_missing(&self, ordinal: i32) -> bool;
}

/// The facts about a pod: its ordinal, where it is cached, and as a note what it is like.
pub type PodFacts = OrderedPod;

/// What a pod is like: any number of things.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct PodState(u16);

impl PodState {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// `status.phase` is not empty.
    pub const CREATED: Self = Self(1);
    /// The phase is Failed or Succeeded.
    pub const ENDED: Self = Self(1 << 1);
    /// The phase is Pending.
    pub const PENDING: Self = Self(1 << 2);
    /// The phase is Running and the condition `Ready` is true.
    pub const READY: Self = Self(1 << 3);
    /// `Ready` for `minReadySeconds`.
    pub const AVAILABLE: Self = Self(1 << 4);
    /// It has a deletion timestamp.
    pub const TERMINATING: Self = Self(1 << 5);
    /// Its `controller-revision-hash` names the current revision.
    pub const CURRENT: Self = Self(1 << 6);
    /// Its `controller-revision-hash` names the update revision.
    pub const UPDATED: Self = Self(1 << 7);
    /// Its name and the label that tells it are right.
    pub const IDENTITY: Self = Self(1 << 8);
    /// It has a volume for each claim template, of the right claim.
    pub const STORAGE: Self = Self(1 << 9);

    /// This, if `is` holds.
    #[must_use]
    pub const fn when(self, is: bool) -> Self {
        if is { self } else { Self::NONE }
    }

    /// Whether all of `other` holds.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for PodState {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for PodState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(PodState, &str); 10] = [
            (PodState::CREATED, "created"),
            (PodState::ENDED, "ended"),
            (PodState::PENDING, "pending"),
            (PodState::READY, "ready"),
            (PodState::AVAILABLE, "available"),
            (PodState::TERMINATING, "terminating"),
            (PodState::CURRENT, "current"),
            (PodState::UPDATED, "updated"),
            (PodState::IDENTITY, "identity"),
            (PodState::STORAGE, "storage"),
        ];
        let names = NAMES.iter().filter(|(state, _)| self.has(*state)).map(|(_, name)| name);
        f.debug_set().entries(names).finish()
    }
}

impl View<'_> {
    /// The pods within the range of ordinals, ascending.
    pub fn replicas(&self) -> impl DoubleEndedIterator<Item = &PodFacts> {
        self.pods.iter().filter(|pod| self.set.is_in_range(pod.ordinal()))
    }

    /// The pods outside of the range of ordinals, the highest ordinal first.
    pub fn condemned(&self) -> impl DoubleEndedIterator<Item = &PodFacts> {
        self.pods.iter().rev().filter(|pod| !self.set.is_in_range(pod.ordinal()))
    }
}

impl Facts {
    /// No StatefulSet.
    pub const EMPTY: Self = Self {
        generation: 0,
        deleting: false,
        replicas: 0,
        start: 0,
        policy: PodManagementPolicy::OrderedReady,
        strategy: UpdateStrategy::RollingUpdate { partition: None, max_unavailable: None },
        honours_max_unavailable: false,
        replaces_broken_pods: false,
        same_revision: false,
        status: Counts {
            observed_generation: 0,
            replicas: 0,
            ready: 0,
            available: 0,
            current: 0,
            updated: 0,
        },
        revisions_differ: false,
    };

    /// Whether there is to be a pod of this ordinal.
    pub fn is_in_range(&self, ordinal: i32) -> bool {
        super::identity::is_in_range(ordinal, self.start, self.replicas)
    }

    /// The ordinals of the pods that there are to be.
    pub fn ordinals(&self) -> impl Iterator<Item = i32> + use<> {
        (self.start..=i32::MAX).take(usize::try_from(self.replicas).unwrap_or(0))
    }

    /// One pod after the other.
    pub fn is_monotonic(&self) -> bool {
        self.policy == PodManagementPolicy::OrderedReady
    }

    /// The first ordinal that an update reaches: the partition counts from the start.
    pub(super) fn first_updated(&self) -> i64 {
        let partition = match self.strategy {
            UpdateStrategy::RollingUpdate { partition, .. } => partition.unwrap_or(0),
            UpdateStrategy::OnDelete | UpdateStrategy::Other => 0,
        };
        i64::from(self.start) + i64::from(partition)
    }
}

impl PodFacts {
    /// The pod of an ordinal in a slot.
    pub const fn new(ordinal: i32, slot: Slot, state: PodState) -> Self {
        Self::at(ordinal, slot, state.0)
    }

    /// Its place in the set.
    pub const fn ordinal(&self) -> i32 {
        self.place
    }

    const fn state(&self) -> PodState {
        PodState(self.note)
    }

    /// It is there, for all that its phase tells.
    pub const fn is_created(&self) -> bool {
        self.state().has(PodState::CREATED)
    }

    /// It has failed or succeeded.
    pub const fn has_ended(&self) -> bool {
        self.state().has(PodState::ENDED)
    }

    /// It is Pending.
    pub const fn is_pending(&self) -> bool {
        self.state().has(PodState::PENDING)
    }

    /// It is Running and Ready.
    pub const fn is_ready(&self) -> bool {
        self.state().has(PodState::READY)
    }

    /// It is going away.
    pub const fn is_terminating(&self) -> bool {
        self.state().has(PodState::TERMINATING)
    }

    /// It is of the current revision.
    pub const fn is_current(&self) -> bool {
        self.state().has(PodState::CURRENT)
    }

    /// It is of the update revision.
    pub const fn is_updated(&self) -> bool {
        self.state().has(PodState::UPDATED)
    }

    /// It is not of the update revision, and is not going away.
    pub const fn is_outdated(&self) -> bool {
        !self.is_updated() && !self.is_terminating()
    }

    /// It is not available, or not for long.
    pub const fn is_unavailable(&self) -> bool {
        !self.state().has(PodState::AVAILABLE) || self.is_terminating()
    }

    /// It is Running, Ready and available, whether or not it is going away.
    pub const fn is_ready_and_available(&self) -> bool {
        self.state().has(PodState(PodState::READY.0 | PodState::AVAILABLE.0))
    }

    /// Nothing is wrong with its name, its labels and its volumes.
    pub const fn has_identity_and_storage(&self) -> bool {
        self.state().has(PodState(PodState::IDENTITY.0 | PodState::STORAGE.0))
    }
}
