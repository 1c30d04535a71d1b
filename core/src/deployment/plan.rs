//! What a sync is going to do: writes in order, and when to look again.

use heapless::Vec;

use crate::control::NewCondition;
use crate::link::Slot;
use crate::store::ConditionReason;
use crate::time::Duration;
use crate::zero::ZeroOption;

use super::basis::Basis;
use super::view::Counts;

/// Writes of one sync. If there are more, the key comes straight back for the rest.
pub const STEPS: usize = 20;

/// What a sync is going to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Writes and events in order.
    pub steps: Vec<Step, STEPS>,
    /// The content of the one [`Step::Status`].
    pub status: StatusWrite,
    /// What follows when all steps are done.
    pub end: End,
    /// What it was made from: a step whose ground has gone is not taken.
    pub(super) basis: Basis,
}

/// One write or event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create the ReplicaSet for the Deployment's template.
    Create {
        /// Its `spec.replicas`.
        replicas: i32,
        /// Its revision.
        revision: i64,
    },
    /// Bring revision, annotations and minReadySeconds of the new ReplicaSet up to date.
    Update {
        /// The ReplicaSet.
        set: Slot,
        /// Its new revision, if that changes.
        revision: Option<i64>,
        /// Whether annotations of the Deployment are missing on it.
        annotations: bool,
    },
    /// Set `spec.replicas` and the two annotations that go with it.
    Scale {
        /// The ReplicaSet.
        set: Slot,
        /// Its size before.
        from: i32,
        /// Its size after; the same if only the annotations differ.
        to: i32,
        /// Of an old one that a rolling update shrinks: how many of its pods were available when
        /// that was decided. A failure ends only the steps of this sort then, not the sync.
        available: Option<i32>,
    },
    /// Write [`Plan::status`].
    Status,
    /// Delete a ReplicaSet of the history.
    Delete {
        /// The ReplicaSet.
        set: Slot,
    },
    /// Take template and annotations of a ReplicaSet over into the Deployment.
    Rollback {
        /// The ReplicaSet.
        set: Slot,
        /// Its revision.
        revision: i64,
    },
    /// Remove the request for a rollback.
    ClearRollback,
    /// Emit an event and write nothing.
    Warn(Warning),
}

/// An event of the Deployment that comes with no write of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The selector is empty.
    SelectingAll,
    /// There is no revision before this one.
    NoLastRevision,
    /// There is no such revision.
    NoSuchRevision,
    /// The revision has the template the Deployment has anyway.
    TemplateUnchanged,
}

/// What follows a sync that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing, until something happens.
    Done,
    /// The key is looked at again once its ReplicaSets have got on: there is more to do.
    Again,
    /// The key is looked at again after a while.
    After(Duration),
    /// The key is looked at again as if it had failed.
    RateLimited,
}

/// What is written to `/status`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatusWrite {
    /// All numbers, if any is to change.
    pub counts: ZeroOption<Counts>,
    /// `deployment.kubernetes.io/revision`, if that is to change.
    pub revision: Option<i64>,
    /// `collisionCount`, if that is to change.
    pub collision_count: Option<i32>,
    /// `Available`
    pub available: ConditionWrite,
    /// `Progressing`
    pub progressing: ConditionWrite,
    /// `ReplicaFailure`, of the ReplicaSet in `failing`.
    pub replica_failure: ConditionWrite,
    /// Where `ReplicaFailure` comes from.
    pub failing: Option<Slot>,
    /// The ReplicaSet that messages are about.
    pub new_set: NewSet,
}

/// What becomes of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ConditionWrite {
    /// Nothing.
    Keep,
    /// It is replaced.
    Set(NewCondition),
    /// It is removed.
    Remove,
}

/// The ReplicaSet that messages are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewSet {
    /// There is none: messages are about the Deployment.
    None,
    /// It is cached.
    Cached(Slot),
    /// This sync creates it.
    Unborn,
}

impl Plan {
    /// Nothing to do.
    pub const EMPTY: Self =
        Self { steps: Vec::new(), status: StatusWrite::EMPTY, end: End::Done, basis: Basis::NONE };

    /// Forgets what was to be done.
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.status = StatusWrite::EMPTY;
        self.end = End::Done;
        self.basis = Basis::NONE;
    }

    /// Adds a step. Whether there was room; if not, the key comes back for the rest.
    pub(super) fn push(&mut self, step: Step) -> bool {
        let fits = self.steps.push(step).is_ok();
        if !fits {
            self.end = End::Again;
        }
        fits
    }

    /// Whether a ReplicaSet changes its size.
    pub(super) fn scales(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Scale { .. }))
    }

    /// Adds the write of a status. Kubernetes writes from a copy that it read before, so that a
    /// second write in the same sync is refused as a conflict and the sync is done over: here,
    /// the sync ends without that write, and the key comes straight back.
    pub(super) fn push_status(&mut self, status: StatusWrite) -> bool {
        if self.steps.contains(&Step::Status) {
            self.end = End::Again;
            return false;
        }
        self.status = status;
        self.push(Step::Status)
    }
}

impl StatusWrite {
    /// Nothing to write.
    pub const EMPTY: Self = Self {
        counts: ZeroOption::None,
        revision: None,
        collision_count: None,
        available: ConditionWrite::Keep,
        progressing: ConditionWrite::Keep,
        replica_failure: ConditionWrite::Keep,
        failing: None,
        new_set: NewSet::None,
    };

