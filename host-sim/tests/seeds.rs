//! The simulation holds, seeds that once failed and many others; and it is the same each time.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use mimalloc::MiMalloc;
use picokube::sim::{Actor, Plan, Workload, run};

/// A fifth of what the simulation does is to get and to give back memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How many seeds are run each time. `picokube check` runs more.
const SEEDS: u64 = 2_000;

/// Seeds of all workloads that failed once, and why.
const ONCE_FAILED_WITH_SETS: [(u64, &str); 3] = [
    (3477, "a revision that another controller had told of was deleted as history"),
    (15558, "a revision that was told of late to be nobody's was not adopted"),
    (14007, "a claim was to be given to a pod that had gone meanwhile"),
];

/// Seeds that have shown a bug when users worked with Deployments, and what it was.
const ONCE_FAILED: [(u64, &str); 16] = [
    (2079, "a Deployment that took another one's name was never looked at"),
    (3348, "an old ReplicaSet was scaled by a status that had changed meanwhile"),
    (1336, "ReplicaSets that are adopted late leave one that recreates where it is"),
    (706, "an old ReplicaSet was scaled by what was known before its request had to wait"),
    (9188, "a ReplicaSet got a revision that another one had got while its request had to wait"),
    (5957, "several active ReplicaSets and a new size left one that recreates where it is"),
    (6185, "a ReplicaSet that had the new size before left its Deployment where it is"),
    (313, "a status that was given up arrived after the one that was sent instead"),
    (9510, "a deletion that the server wanted to see again was taken for a decision"),
    (24818, "of two steps of a plan, the second took pods that had become too few after the first"),
    (75988, "a step of a plan gave a ReplicaSet a size that nobody wanted any more"),
    (54897, "a ReplicaSet got a revision that another one had got after the plan was made"),
    (28016, "pods were created although there was no more room to know them"),
    (64731, "a pod was created that had been decided on minutes before and was not wanted"),
    (44440, "an old pod that left its ReplicaSet while being deleted kept others from coming"),
    (27284, "a Deployment that was not up to date used up its retries and was forgotten"),
];

#[test]
fn no_seed_violates_a_property() {
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= SEEDS {
                        return;
                    }
                    if let Some(failure) = failure(seed) {
                        failures.lock().expect("nobody has panicked").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody has panicked");
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn seeds_that_once_failed_hold() {
    let deployments =
        ONCE_FAILED.map(|(seed, bug)| (Plan::of_workload(seed, Workload::Deployments), bug));
    let sets = ONCE_FAILED_WITH_SETS.map(|(seed, bug)| (Plan::from_seed(seed), bug));
    for (plan, bug) in deployments.into_iter().chain(sets) {
        let violation = run(&plan, 0).violation;
        assert!(violation.is_none(), "{bug}: {violation:?}");
    }
}

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
    let mut told = BTreeSet::new();
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

/// What is wrong with a seed, and how to look at it.
fn failure(seed: u64) -> Option<String> {
    let violation = run(&Plan::from_seed(seed), 0).violation?;
    Some(format!("{violation:?}\nsee: picokube check --seed {seed} --trace"))
}
