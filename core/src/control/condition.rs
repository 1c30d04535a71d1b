//! Setting conditions of a Deployment.

use crate::store;
use crate::store::{ConditionReason, Seconds};
use crate::time::Timestamp;
use crate::wire::ConditionStatus;

/// A condition that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// Whether it holds.
    pub status: ConditionStatus,
    /// A word for machines.
    pub reason: ConditionReason,
    /// When it was last confirmed: now.
    pub last_update: Timestamp,
    /// When its status last changed.
    pub last_transition: Timestamp,
}

/// Kubernetes' rule: with the same status and reason, a condition is left alone, its times and
/// message included. Otherwise it is replaced; the time of transition stays while the status does.
pub fn set_condition(
    old: &store::Condition,
    status: ConditionStatus,
    reason: ConditionReason,
    now: Timestamp,
) -> Option<NewCondition> {
    if old.status() == Some(status) && old.reason == Some(reason) {
        return None;
    }
    Some(NewCondition::replacing(old, status, reason, now))
}

impl NewCondition {
    /// The condition that takes the place of `old` whatever that is.
    pub fn replacing(
        old: &store::Condition,
        status: ConditionStatus,
        reason: ConditionReason,
        now: Timestamp,
    ) -> Self {
        let kept = old.last_transition.get().filter(|_| old.status() == Some(status));
        Self { status, reason, last_update: now, last_transition: kept.unwrap_or(now) }
    }

    /// The condition as the cache will hold it once it is written.
    pub fn stored(&self) -> store::Condition {
        store::Condition::of(
            self.status,
            Some(self.reason),
            Seconds::new(Some(self.last_update)),
            Seconds::new(Some(self.last_transition)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Timestamp = Timestamp::from_secs(1_000);
    const NOW: Timestamp = Timestamp::from_secs(2_000);

    const WHY: ConditionReason = ConditionReason::ReplicaSetUpdated;
    const OTHER: ConditionReason = ConditionReason::NewReplicaSetAvailable;

    fn stored(status: ConditionStatus, reason: ConditionReason) -> store::Condition {
        NewCondition { status, reason, last_update: THEN, last_transition: THEN }.stored()
    }

    #[test]
    fn same_status_and_reason_is_left_alone() {
        let old = stored(ConditionStatus::True, WHY);
        assert_eq!(set_condition(&old, ConditionStatus::True, WHY, NOW), None);
    }

    #[test]
    fn transition_time_moves_with_the_status_only() {
        let old = stored(ConditionStatus::True, WHY);
        let set = set_condition(&old, ConditionStatus::True, OTHER, NOW).unwrap();
        assert_eq!((set.last_update, set.last_transition), (NOW, THEN));
        let set = set_condition(&old, ConditionStatus::False, WHY, NOW).unwrap();
        assert_eq!((set.last_update, set.last_transition), (NOW, NOW));
        let absent = store::Condition::ABSENT;
        let set = set_condition(&absent, ConditionStatus::Unknown, WHY, NOW).unwrap();
        assert_eq!((set.last_update, set.last_transition), (NOW, NOW));
    }
}
