//! Scaling down: condemned pods go, the highest ordinal first.

use super::plan::{DeleteReason, Plan, Step};
use super::view::{PodFacts, View};

/// Plans what becomes of the condemned pods. Whether the sync goes on: with `OrderedReady` only once there
/// are none, since scaling takes precedence over updates.
pub(super) fn process(view: &View<'_>, plan: &mut Plan) -> bool {
    fix_claims(view, plan) && delete(view, plan)
}

/// Claims that are to go with their pods have to belong to them first.
fn fix_claims(view: &View<'_>, plan: &mut Plan) -> bool {
    view.condemned().all(|pod| {
        let PodFacts { ordinal, slot, .. } = *pod;
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
