//! The RollingUpdate strategy.

use crate::planted::{Bug, planted};
use crate::time::Timestamp;

use super::decide::finish_rollout;
use super::plan::{Plan, Step};
use super::view::{Set, View};
use super::{new_replica_set, progress};

pub(super) fn rolling_update(view: &mut View, plan: &mut Plan, now: Timestamp) {
    if view.new.is_none() && !new_replica_set::create(view, plan, now) {
        return;
    }
    if scale_new(view, plan) || scale_down_old(view, plan) {
        progress::sync_rollout_status(view, plan, now);
        return;
    }
    finish_rollout(view, plan, now);
}

/// Scales the new ReplicaSet towards `spec.replicas`. Returns whether there was anything to do.
fn scale_new(view: &View, plan: &mut Plan) -> bool {
    let Some(new) = view.new_set() else { return false };
    let Some(slot) = new.slot else { return false };
    let to = if new.replicas > view.deployment.replicas {
        view.deployment.replicas
    } else {
        view.new_size(new.replicas)
    };
    if to == new.replicas {
        return false;
    }
    plan.push(Step::Scale { set: slot, from: new.replicas, to, available: None });
    true
}

/// Scales old ReplicaSets down as far as availability allows, those pods first that are not
/// available anyway. Returns whether there was anything to do.
fn scale_down_old(view: &mut View, plan: &mut Plan) -> bool {
    let active: i32 = super::view::sum(view.old_sets().map(|(_, set)| set.replicas));
    if active == 0 {
        return false;
    }
    let (new_size, new_available) =
        view.new_set().map_or((0, 0), |new| (new.replicas, new.available));
    let new_unavailable = new_size.saturating_sub(new_available);
    let max_down = view
        .total_replicas()
        .saturating_sub(view.deployment.min_available())
        .saturating_sub(new_unavailable);
    if max_down <= 0 {
        return false;
    }
    let Ok(unhealthy) = scale_down_unhealthy(view, plan, max_down) else { return false };
    let available = scale_down_available(view, plan);
    unhealthy.saturating_add(available) > 0
}

/// A ReplicaSet reports more available pods than it is to have: its status lags behind an
/// earlier scale-down, so this is not the time for another.
struct StatusLags;

/// Unhealthy first: at most `max_down` pods that are not available, oldest ReplicaSet first.
fn scale_down_unhealthy(
    view: &mut View,
    plan: &mut Plan,
    max_down: i32,
) -> Result<i32, StatusLags> {
    let new = view.new;
    let mut down = 0;
    for (at, set) in view.sets.iter_mut().enumerate() {
        if Some(at) == new || set.replicas == 0 || set.replicas == set.available {
            continue;
        }
        if down >= max_down {
            break;
        }
        let count = (max_down - down).min(set.replicas - set.available);
        if count < 0 {
            return Err(StatusLags);
        }
        scale_down(set, count, plan);
        down += count;
    }
    Ok(down)
}

/// As many more as can go while enough stay available, oldest ReplicaSet first.
fn scale_down_available(view: &mut View, plan: &mut Plan) -> i32 {
    let spare = view.total_available().saturating_sub(view.deployment.min_available());
    let budget = spare.saturating_add(planted(Bug::UnavailableOffByOne).into());
    let new = view.new;
    let mut down = 0;
    for (at, set) in view.sets.iter_mut().enumerate() {
        if Some(at) == new || set.planned == 0 {
            continue;
        }
        if down >= budget {
            break;
        }
        let count = set.planned.min(budget - down);
        scale_down(set, count, plan);
        down += count;
    }
    down
}

fn scale_down(set: &mut Set, count: i32, plan: &mut Plan) {
    if let Some(slot) = set.slot
        && count > 0
    {
        let (from, to) = (set.planned, set.planned - count);
        plan.push(Step::Scale { set: slot, from, to, available: Some(set.available) });
        set.planned = to;
    }
}
