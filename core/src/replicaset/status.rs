//! A ReplicaSet's status, and when it is written.

use crate::planted::{Bug, planted};
use crate::store::{self, Condition, ConditionReason};

/// The numbers in a status, counted before this sync created or deleted anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `observedGeneration`
    pub observed_generation: i64,
    /// `replicas`: claimed, active pods.
    pub replicas: i32,
    /// `fullyLabeledReplicas`: those with all labels of the template.
    pub fully_labeled: i32,
    /// `readyReplicas`
    pub ready: i32,
    /// `availableReplicas`
    pub available: i32,
    /// `terminatingReplicas`; `None` while the feature is off.
    pub terminating: Option<i32>,
}

/// What is stored of a status.
#[derive(Clone, Copy, Debug)]
pub struct StoredStatus {
    /// Its numbers.
    pub count: Counts,
    /// Its `ReplicaFailure` condition.
    pub failure: Condition,
}

impl StoredStatus {
    /// The stored status of a ReplicaSet.
    pub fn of(rs: &store::ReplicaSet) -> Self {
        let count = Counts {
            observed_generation: rs.observed_generation(),
            replicas: rs.status_replicas.get(),
            fully_labeled: rs.fully_labeled_replicas.get(),
            ready: rs.ready_replicas.get(),
            available: rs.available_replicas.get(),
            terminating: rs.terminating_replicas(),
        };
        Self { count, failure: rs.replica_failure() }
    }
}

/// What becomes of the `ReplicaFailure` condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FailureWrite {
    /// Nothing. One that is there stays as it is, its message too, while the failure lasts.
    Keep,
    /// It is added, for this reason.
    Add(ConditionReason),
    /// It is removed.
    Remove,
}

impl FailureWrite {
    /// What becomes of the condition after a sync that failed for `reason`, or did not.
    pub fn after(stored: &Condition, reason: Option<ConditionReason>) -> Self {
        match (reason, stored.status().is_some()) {
            (Some(reason), false) => Self::Add(reason),
            (None, true) => Self::Remove,
            _ => Self::Keep,
        }
    }
}

/// Whether a status has to be written.
pub fn needs_write(stored: &StoredStatus, count: &Counts, failure: FailureWrite) -> bool {
    *count != stored.count || failure != FailureWrite::Keep || planted(Bug::StatusAlwaysWritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Seconds;
    use crate::wire::ConditionStatus;

    const WHY: ConditionReason = ConditionReason::FailedCreate;
    const FAILING: Condition =
        Condition::of(ConditionStatus::True, Some(WHY), Seconds::NONE, Seconds::NONE);

    #[test]
    fn a_failure_is_told_when_it_begins_and_when_it_ends() {
        let other = ConditionReason::FailedDelete;
        for (stored, reason, expected) in [
            (Condition::ABSENT, None, FailureWrite::Keep),
            (Condition::ABSENT, Some(WHY), FailureWrite::Add(WHY)),
            (FAILING, Some(WHY), FailureWrite::Keep),
            (FAILING, Some(other), FailureWrite::Keep),
            (FAILING, None, FailureWrite::Remove),
        ] {
            assert_eq!(FailureWrite::after(&stored, reason), expected, "{stored:?} {reason:?}");
        }
    }

    #[test]
    fn a_status_is_written_when_a_number_or_the_failure_changes() {
        let count = Counts { observed_generation: 2, replicas: 3, ready: 1, ..Counts::default() };
        let stored = StoredStatus { count, failure: Condition::ABSENT };
        assert!(!needs_write(&stored, &count, FailureWrite::Keep));
        assert!(needs_write(&stored, &count, FailureWrite::Add(WHY)));
        assert!(needs_write(&stored, &count, FailureWrite::Remove));
        for other in [
            Counts { observed_generation: 3, ..count },
            Counts { replicas: 2, ..count },
            Counts { fully_labeled: 1, ..count },
            Counts { ready: 2, ..count },
            Counts { available: 1, ..count },
            Counts { terminating: Some(0), ..count },
        ] {
            assert!(needs_write(&stored, &other, FailureWrite::Keep), "{other:?}");
        }
    }
}
