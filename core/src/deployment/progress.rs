//! Whether a rollout progresses, is complete or has timed out.

use crate::control::{NewCondition, set_condition};
use crate::store::Condition;
use crate::text::Fingerprint;
use crate::time::{Duration, Timestamp};
use crate::wire::ConditionStatus;

use super::plan::{ConditionWrite, End, Plan};
use super::status::{calculate, count, replica_failure};
use super::view::{Counts, Facts, View};

/// `Progressing`, when the rollout is complete.
pub const NEW_REPLICA_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
/// `Progressing`, while the rollout moves.
pub const REPLICA_SET_UPDATED: &str = "ReplicaSetUpdated";
/// `Progressing`, when nothing has moved for too long.
pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";

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
    let was_complete =
        counts.replicas == counts.updated && is_reason(current, NEW_REPLICA_SET_AVAILABLE);
    if was_complete {
        return ConditionWrite::Keep;
    }
    let set = |status, reason| {
        set_condition(current, status, reason, now)
            .map_or(ConditionWrite::Keep, ConditionWrite::Set)
    };
    if d.is_complete(counts) {
        set(ConditionStatus::True, NEW_REPLICA_SET_AVAILABLE)
    } else if has_progressed(&d.status, counts) {
        // Written even if it is there already, so that the deadline starts over.
        let status = ConditionStatus::True;
        ConditionWrite::Set(NewCondition::replacing(current, status, REPLICA_SET_UPDATED, now))
    } else if has_timed_out(d, now) {
        set(ConditionStatus::False, PROGRESS_DEADLINE_EXCEEDED)
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
    if current.status().is_none() || is_reason(current, NEW_REPLICA_SET_AVAILABLE) {
        return false;
    }
    is_reason(current, PROGRESS_DEADLINE_EXCEEDED)
        || deadline(d).is_some_and(|deadline| deadline < now)
}

/// A rollout that stands still is looked at again when its deadline has passed.
fn requeue_stuck(d: &Facts, counts: &Counts, now: Timestamp) -> End {
    let Some(deadline) = deadline(d) else { return End::Done };
    if d.is_complete(counts) || is_reason(&d.progressing, PROGRESS_DEADLINE_EXCEEDED) {
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

/// Whether a condition is there for this reason.
pub(super) fn is_reason(condition: &Condition, reason: &str) -> bool {
    condition.status().is_some() && condition.reason() == Fingerprint::of(reason)
}
