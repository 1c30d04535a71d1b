//! Scaling down: condemned pods go, the highest ordinal first.

use crate::planted::{Bug, planted};

use super::plan::{DeleteReason, Plan, Step};
use super::view::View;

/// Plans what becomes of the condemned pods. Whether the sync goes on: with `OrderedReady` only once there
/// are none, since scaling takes precedence over updates.
pub(super) fn process(view: &View<'_>, plan: &mut Plan) -> bool {
    fix_claims(view, plan) && delete(view, plan)
}

/// Claims that are to go with their pods have to belong to them first.
fn fix_claims(view: &View<'_>, plan: &mut Plan) -> bool {
    view.condemned().all(|pod| {
        let (ordinal, slot) = (pod.ordinal(), pod.slot());
        view.claims.are_right(ordinal, true)
            || plan.push(Step::FixClaims { ordinal, pod: slot, is_condemned: true })
    })
}

fn delete(view: &View<'_>, plan: &mut Plan) -> bool {
    let is_monotonic = view.set.is_monotonic();
    // The first pod that is unavailable may go although it is. With OrderedReady no replica is unavailable
    // here, so that it is a condemned one.
    let first_unavailable = view.condemned().rev().find(|pod| pod.is_unavailable());
    for pod in view.condemned() {
        if planted(Bug::ScaledDownFromBelow) && view.condemned().next_back() != Some(pod) {
            continue;
        }
        if pod.is_terminating() {
            if is_monotonic {
                return false;
            }
            continue;
        }
        if is_monotonic && !pod.is_ready_and_available() && Some(pod) != first_unavailable {
            return false;
        }
        if !plan.delete(pod, DeleteReason::Condemned, false) || is_monotonic {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ClaimTable, check, ordered, parallel, plan, steps};
    use super::*;
    use crate::statefulset::Facts;

    /// Upstream's ScaleDown family.
    #[test]
    fn condemned_pods_go_from_the_top() {
        check(&[
            (ordered(1), "u u u", "delete condemned 2"),
            (ordered(0), "u", "delete condemned 0"),
            (ordered(1), "u u ut", ""),
            (ordered(1), "ub u u", ""),
            (ordered(2), "u . u", "create 1u"),
            (parallel(1), "u u u", "delete condemned 2, delete condemned 1"),
            (parallel(1), "ub ut ub", "delete condemned 2"),
            (parallel(0), "ue cet", "delete condemned 0"),
        ]);
    }

    #[test]
    fn an_unavailable_condemned_pod_waits_for_lower_ones() {
        check(&[
            (ordered(1), "u u ub", "delete condemned 2"),
            (ordered(1), "u ub ub", ""),
            (ordered(1), "u ub u", "delete condemned 2"),
            (ordered(1), "u ut ub", ""),
            (ordered(1), "u u ur", "delete condemned 2"),
            (ordered(1), "u ur ur", ""),
        ]);
    }

    #[test]
    fn pods_below_the_start_are_condemned_too() {
        check(&[
            (Facts { start: 2, ..ordered(1) }, "u u u u", "delete condemned 3"),
            (Facts { start: 2, ..ordered(1) }, "u u u", "delete condemned 1"),
            (Facts { start: 1, ..parallel(1) }, "u u u", "delete condemned 2, delete condemned 0"),
        ]);
    }

    /// Scaling takes precedence over updates; with `Parallel` they go side by side.
    #[test]
    fn nothing_is_updated_before_the_last_one_is_gone() {
        check(&[
            (ordered(1), "c c", "delete condemned 1"),
            (ordered(1), "c ct", ""),
            (parallel(1), "c c", "delete condemned 1, delete outdated 0-"),
        ]);
    }

    #[test]
    fn claims_are_handed_over_first() {
        let claims = ClaimTable { wrong: &[1, 2], ..ClaimTable::default() };
        assert_eq!(
            steps(&plan(ordered(1), "u u u", claims)),
            "condemned claims 2, condemned claims 1, delete condemned 2"
        );
        assert_eq!(steps(&plan(parallel(2), "u u ut", claims)), "update 1, condemned claims 2");
        let plan = plan(ordered(1), "u u u", claims);
        let phases: std::vec::Vec<_> = plan.steps.iter().map(Step::phase).collect();
        assert!(phases.is_sorted(), "{phases:?}");
    }
}
