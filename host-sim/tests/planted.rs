//! The simulation finds every mistake that was planted into the controllers on purpose.
//!
//! A bug is looked for in several places, one seed after the other, until a property does not
//! hold. The same seed without the bug must be clean: it is the bug that was found.

use std::cmp::Reverse;
use std::thread;
use std::time::Instant;

use mimalloc::MiMalloc;
use picokube::sim::{Plan, run};
use picokube_core::planted::{Bug, select};

/// A fifth of what the simulation does is to get and to give back memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Every bug is found within so many seeds, from every beginning.
const MOST_SEEDS: u64 = 400;

/// Where searches begin, as many as `PICOKUBE_BEGINNINGS` says: they do not overlap.
const BEGINNINGS: [u64; 5] = [0, 400, 800, 1_200, 1_600];

/// From so many beginnings without being asked.
const USUAL_BEGINNINGS: usize = 2;

/// A search that has come to an end.
struct Found {
    seed: u64,
    property: &'static str,
    /// How many seeds it took.
    seeds: u64,
}

/// One test: which bug is there holds for the whole process.
#[test]
fn every_planted_bug_is_found() {
    let asked = std::env::var("PICOKUBE_BEGINNINGS").ok();
    let count = asked.map_or(USUAL_BEGINNINGS, |count| count.parse().expect("PICOKUBE_BEGINNINGS"));
    assert!((1..=BEGINNINGS.len()).contains(&count), "PICOKUBE_BEGINNINGS: 1 to 5, not {count}");
    let beginnings = &BEGINNINGS[..count];
    let mut missed = Vec::new();
    println!("| bug | property that caught it | median of seeds | most |");
    println!("| --- | --- | --: | --: |");
    let everywhere = Bug::ALL.map(|bug| (bug, Plan::from_seed as fn(u64) -> Plan));
    let of_elections = Bug::OF_ELECTIONS.map(|bug| (bug, Plan::with_election as fn(u64) -> Plan));
    for (bug, plan) in everywhere.into_iter().chain(of_elections) {
        let start = Instant::now();
        select(Some(bug));
        let mut found: Vec<Found> = thread::scope(|scope| {
            let begin = |beginning: &u64| {
                let beginning = *beginning;
                scope.spawn(move || search(beginning, plan))
            };
            let searches: Vec<_> = beginnings.iter().map(begin).collect();
            searches.into_iter().filter_map(|search| search.join().unwrap()).collect()
        });
        select(None);
        for Found { seed, .. } in &found {
            let clean = run(&plan(*seed), 0).violation;
            assert!(clean.is_none(), "seed {seed} fails without {bug:?}, too: {clean:?}");
        }
        if found.len() < beginnings.len() {
            missed.push(bug);
        }
        found.sort_by_key(|found| found.seeds);
        let [median, most] = [found.len() / 2, found.len().saturating_sub(1)]
            .map(|at| found.get(at).map_or(MOST_SEEDS, |found| found.seeds));
        let seconds = start.elapsed().as_secs();
        println!("| {bug:?} | {} | {median} | {most} | ({seconds} s)", properties(&found));
    }
    assert!(missed.is_empty(), "not found within {MOST_SEEDS} seeds: {missed:?}");
}

fn search(beginning: u64, plan: fn(u64) -> Plan) -> Option<Found> {
    (1..=MOST_SEEDS).find_map(|seeds| {
        let seed = beginning + seeds - 1;
        let violation = run(&plan(seed), 0).violation?;
        Some(Found { seed, property: violation.property, seeds })
    })
}

/// The properties that caught a bug, those first that did so most often.
fn properties(found: &[Found]) -> String {
    let mut counts: Vec<(usize, &str)> = Vec::new();
    for Found { property, .. } in found {
        match counts.iter_mut().find(|(_, known)| known == property) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, property)),
        }
    }
    counts.sort_by_key(|(count, _)| Reverse(*count));
    let names: Vec<&str> = counts.into_iter().map(|(_, property)| property).collect();
    names.join("; ")
}
