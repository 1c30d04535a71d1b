//! One sync of a ReplicaSet as a resumable machine: claim, manage, status.

use heapless::String;

use crate::control::{Activity, Claiming, SlowStart};
use crate::limits;
use crate::link::Slot;
use crate::store::ConditionReason;
use crate::text::push_cut;
use crate::time::Instant;
use crate::wire::Uid;

use super::status::{Counts, FailureWrite};

/// The state of one sync. All requests of a key come from one worker, in order.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) key: Option<Slot>,
    pub(crate) uid: Uid,
    pub(crate) phase: Phase,
    pub(crate) claiming: Claiming,
    pub(crate) creations: SlowStart,
    /// How many pods there are to be when all have been created or deleted.
    pub(crate) goal: usize,
    /// When that was decided.
    pub(crate) decided: Instant,
    /// Requests that are not answered.
    pub(crate) open: u16,
    pub(crate) count: Counts,
    pub(crate) failure: FailureWrite,
    /// Why `ReplicaFailure` holds after this sync.
    pub(crate) failed: Option<ConditionReason>,
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

impl Worker {
    /// A worker without work.
    pub(crate) const IDLE: Self = Self {
        key: None,
        uid: Uid::NIL,
        phase: Phase::Idle,
        claiming: Claiming::START,
        creations: SlowStart::new(0),
        goal: 0,
        decided: Instant::ZERO,
        open: 0,
        count: Counts {
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
        self.claiming = Claiming::START;
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

    /// A sync has got on when pods have begun to come, or all that are too many have been sent
    /// away. If a creation has failed, the end of the sync tells.
    pub(crate) fn activity(&self) -> Activity {
        match self.phase {
            Phase::Idle => Activity::GotOn,
            Phase::Create if self.creations.goes_well() => Activity::GotOn,
            Phase::Status if self.outcome == Outcome::Good => Activity::AtStatus,
            Phase::Ending if self.outcome == Outcome::Good => Activity::GotOn,
            _ => Activity::Begun,
        }
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
