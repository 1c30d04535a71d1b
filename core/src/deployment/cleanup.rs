//! Removing old ReplicaSets beyond the revision history limit.

use super::plan::{Plan, Step};
use super::view::{SETS, Set, View};
use crate::planted::{Bug, planted};
use crate::sort::heap_sort;
use crate::wire::IntAnnotation;
use core::cmp::Ordering;

/// Plans the deletions: the oldest revisions, except those that still have pods or are not up to
/// date. Returns whether all of it fits into the plan.
pub(super) fn cleanup(view: &View, plan: &mut Plan) -> bool {
    let Some(limit) = view.deployment.revision_history_limit else { return true };
    let excess = view.old_count.saturating_sub(usize::try_from(limit).unwrap_or(0));
    if excess == 0 || planted(Bug::HistoryKept) {
        return true;
    }
    let mut order: heapless::Vec<u8, SETS> = heapless::Vec::new();
    order.extend(view.old_sets().filter(|(_, set)| !set.deleting).map(|(at, _)| at as u8));
    heap_sort(&mut order, |a, b| by_revision(view, *a, *b));
    order
        .iter()
        .take(excess)
        .filter_map(|at| view.sets.get(usize::from(*at)))
        .filter(|set| set.is_idle() && set.up_to_date)
        .all(|set| set.slot.is_none_or(|set| plan.push(Step::Delete { set })))
}

/// By revision; where that is equal or unknown, by creation.
fn by_revision(view: &View, a: u8, b: u8) -> Ordering {
    let revision = |at: u8| match view.sets.get(usize::from(at)).map(|set: &Set| set.revision) {
        Some(IntAnnotation::Value(revision)) => Some(revision),
        Some(IntAnnotation::Absent) => Some(0),
        Some(IntAnnotation::Invalid) | None => None,
    };
    let by_number = match (revision(a), revision(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => Ordering::Equal,
    };
    by_number.then(a.cmp(&b))
}
