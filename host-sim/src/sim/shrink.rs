//! Fewer steps that still fail: what is needed for a violation, and nothing else.

use super::plan::Plan;
use super::world::{Outcome, run};

/// A failing plan that cannot do without any of its parts.
#[derive(Debug)]
pub struct Shrunk {
    /// The plan.
    pub plan: Plan,
    /// What it leads to.
    pub outcome: Outcome,
    /// How many runs that took.
    pub runs: usize,
}

/// Leaves out actions and faults as long as the same property is violated. `most` runs at most;
/// `progress` is told how many parts are left.
pub fn shrink(
    plan: &Plan,
    property: &str,
    keep: usize,
    most: usize,
    mut progress: impl FnMut(usize),
) -> Shrunk {
    let mut runs = 0;
    let mut best = plan.clone();
    let fails = |plan: &Plan, runs: &mut usize| {
        *runs += 1;
        run(plan, 0).violation.is_some_and(|violation| violation.property == property)
    };
    // Halves first, then ever smaller pieces, until single ones are all needed.
    let mut size = parts(&best).div_ceil(2);
    while size > 0 && runs < most {
        let mut at = 0;
        let mut found = false;
        while at < parts(&best) && runs < most {
            let candidate = without(&best, at, size);
            if fails(&candidate, &mut runs) {
                best = candidate;
                found = true;
                progress(parts(&best));
            } else {
                at += size;
            }
        }
        if size == 1 && !found {
            break;
        }
        size = if size == 1 { 1 } else { size / 2 };
    }
    let outcome = run(&best, keep);
    Shrunk { plan: best, outcome, runs: runs + 1 }
}

fn parts(plan: &Plan) -> usize {
    plan.actions.len() + plan.faults.len()
}

/// The plan without `size` of its parts from `at` on; faults come first.
fn without(plan: &Plan, at: usize, size: usize) -> Plan {
    let mut smaller = plan.clone();
    let left_out = at..at + size;
    let faults = plan.faults.len();
    let mut index = 0;
    smaller.faults.retain(|_| {
        index += 1;
        !left_out.contains(&(index - 1))
    });
    let mut index = faults;
    smaller.actions.retain(|_| {
        index += 1;
        !left_out.contains(&(index - 1))
    });
    smaller
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_left_out_in_order() {
        let plan = (0..).map(Plan::from_seed).find(|plan| plan.faults.len() > 2);
        let plan = plan.expect("a plan with faults");
        let all = parts(&plan);
        for at in 0..all {
            let smaller = without(&plan, at, 1);
            assert_eq!(parts(&smaller), all - 1);
            assert_eq!(smaller.faults.len() < plan.faults.len(), at < plan.faults.len());
        }
    }
}
