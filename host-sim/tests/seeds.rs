//! The simulation holds, for plans that once failed and for seeds that nobody has tried; and it is the same
//! each time.
//!
//! The seeds follow from the commit; `PICOKUBE_SEEDS` names others. The plans are in `plans`, each with a
//! word on what it has found: they stay as they are whatever seeds are drawn into.

#[path = "support/commit.rs"]
mod commit;
#[path = "support/coverage.rs"]
mod coverage;

use std::collections::{HashMap, HashSet};
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mimalloc::MiMalloc;
use picokube::sim::{Actor, Failure, Fault, Plan, Tally, Timed, run, shrink};
use serde_json::Value;

/// A fifth of what the simulation does is to get and to give back memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How many seeds are run each time, other ones for each commit. `picokube check` runs more.
const SEEDS: u64 = 2_000;

/// Likewise, of those with an election.
const ELECTIONS: u64 = 150;

/// How often a plan is run to make it smaller.
const SHRINKING_RUNS: usize = 200;

#[test]
fn no_seed_violates_a_property() {
    let (first, repeat) = commit::beginning("PICOKUBE_SEEDS");
    println!("seeds from {first} on; again: {repeat} cargo test -p picokube --test seeds");
    let everything: Vec<Plan> = (first..first + SEEDS).map(Plan::from_seed).collect();
    let elections: Vec<Plan> = (first..first + ELECTIONS).map(Plan::with_election).collect();
    let mut failures = failures("simulation", &everything);
    failures.extend(self::failures("simulation, elections", &elections));
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Runs all of these; of each that fails the least is kept for whoever looks.
fn failures(name: &str, plans: &[Plan]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let outcome = run(plan, 0);
                    let mut tally = tally.lock().expect("nobody has panicked");
                    tally.add(plan.seed, &outcome, began.elapsed());
                }
            });
        }
    });
    let tally = tally.into_inner().expect("nobody has panicked");
    coverage::keep(name, &tally);
    let failed = |Failure { seed, .. }: &Failure| {
        let plan = plans.iter().find(|plan| plan.seed == *seed).expect("one of these");
        story(plan)
    };
    tally.failed.iter().map(failed).collect()
}

#[test]
fn plans_that_once_failed_hold() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let files = std::fs::read_dir(directory).expect("the plans");
    let files: Vec<PathBuf> = files.map(|file| file.expect("a plan").path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a plan");
        let plan = Plan::from_text(&text).expect("a plan");
        let why: Value = serde_json::from_str(&text).expect("a plan");
        let why = why["why"].as_str().expect("what the plan has found");
        let violation = run(&plan, 0).violation;
        assert!(violation.is_none(), "{}: {why}: {violation:?}", file.display());
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

/// Those of elections strike where there is one.
#[test]
fn faults_of_all_sorts_strike() {
    let mut drawn = HashMap::new();
    let mut struck = HashSet::new();
    let plans = (0..150).map(Plan::from_seed);
    for plan in plans.chain((0..30).map(Plan::with_election)) {
        let outcome = run(&plan, usize::MAX);
        let told = outcome.trace.lines().filter(|line| line.actor == Actor::Fault);
        let told: HashSet<&str> = told.map(|line| line.text.as_str()).collect();
        for Timed { what: fault, .. } in &plan.faults {
            drawn.entry(discriminant(fault)).or_insert(*fault);
            if told.contains(fault.to_string().as_str()) {
                struck.insert(discriminant(fault));
            }
        }
    }
    assert_eq!(drawn.len(), Fault::SORTS + Fault::SORTS_OF_ELECTIONS, "every sort is drawn");
    let missed: Vec<_> =
        drawn.iter().filter(|(sort, _)| !struck.contains(sort)).map(|(_, fault)| fault).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// What is wrong with a plan that fails, and how to look at it.
fn story(plan: &Plan) -> String {
    let violation = run(plan, 0).violation.expect("the same seed is the same run");
    let shrunk = shrink(plan, violation.property, 0, SHRINKING_RUNS, |_| {});
    let election = if plan.shape.election.is_some() { "-with-election" } else { "" };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}{election}.json", plan.seed));
    std::fs::write(&file, shrunk.plan.to_text()).expect("a place for a plan");
    format!("{violation:?}\nsee: picokube check --trace --plan {}", file.display())
}
