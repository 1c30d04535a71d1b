//! The simulation as a whole.

use super::*;

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..40 {
        let plan = Plan::from_seed(seed);
        let (one, two) = (run(&plan, 0), run(&plan, 0));
        assert_eq!(one.trace.hash(), two.trace.hash(), "seed {seed}");
        assert_eq!(one.trace.count(), two.trace.count(), "seed {seed}");
        assert_eq!(one.counts, two.counts, "seed {seed}");
    }
}

#[test]
fn faults_of_all_sorts_strike() {
    let mut told = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let outcome = run(&Plan::from_seed(seed), usize::MAX);
        for line in outcome.trace.lines().filter(|line| line.actor == Actor::Fault) {
            let words: Vec<&str> = line.text.split(' ').take(3).collect();
            told.insert(words.join(" "));
        }
    }
    for sort in ["the next request", "the next answer", "the controller is", "the link is"] {
        assert!(told.iter().any(|line| line.starts_with(sort)), "{sort}: {told:?}");
    }
}

#[test]
fn a_plan_that_holds_is_not_shrunk() {
    let plan = Plan::from_seed(0);
    let shrunk = shrink(&plan, "a property that nothing violates", 0, 20, |_| {});
    assert_eq!(shrunk.plan.actions.len(), plan.actions.len());
    assert_eq!(shrunk.plan.faults.len(), plan.faults.len());
}
