//! One sync of a Deployment as a resumable machine: claim, decide, then step by step.

use heapless::String;

use crate::control::Claiming;
use crate::limits;
use crate::link::Slot;
use crate::time::Instant;
use crate::wire::Uid;

use super::plan::{Plan, Step};

/// The state of one sync. All requests of a key come from one worker, in order.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) key: Option<Slot>,
    pub(crate) uid: Uid,
    pub(crate) phase: Phase,
    pub(crate) claiming: Claiming,
    pub(crate) plan: Plan,
    /// The step at hand.
    pub(crate) at: usize,
    /// A request is not answered.
    pub(crate) open: bool,
    /// The request at hand had to wait for another one.
    pub(crate) is_held_up: bool,
    /// `desired-replicas` and `max-replicas` of ReplicaSets that are scaled.
    pub(crate) sizes: (i32, i32),
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

impl Worker {
    /// A worker without work.
    pub(crate) const IDLE: Self = Self {
        key: None,
        uid: Uid::NIL,
        phase: Phase::Idle,
        claiming: Claiming::START,
        plan: Plan::EMPTY,
        at: 0,
        open: false,
        is_held_up: false,
        sizes: (0, 0),
        has_deadline: false,
        error: String::new(),
        outcome: Outcome::Good,
        until: Instant::ZERO,
    };

    pub(crate) fn begin(&mut self, key: Slot, uid: Uid) {
        self.key = Some(key);
        self.uid = uid;
        self.phase = Phase::Claim;
        self.claiming = Claiming::START;
        self.plan.clear();
        self.at = 0;
        self.open = false;
        self.is_held_up = false;
        self.error.clear();
        self.outcome = Outcome::Good;
    }

    /// The step at hand.
    pub(crate) fn step(&self) -> Option<&Step> {
        self.plan.steps.get(self.at).filter(|_| self.phase == Phase::Steps)
    }

    /// Whether the step at hand changes a ReplicaSet.
    pub(crate) fn is_about_to_change_replica_set(&self) -> bool {
        matches!(self.step(), Some(Step::Scale { .. } | Step::Update { .. }))
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

    /// The sync ends here.
    pub(crate) fn stop(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        self.phase = Phase::Ending;
    }
}