    /// Whether it tells only how far a rollout is that goes on, of a generation that was told of
    /// before.
    pub fn is_interim(&self, observed_generation: i64) -> bool {
        let goes_on = match self.progressing {
            ConditionWrite::Keep => true,
            ConditionWrite::Set(set) => set.reason == ConditionReason::ReplicaSetUpdated,
            ConditionWrite::Remove => false,
        };
        let rest = Self {
            counts: ZeroOption::None,
            available: ConditionWrite::Keep,
            progressing: ConditionWrite::Keep,
            ..*self
        };
        goes_on
            && self
                .counts
                .get()
                .is_some_and(|counts| counts.observed_generation == observed_generation)
            && !rest.changes_something()
    }

    /// Whether anything is to be written.
    pub fn changes_something(&self) -> bool {
        let Self { counts, revision, collision_count, .. } = self;
        counts.as_ref().is_some()
            || revision.is_some()
            || collision_count.is_some()
            || [self.available, self.progressing, self.replica_failure]
                .iter()
                .any(|write| *write != ConditionWrite::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use crate::wire::ConditionStatus;

    const COUNTS: Counts = Counts {
        observed_generation: 4,
        replicas: 3,
        updated: 0,
        ready: 0,
        available: 0,
        unavailable: 0,
        terminating: None,
    };

    const ALL: StatusWrite = StatusWrite { counts: ZeroOption::Some(COUNTS), ..StatusWrite::EMPTY };

    const fn set(reason: ConditionReason) -> ConditionWrite {
        ConditionWrite::Set(NewCondition {
            status: ConditionStatus::True,
            reason,
            last_update: Timestamp::EPOCH,
            last_transition: Timestamp::EPOCH,
        })
    }

    #[test]
    fn what_does_not_fit_into_a_plan_is_left_to_the_next() {
        let mut plan = Plan::EMPTY;
        for revision in 0..STEPS as i64 {
            assert!(plan.push(Step::Create { replicas: 1, revision }));
            assert_eq!(plan.end, End::Done);
        }
        assert!(!plan.push(Step::ClearRollback));
        assert_eq!((plan.steps.len(), plan.end), (STEPS, End::Again));
        assert!(!plan.push_status(ALL));
    }

    #[test]
    fn a_plan_writes_one_status() {
        let mut plan = Plan::EMPTY;
        assert!(plan.push_status(ALL));
        assert_eq!((&plan.steps[..], plan.end), (&[Step::Status][..], End::Done));
        assert!(!plan.push_status(StatusWrite::EMPTY));
        assert_eq!((&plan.steps[..], plan.end), (&[Step::Status][..], End::Again));
        assert_eq!(plan.status, ALL);
    }

    #[test]
    fn nothing_of_a_plan_is_left_when_it_is_forgotten() {
        let mut plan = Plan::EMPTY;
        plan.push_status(ALL);
        plan.push_status(ALL);
        plan.clear();
        assert_eq!((&plan.steps[..], plan.end), (&[][..], End::Done));
        assert_eq!(plan.status, StatusWrite::EMPTY);
    }

    #[test]
    fn a_plan_that_only_updates_a_replica_set_scales_none() {
        let set = Slot::FIRST;
        let mut plan = Plan::EMPTY;
        plan.push(Step::Update { set, revision: None, annotations: false });
        assert!(!plan.scales());
        plan.push(Step::Scale { set, from: 1, to: 1, available: None });
        assert!(plan.scales());
    }

    /// Each row: a write, whether it changes something, whether it only tells how far a rollout is.
    #[test]
    fn a_status_that_only_tells_how_far_a_rollout_is_may_wait() {
        const EMPTY: StatusWrite = StatusWrite::EMPTY;
        let goes_on = set(ConditionReason::ReplicaSetUpdated);
        let is_done = set(ConditionReason::NewReplicaSetAvailable);
        let of_newer = ZeroOption::Some(Counts { observed_generation: 5, ..COUNTS });
        for (status, changes, is_interim) in [
            (EMPTY, false, false),
            (
                StatusWrite { failing: Some(Slot::FIRST), new_set: NewSet::Unborn, ..EMPTY },
                false,
                false,
            ),
            (ALL, true, true),
            (StatusWrite { counts: of_newer, ..ALL }, true, false),
            (StatusWrite { progressing: goes_on, ..ALL }, true, true),
            (StatusWrite { progressing: is_done, ..ALL }, true, false),
            (StatusWrite { progressing: ConditionWrite::Remove, ..ALL }, true, false),
            (StatusWrite { available: is_done, ..ALL }, true, true),
            (
                StatusWrite { available: ConditionWrite::Remove, progressing: goes_on, ..ALL },
                true,
                true,
            ),
            (StatusWrite { revision: Some(2), ..ALL }, true, false),
            (StatusWrite { collision_count: Some(1), ..ALL }, true, false),
            (StatusWrite { replica_failure: ConditionWrite::Remove, ..ALL }, true, false),
            (StatusWrite { progressing: goes_on, ..EMPTY }, true, false),
            (StatusWrite { available: is_done, ..EMPTY }, true, false),
            (StatusWrite { replica_failure: is_done, ..EMPTY }, true, false),
            (StatusWrite { revision: Some(2), ..EMPTY }, true, false),
            (StatusWrite { collision_count: Some(1), ..EMPTY }, true, false),
        ] {
            assert_eq!(status.changes_something(), changes, "{status:?}");
            assert_eq!(status.is_interim(4), is_interim, "{status:?}");
        }
    }
}
