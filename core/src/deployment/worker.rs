//! One sync of a Deployment as a resumable machine: claim, decide, then step by step.

use heapless::String;

use crate::control::MayAdopt;
use crate::limits;
use crate::link::Slot;
use crate::time::Instant;
use crate::wire::Uid;

use super::basis::Basis;
use super::plan::{Plan, Step};

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
    pub(crate) plan: Plan,
    /// The step at hand.
    pub(crate) at: usize,
    /// A request is not answered.
    pub(crate) open: bool,
    /// The request at hand had to wait for another one.
    pub(crate) is_held_up: bool,
    /// `desired-replicas` and `max-replicas` of ReplicaSets that are scaled.
    pub(crate) sizes: (i32, i32),
    pub(crate) basis: Basis,
    pub(crate) has_deadline: bool,
    pub(crate) error: String<{ limits::MESSAGE }>,
    pub(crate) outcome: Outcome,
    /// When to go on from [`Phase::Waiting`] at the latest.
    pub(crate) until: Instant,
}

/// Where a sync stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Claim,
    Steps,
    Ending,
    /// Over, and to be done again once the ReplicaSets have got on.
    Waiting,
}

/// How a sync ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As planned.
    Good,
    /// The key is retried with back-off, at most 15 times in a row.
    Retry,
    /// Nothing can be done until something changes.
    Forget,
}

/// What a worker wants to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// GET the Deployment itself, uncached.
    Recheck,
    /// Adopt an orphan.
    Adopt(Slot),
    /// Release a ReplicaSet that is no longer selected.
    Release(Slot),
    /// The request of the step at hand.
    Step,
}

impl Worker {
    /// A worker without work.
    pub const IDLE: Self = Self {
        key: None,
        uid: Uid::NIL,
        phase: Phase::Idle,
        cursor: 0,
        may_adopt: MayAdopt::Unknown,
        plan: Plan::EMPTY,
        at: 0,
        open: false,
        is_held_up: false,
        sizes: (0, 0),
        basis: Basis::NONE,
        has_deadline: false,
        error: String::new(),
        outcome: Outcome::Good,
        until: Instant::ZERO,
    };

    pub(crate) fn begin(&mut self, key: Slot, uid: Uid) {
        self.key = Some(key);
        self.uid = uid;
        self.phase = Phase::Claim;
        self.cursor = 0;
        self.may_adopt = MayAdopt::Unknown;
        self.plan.clear();
        self.at = 0;
        self.open = false;
        self.is_held_up = false;
        self.error.clear();
        self.outcome = Outcome::Good;
    }

    /// Whether the step at hand changes a ReplicaSet.
    pub(crate) fn is_about_to_change_set(&self) -> bool {
        let step = self.plan.steps.get(self.at);
        self.phase == Phase::Steps && matches!(step, Some(Step::Scale { .. } | Step::Update { .. }))
    }

    /// Forgets what was decided and looks at everything again.
    pub(crate) fn decide_anew(&mut self) {
        if let Some(key) = self.key {
            self.begin(key, self.uid);
        }
    }

    /// When a sync that waits for its ReplicaSets is done again at the latest.
    pub(crate) fn waits_until(&self) -> Option<Instant> {
        (self.phase == Phase::Waiting).then_some(self.until)
    }

    /// Whether a sync of this Deployment is under way, and not just put off.
    pub(crate) fn is_at_work(&self, deployment: Option<Slot>) -> bool {
        self.key == deployment && self.phase != Phase::Waiting
    }

    /// The sync ends here.
    pub(crate) fn stop(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        self.phase = Phase::Ending;
    }
}
