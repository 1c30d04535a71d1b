//! Whether a rollout progresses, is complete or has timed out.

use crate::control::{NewCondition, set_condition};
use crate::store::ConditionReason;
use crate::time::{Duration, Timestamp};
use crate::wire::ConditionStatus;

use super::plan::{ConditionWrite, End, Plan};
use super::status::{calculate, count, replica_failure};
use super::view::{Counts, Facts, View};

const SECOND: Duration = Duration::from_secs(1);

/// Writes the status with a verdict on progress, if it has changed; otherwise looks again when
/// the deadline is due.
pub(super) fn sync_rollout_status(view: &View, plan: &mut Plan, now: Timestamp) {
    let counts = count(view);
    let mut write = calculate(view, now);
    write.progressing = judge(&view.deployment, &counts, now);
    replica_failure(view, &mut write);
    if write.changes_something() {
        plan.push_status(write);
    } else if plan.end == End::Done {
        plan.end = requeue_stuck(&view.deployment, &counts, now);
    }
}

fn judge(d: &Facts, counts: &Counts, now: Timestamp) -> ConditionWrite {
    let current = &d.progressing;
    if d.progress_deadline_seconds.is_none() {
        let there = current.status().is_some();
        return if there { ConditionWrite::Remove } else { ConditionWrite::Keep };
    }
    let was_complete = counts.replicas == counts.updated
        && current.is_because(ConditionReason::NewReplicaSetAvailable);
    if was_complete {
        return ConditionWrite::Keep;
    }
    let set = |status, reason| {
        set_condition(current, status, reason, now)
            .map_or(ConditionWrite::Keep, ConditionWrite::Set)
    };
    if d.is_complete(counts) {
        set(ConditionStatus::True, ConditionReason::NewReplicaSetAvailable)
    } else if has_progressed(&d.status, counts) {
        // Written even if it is there already, so that the deadline starts over.
        let status = ConditionStatus::True;
        ConditionWrite::Set(NewCondition::replacing(
            current,
            status,
            ConditionReason::ReplicaSetUpdated,
            now,
        ))
    } else if has_timed_out(d, now) {
        set(ConditionStatus::False, ConditionReason::ProgressDeadlineExceeded)
    } else {
        ConditionWrite::Keep
    }
}

/// Progress is judged against the status that was written last.
fn has_progressed(stored: &Counts, counts: &Counts) -> bool {
    let old = |counts: &Counts| counts.replicas - counts.updated;
    counts.updated > stored.updated
        || old(counts) < old(stored)
        || counts.ready > stored.ready
        || counts.available > stored.available
}

fn has_timed_out(d: &Facts, now: Timestamp) -> bool {
    let current = &d.progressing;
    if current.status().is_none() || current.is_because(ConditionReason::NewReplicaSetAvailable) {
        return false;
    }
    current.is_because(ConditionReason::ProgressDeadlineExceeded)
        || deadline(d).is_some_and(|deadline| deadline < now)
}

/// A rollout that stands still is looked at again when its deadline has passed.
fn requeue_stuck(d: &Facts, counts: &Counts, now: Timestamp) -> End {
    let Some(deadline) = deadline(d) else { return End::Done };
    if d.is_complete(counts) || d.progressing.is_because(ConditionReason::ProgressDeadlineExceeded)
    {
        return End::Done;
    }
    let after = deadline.since(now);
    if after < SECOND { End::RateLimited } else { End::After(after + SECOND) }
}

/// When the rollout must have moved again.
fn deadline(d: &Facts) -> Option<Timestamp> {
    let seconds = u64::from(d.progress_deadline_seconds?.unsigned_abs());
    d.progressing.status()?;
    let since = d.progressing.last_update.get().unwrap_or(Timestamp::EPOCH);
    Some(since.saturating_add(Duration::from_secs(seconds)))
}
