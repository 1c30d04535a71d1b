//! The simulation holds with the driver that is shipped inside, over both of its protocols; it is the same
//! each time; and all that can break does.

#[path = "support/coverage.rs"]
mod coverage;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mimalloc::MiMalloc;
use picokube::sim::{Break, Fault, Plan, Protocol, Tally, run};

/// A fifth of what the simulation does is to get and to give back memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How many seeds are run each time, of each protocol. `picokube check --driver` runs more.
const SEEDS: u64 = 60;

const PROTOCOLS: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

/// Tells what a seed came to, for all seeds on all cores.
fn on_all_cores(plans: &[Plan], each: impl Fn(&Plan) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(plan);
                }
            });
        }
    });
}

fn plans(seeds: std::ops::Range<u64>) -> Vec<Plan> {
    let of_seed = |seed| PROTOCOLS.map(|it| Plan::from_seed(seed).with_driver(it));
    seeds.flat_map(of_seed).collect()
}

#[test]
fn no_seed_violates_a_property_and_faults_of_all_sorts_strike() {
    let tally = Mutex::new(Tally::default());
    on_all_cores(&plans(0..SEEDS), |plan| {
        let began = Instant::now();
        let outcome = run(plan, 0);
        tally.lock().expect("nobody has panicked").add(plan.seed, &outcome, began.elapsed());
    });
    let tally = tally.into_inner().expect("nobody has panicked");
    coverage::keep("simulation with the driver that is shipped", &tally);
    let failed = tally.failed.iter().map(|it| format!("seed {}: {:?}", it.seed, it.violation));
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "see `picokube check --driver`: {failed:#?}");
    let of_connections = Break::one_of_each().map(Fault::Connections);
    let all = Fault::one_of_each().into_iter().chain(of_connections);
    let missed: Vec<_> = all.map(Fault::sort).filter(|it| !tally.struck.contains_key(it)).collect();
    assert!(missed.is_empty(), "never struck: {missed:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_the_same_bytes() {
    on_all_cores(&plans(0..8), |plan| {
        let (one, two) = (run(plan, 1), run(plan, 1));
        // The last line is about all bytes that the network has carried.
        let last = |trace: &picokube::sim::Trace| trace.lines().last().map(ToString::to_string);
        assert!(last(&one.trace).is_some_and(|line| line.contains("bytes were read")));
        assert_eq!(last(&one.trace), last(&two.trace), "seed {}", plan.seed);
        assert_eq!(one.trace.hash(), two.trace.hash(), "seed {}", plan.seed);
        assert_eq!(one.counts, two.counts, "seed {}", plan.seed);
    });
}
