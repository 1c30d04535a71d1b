//! The Recreate strategy: no pod of the new template while one of an old template runs.

use crate::planted::{Bug, planted};
use crate::time::Timestamp;

use super::decide::finish_rollout;
use super::plan::{Plan, Step};
use super::view::{View, sum};
use super::{new_replica_set, progress};

pub(super) fn recreate(view: &mut View, plan: &mut Plan, now: Timestamp) {
    if scale_down_old(view, plan) || (old_pods_remain(view) && !planted(Bug::RecreateImpatient)) {
        progress::sync_rollout_status(view, plan, now);
        return;
    }
    match view.new_set().copied() {
        None => {
            if !new_replica_set::create(view, plan, now) {
                return;
            }
        }
        Some(new) => {
            let to = view.deployment.replicas;
            if let Some(set) = new.slot
                && new.replicas != to
            {
                plan.push(Step::Scale { set, from: new.replicas, to, available: None });
            }
        }
    }
    finish_rollout(view, plan, now);
}

fn scale_down_old(view: &View, plan: &mut Plan) -> bool {
    let mut scaled = false;
    for (_, old) in view.old_sets().filter(|(_, old)| old.is_active()) {
        if let Some(set) = old.slot {
            scaled = true;
            plan.push(Step::Scale { set, from: old.replicas, to: 0, available: None });
        }
    }
    scaled
}

/// Pods that are being deleted count until they are gone; those that have failed or succeeded do
/// not.
fn old_pods_remain(view: &View) -> bool {
    sum(view.old_sets().map(|(_, set)| set.status_replicas)) > 0 || view.old_pods_running
}
