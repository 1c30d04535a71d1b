//! Scaling a Deployment: its size has changed, or it is paused.

use super::plan::{Plan, Step};
use super::view::{SETS, Set, View};
use crate::sort::heap_sort;
use core::cmp::Ordering;

/// Whether `spec.replicas` has changed since an active ReplicaSet was last scaled.
pub(super) fn is_scaling_event(view: &View) -> bool {
    let differs = |set: &Set| {
        set.desired.is_some_and(|desired| desired >= 0 && desired != view.deployment.replicas)
    };
    view.sets.iter().any(|set| set.is_active() && differs(set))
}

/// Plans the scaling. Returns whether all of it fits into the plan.
pub(super) fn scale(view: &mut View, plan: &mut Plan) -> bool {
    let replicas = view.deployment.replicas;
    if let Some(set) = active_or_latest(view) {
        return set.replicas == replicas || push(plan, set, replicas);
    }
    if is_saturated(view) {
        return view
            .old_sets()
            .filter(|(_, old)| old.is_active())
            .all(|(_, old)| push(plan, old, 0));
    }
    !view.deployment.is_rolling() || proportional(view, plan)
}

/// The only active ReplicaSet; without an active one, the new or the youngest old one.
fn active_or_latest(view: &View) -> Option<&Set> {
    let mut active = view.sets.iter().filter(|set| set.is_active());
    match (active.next(), active.next()) {
        (None, _) => view.new_set().or_else(|| view.old_sets().next_back().map(|(_, set)| set)),
        (Some(only), None) => Some(only),
        (Some(_), Some(_)) => None,
    }
}

/// The new ReplicaSet is all there is to be.
fn is_saturated(view: &View) -> bool {
    let replicas = view.deployment.replicas;
    view.new_set().is_some_and(|new| {
        new.replicas == replicas && new.desired == Some(replicas) && new.available == replicas
    })
}

/// Shares the difference among the active ReplicaSets by their size, largest first; what rounding
/// leaves over goes to the first.
fn proportional(view: &mut View, plan: &mut Plan) -> bool {
    let d = &view.deployment;
    let allowed = if d.replicas > 0 { d.max_replicas() } else { 0 };
    let max_replicas = d.max_replicas();
    let delta = allowed.saturating_sub(view.total_replicas());
    let mut order: heapless::Vec<u8, SETS> = heapless::Vec::new();
    order.extend(
        (0..view.sets.len() as u8).filter(|at| at_place(view, *at).is_some_and(Set::is_active)),
    );
    heap_sort(&mut order, |a, b| by_size(view, *a, *b, delta));
    let mut added = 0;
    for &at in &order {
        let Some(set) = at_place(view, at) else { continue };
        let share = proportion(view, set, delta, added);
        added += share;
        let planned = set.replicas.saturating_add(share);
        if let Some(set) = view.sets.get_mut(usize::from(at)) {
            set.planned = planned;
        }
    }
    if let Some(first) = order.first().and_then(|at| view.sets.get_mut(usize::from(*at)))
        && delta != 0
    {
        first.planned = first.planned.saturating_add(delta - added).max(0);
    }
    let replicas = view.deployment.replicas;
    order.iter().filter_map(|at| at_place(view, *at)).all(|set| {
        let annotated = set.desired == Some(replicas) && set.max == Some(max_replicas);
        (set.planned == set.replicas && annotated) || push(plan, set, set.planned)
    })
}

fn at_place(view: &View, at: u8) -> Option<&Set> {
    view.sets.get(usize::from(at))
}

/// Largest first. Of equals, the youngest when pods are added, the oldest when they are removed.
fn by_size(view: &View, a: u8, b: u8, delta: i32) -> Ordering {
    let size = |at| at_place(view, at).map_or(0, |set| set.replicas);
    // Places are in order of creation.
    let by_age = if delta > 0 { b.cmp(&a) } else { a.cmp(&b) };
    size(b).cmp(&size(a)).then(by_age)
}

/// The part of `delta` that falls to one ReplicaSet when `added` of it are given out.
fn proportion(view: &View, set: &Set, delta: i32, added: i32) -> i32 {
    if set.replicas == 0 || delta == 0 || delta == added {
        return 0;
    }
    let left = delta - added;
    let fraction = fraction(view, set);
    if delta > 0 { fraction.min(left) } else { fraction.max(left) }
}

/// How much one ReplicaSet has to grow to keep its share.
fn fraction(view: &View, set: &Set) -> i32 {
    let d = &view.deployment;
    if d.replicas == 0 {
        return -set.replicas;
    }
    let base = set.max.filter(|max| *max > 0).unwrap_or(d.status.replicas);
    if base <= 0 {
        return 0;
    }
    let (whole, base) = (i64::from(set.replicas) * i64::from(d.max_replicas()), i64::from(base));
    // Half is rounded away from zero; nothing here is negative.
    let rounded = (2 * whole + base) / (2 * base);
    i32::try_from(rounded - i64::from(set.replicas)).unwrap_or(i32::MAX)
}

fn push(plan: &mut Plan, set: &Set, to: i32) -> bool {
    set.slot.is_none_or(|slot| {
        plan.push(Step::Scale { set: slot, from: set.replicas, to, available: None })
    })
}
