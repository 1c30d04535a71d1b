//! One sync of a ReplicaSet as a resumable machine: claim, manage, status.

use heapless::String;

use crate::control::{MayAdopt, SlowStart};
use crate::limits;
use crate::link::Slot;
use crate::time::Instant;
use crate::wire::Uid;

use super::status::{Count, FailureWrite};

/// The state of one sync. All requests of a key come from one worker, in order.
#[derive(Clone, Debug)]
pub struct Worker {
    pub(crate) key: Option<Slot>,
    pub(crate) uid: Uid,
    pub(crate) phase: Phase,
    /// Candidates in slots before this one have been claimed or not.
    pub(crate) cursor: usize,
    /// Whether it may adopt, once the live object was looked at.
    pub(crate) may_adopt: MayAdopt,
    pub(crate) creations: SlowStart,
    /// How many pods there are to be when all have been created or deleted.
    pub(crate) goal: usize,
    /// When that was decided.
    pub(crate) decided: Instant,
    /// Requests that are not answered.
    pub(crate) open: u16,
    pub(crate) count: Count,
    pub(crate) failure: FailureWrite,
    /// Why `ReplicaFailure` holds after this sync.
    pub(crate) failed: Option<&'static str>,
    /// The first error of this sync.
    pub(crate) error: String<{ limits::MESSAGE }>,
    pub(crate) outcome: Outcome,
    pub(crate) status_tries: u8,
    /// So long its status waits for the Deployment, once it does.
    pub(crate) owner_until: Option<Instant>,
}

/// Where a sync stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Claim,
    Create,
    Delete,
    Status,
    Ending,
}

/// How a sync ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Good,
    /// The key is retried with back-off.
    Retry,
    /// The key is retried when the watch has had time to tell what really happened.
    RetryLater,
}

/// What a worker wants to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// GET the ReplicaSet itself, uncached.
    Recheck,
    /// Adopt an orphan.
    Adopt(Slot),
    /// Release a pod that is no longer selected.
    Release(Slot),
    /// Create one more pod.
    Create,
    /// Delete a pod.
    Delete(Slot),
    /// Write the status.
    Status,
}

impl Worker {
    /// A worker without work.
    pub const IDLE: Self = Self {
        key: None,
        uid: Uid::NIL,
        phase: Phase::Idle,
        cursor: 0,
        may_adopt: MayAdopt::Unknown,
        creations: SlowStart::new(0),
        goal: 0,
        decided: Instant::ZERO,
        open: 0,
        count: Count {
            observed_generation: 0,
            replicas: 0,
            fully_labeled: 0,
            ready: 0,
            available: 0,
            terminating: None,
        },
        failure: FailureWrite::Keep,
        failed: None,
        error: String::new(),
        outcome: Outcome::Good,
        status_tries: 0,
        owner_until: None,
    };

    pub(crate) fn begin(&mut self, key: Slot, uid: Uid) {
        self.key = Some(key);
        self.uid = uid;
        self.phase = Phase::Claim;
        self.cursor = 0;
        self.may_adopt = MayAdopt::Unknown;
        self.creations = SlowStart::new(0);
        self.open = 0;
        self.failure = FailureWrite::Keep;
        self.failed = None;
        self.error.clear();
        self.outcome = Outcome::Good;
        self.status_tries = 0;
        self.owner_until = None;
    }

    /// When a sync goes on at the latest that waits for the Deployment.
    pub(crate) fn waits_until(&self) -> Option<Instant> {
        self.owner_until.filter(|_| self.phase == Phase::Status && self.open == 0)
    }

    /// Whether pods have begun to come, or all that are too many have been sent away. If a
    /// creation has failed, the end of the sync tells.
    pub(crate) fn has_got_on(&self) -> bool {
        match self.phase {
            Phase::Idle => true,
            Phase::Claim | Phase::Delete => false,
            Phase::Create => self.creations.goes_well(),
            Phase::Status | Phase::Ending => self.outcome == Outcome::Good,
        }
    }

    /// Whether all that is left to do is to write the status.
    pub(crate) fn is_at_status(&self) -> bool {
        self.phase == Phase::Status
    }

    /// Something failed: the sync ends with this error, the first one that came.
    pub(crate) fn fail(&mut self, outcome: Outcome, error: &str) {
        if self.error.is_empty() {
            push_cut(&mut self.error, error);
        }
        if self.outcome != Outcome::RetryLater {
            self.outcome = outcome;
        }
    }
}

/// Appends as much of a text as fits, in whole characters.
pub(crate) fn push_cut<const N: usize>(out: &mut String<N>, text: &str) {
    for character in text.chars() {
        if out.push(character).is_err() {
            return;
        }
    }
}
