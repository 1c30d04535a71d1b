//! What a sync is going to do: writes in order, and what follows.

use heapless::Vec;

use crate::link::Slot;

use super::status::StatusWrite;
use super::view::PodFacts;

/// Writes of one sync. If there are more, the key comes straight back for the rest.
pub const STEPS: usize = 20;

/// What a sync is going to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Writes in order. An error ends the sync, but for what is done beside it, see [`Phase`].
    pub steps: Vec<Step, STEPS>,
    /// The status once all steps are done, whether or not they succeeded.
    pub status: StatusWrite,
    /// What follows when all steps are done.
    pub end: End,
}

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create the claims that are missing, unless the pod is condemned, and write the owner references of
    /// those that belong to somebody else than the retention policy says.
    FixClaims {
        /// The ordinal.
        ordinal: i32,
        /// The pod.
        pod: Slot,
        /// The pod is on its way out.
        is_condemned: bool,
    },
    /// Create a pod, its claims before it.
    Create {
        /// Its ordinal.
        ordinal: i32,
        /// What it is made of.
        revision: NewRevision,
    },
    /// Bring identity, storage and claims of a pod in order.
    Update {
        /// Its ordinal.
        ordinal: i32,
        /// The pod.
        pod: Slot,
    },
    /// Delete a pod.
    Delete {
        /// Its ordinal.
        ordinal: i32,
        /// The pod.
        pod: Slot,
        /// Why.
        reason: DeleteReason,
        /// If it succeeds, [`StatusWrite::lower_current`].
        lowers_current: bool,
    },
}

/// Which template a pod is created from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NewRevision {
    /// That of the current revision.
    Current = 1,
    /// That of the update revision.
    Update,
}

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DeleteReason {
    /// It is outdated and not Ready; not in Kubernetes.
    Broken = 1,
    /// It has failed or succeeded: another is to take its place.
    Ended,
    /// Its ordinal is out of range.
    Condemned,
    /// It is outdated.
    Outdated,
}

/// The parts of a sync. One begins when all of the one before it has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Deletes pods that hold up an update: one after the other.
    Heal = 1,
    /// Brings up the replicas. With `Parallel` in batches that begin small, in which errors are collected.
    Replicas,
    /// Sees to the claims of condemned pods: likewise.
    Claims,
    /// Deletes condemned pods: likewise.
    Condemned,
    /// Deletes outdated pods: one after the other.
    Update,
}

/// What follows a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Nothing.
    #[default]
    Done,
    /// The key comes straight back: there is more to do.
    Again,
}

impl Step {
    /// The ordinal that it is about.
    pub const fn ordinal(&self) -> i32 {
        match *self {
            Self::FixClaims { ordinal, .. }
            | Self::Create { ordinal, .. }
            | Self::Update { ordinal, .. }
            | Self::Delete { ordinal, .. } => ordinal,
        }
    }

    /// The part of the sync that it belongs to.
    pub const fn phase(&self) -> Phase {
        match *self {
            Self::FixClaims { is_condemned: false, .. }
            | Self::Create { .. }
            | Self::Update { .. }
            | Self::Delete { reason: DeleteReason::Ended, .. } => Phase::Replicas,
            Self::FixClaims { is_condemned: true, .. } => Phase::Claims,
            Self::Delete { reason: DeleteReason::Broken, .. } => Phase::Heal,
            Self::Delete { reason: DeleteReason::Condemned, .. } => Phase::Condemned,
            Self::Delete { reason: DeleteReason::Outdated, .. } => Phase::Update,
        }
    }
}

impl Plan {
    /// Nothing to do.
    pub const EMPTY: Self = Self { steps: Vec::new(), status: StatusWrite::EMPTY, end: End::Done };

    /// Forgets what was to be done.
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.status = StatusWrite::EMPTY;
        self.end = End::Done;
    }

    /// Adds a step. Whether there was room; if not, the key comes back for the rest.
    pub(super) fn push(&mut self, step: Step) -> bool {
        let fits = self.steps.push(step).is_ok();
        if !fits {
            self.end = End::Again;
        }
        fits
    }

    /// Adds the deletion of a pod.
    pub(super) fn delete(&mut self, pod: &PodFacts, reason: DeleteReason, lowers: bool) -> bool {
        let (ordinal, slot) = (pod.ordinal(), pod.slot());
        self.push(Step::Delete { ordinal, pod: slot, reason, lowers_current: lowers })
    }

    /// Adds the deletion of an outdated pod. Where it goes already, because it has ended, Kubernetes deletes
    /// it a second time: here, once is enough, and counts as both.
    pub(super) fn delete_outdated(&mut self, pod: &PodFacts) -> bool {
        for step in &mut self.steps {
            if let Step::Delete { ordinal, lowers_current, .. } = step
                && *ordinal == pod.ordinal()
            {
                *lowers_current = true;
                return true;
            }
        }
        self.delete(pod, DeleteReason::Outdated, true)
    }
}
