//! The simulation as a whole.

use super::*;

#[test]
fn a_plan_that_holds_is_not_shrunk() {
    let plan = Plan::from_seed(0);
    let shrunk = shrink(&plan, "a property that nothing violates", 0, 20, |_| {});
    assert_eq!(shrunk.plan.actions.len(), plan.actions.len());
    assert_eq!(shrunk.plan.faults.len(), plan.faults.len());
}
