//! A Deployment's status: numbers, `Available`, and the effect of pausing.

use crate::control::{NewCondition, set_condition};
use crate::store::ConditionReason;
use crate::time::Timestamp;
use crate::wire::ConditionStatus;

use super::plan::{ConditionWrite, NewSet, Plan, StatusWrite};
use super::view::{Counts, View, sum};

/// Writes the status if it has changed, without a verdict on progress.
pub(super) fn sync_status_only(view: &View, plan: &mut Plan, now: Timestamp) {
    let write = calculate(view, now);
    if write.changes_something() {
        plan.push_status(write);
    }
}

/// Tells that a Deployment was paused or resumed, which also restarts its progress deadline.
pub(super) fn check_paused(view: &mut View, plan: &mut Plan, now: Timestamp) {
    let new_set = view.new_set().map_or(NewSet::None, NewSet::of);
    let d = &mut view.deployment;
    let current = &d.progressing;
    if d.progress_deadline_seconds.is_none()
        || current.is_because(ConditionReason::ProgressDeadlineExceeded)
    {
        return;
    }
    let is_told = current.is_because(ConditionReason::DeploymentPaused);
    let reason = match (d.paused, is_told) {
        (true, false) => ConditionReason::DeploymentPaused,
        (false, true) => ConditionReason::DeploymentResumed,
        _ => return,
    };
    if let Some(set) = set_condition(current, ConditionStatus::Unknown, reason, now) {
        d.progressing = set.stored();
        let progressing = ConditionWrite::Set(set);
        plan.push_status(StatusWrite { progressing, new_set, ..StatusWrite::EMPTY });
    }
}

/// The status as it should be, as the difference to the stored one.
pub(super) fn calculate(view: &View, now: Timestamp) -> StatusWrite {
    let d = &view.deployment;
    let counts = count(view);
    let (status, reason) = if counts.available >= d.replicas.saturating_sub(d.max_unavailable()) {
        (ConditionStatus::True, ConditionReason::MinimumReplicasAvailable)
    } else {
        (ConditionStatus::False, ConditionReason::MinimumReplicasUnavailable)
    };
    let available = set_condition(&d.available, status, reason, now);
    StatusWrite {
        counts: Some(counts).filter(|counts| *counts != d.status).into(),
        available: available.map_or(ConditionWrite::Keep, ConditionWrite::Set),
        new_set: view.new_set().map_or(NewSet::None, NewSet::of),
        ..StatusWrite::EMPTY
    }
}

/// The numbers as they should be.
pub(super) fn count(view: &View) -> Counts {
    let total = |number: fn(&super::view::Set) -> i32| sum(view.sets.iter().map(number));
    let available = view.total_available();
    Counts {
        observed_generation: view.deployment.generation,
        replicas: total(|set| set.status_replicas),
        updated: view.new_set().map_or(0, |new| new.status_replicas),
        ready: total(|set| set.ready),
        available,
        unavailable: view.total_replicas().saturating_sub(available).max(0),
        terminating: if view.keep_terminating { count_terminating(view) } else { None },
    }
}

/// The sum, unless a ReplicaSet does not report it.
fn count_terminating(view: &View) -> Option<i32> {
    let reported = |set: &super::view::Set| match set.terminating {
        None if set.observed => None,
        number => Some(number.unwrap_or(0)),
    };
    view.sets.iter().map(reported).try_fold(0_i32, |sum, number| Some(sum.saturating_add(number?)))
}

/// `ReplicaFailure`, taken from the new ReplicaSet if it fails, else from the oldest that does.
pub(super) fn replica_failure(view: &View, write: &mut StatusWrite) {
    let failing = view
        .new_set()
        .into_iter()
        .chain(view.sets.iter())
        .find(|set| set.failure.status().is_some());
    let current = &view.deployment.replica_failure;
    let Some(set) = failing else {
        if current.status().is_some() {
            write.replica_failure = ConditionWrite::Remove;
        }
        return;
    };
    let failure = &set.failure;
    let reason = failure_reason(failure.reason);
    if failure.status() == current.status() && current.reason == Some(reason) {
        return;
    }
    let Some(since) = failure.last_transition.get() else { return };
    write.failing = set.slot;
    write.replica_failure = ConditionWrite::Set(NewCondition {
        status: failure.status().unwrap_or_default(),
        reason,
        last_update: since,
        last_transition: since,
    });
}

/// The reasons that the ReplicaSet controller gives.
fn failure_reason(reason: Option<ConditionReason>) -> ConditionReason {
    match reason {
        Some(ConditionReason::FailedDelete) => ConditionReason::FailedDelete,
        _ => ConditionReason::FailedCreate,
    }
}
