//! The simulation as a whole.

use super::*;

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..40 {
        let plan = Plan::from_seed(seed);
        let (one, two) = (run(&plan, 0), run(&plan, 0));
        assert_eq!(one.trace.hash(), two.trace.hash(), "seed {seed}");
        assert_eq!(one.trace.count(), two.trace.count(), "seed {seed}");
    }
}

#[test]
fn seeds_hold() {
    for seed in 0..200 {
        let outcome = run(&Plan::from_seed(seed), 40);
        if let Some(violation) = outcome.violation {
            for line in outcome.trace.lines() {
                println!("{line}");
            }
            panic!("seed {seed}: {violation:?}");
        }
    }
}
