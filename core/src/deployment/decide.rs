//! One sync of a Deployment: delete > pause > rollback > scale > rollout.

use crate::time::Timestamp;
use crate::wire::Strategy;

use super::plan::{End, Plan};
use super::view::View;
use super::{cleanup, new_replica_set, progress, recreate, rollback, rolling, scale, status};

/// Why a sync can do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Impossible {
    /// The strategy is not known.
    UnexpectedStrategy,
    /// More active ReplicaSets than can be looked at together.
    TooManyReplicaSets,
}

/// Plans one sync into `plan`. The view is private to it: virtual changes show in it.
pub fn decide(view: &mut View, plan: &mut Plan, now: Timestamp) -> Result<(), Impossible> {
    plan.steps.clear();
    plan.end = End::Done;
    if view.overflowed {
        return Err(Impossible::TooManyReplicaSets);
    }
    if view.deployment.deleting {
        status::sync_status_only(view, plan, now);
        return Ok(());
    }
    status::check_paused(view, plan, now);
    if view.deployment.paused {
        pause(view, plan, now);
        return Ok(());
    }
    if let Some(revision) = view.deployment.rollback_to.value() {
        rollback::rollback(view, plan, now, revision);
        return Ok(());
    }
    // Looking for a scaling event already brings the new ReplicaSet up to date.
    if !new_replica_set::sync_existing(view, plan, now) {
        return Ok(());
    }
    if scale::is_scaling_event(view) {
        let before = plan.steps.len();
        let fits = scale::scale(view, plan);
        // Where there is nothing to scale, Kubernetes would wait for ever for a scaling that never
        // comes: here, the rollout goes on.
        if !fits || plan.steps.len() > before {
            status::sync_status_only(view, plan, now);
            return Ok(());
        }
    }
    match view.deployment.strategy {
        Strategy::RollingUpdate => rolling::rolling_update(view, plan, now),
        Strategy::Recreate => recreate::recreate(view, plan, now),
        Strategy::Other => return Err(Impossible::UnexpectedStrategy),
    }
    Ok(())
}

/// A paused Deployment is scaled and tidied up, but not rolled out.
fn pause(view: &mut View, plan: &mut Plan, now: Timestamp) {
    if new_replica_set::sync_existing_once(view, plan, now) && scale::scale(view, plan) {
        if view.deployment.rollback_to.value().is_none() {
            cleanup::cleanup(view, plan);
        }
        status::sync_status_only(view, plan, now);
    }
}

/// The end of every rollout step: tidy up once complete, then tell how far it is.
pub(super) fn finish_rollout(view: &mut View, plan: &mut Plan, now: Timestamp) {
    if view.deployment.is_complete(&view.deployment.status) && !cleanup::cleanup(view, plan) {
        return;
    }
    progress::sync_rollout_status(view, plan, now);
}
