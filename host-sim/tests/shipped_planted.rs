//! The simulation with the driver that is shipped inside finds mistakes that were planted into the driver.
//!
//! As with those in the controllers: one at a time, from several beginnings, until a property does not
//! hold; the same seed without the bug must be clean.

use std::thread;

use mimalloc::MiMalloc;
use picokube::sim::{Plan, Protocol, run};
use picokube_driver::planted::{Bug, select};

/// A fifth of what the simulation does is to get and to give back memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Every bug is found within so many seeds, from every beginning.
const MOST_SEEDS: u64 = 150;

/// Where searches begin: they do not overlap.
const BEGINNINGS: [u64; 3] = [1_000, 1_150, 1_300];

/// One test: which bug is there holds for the whole process.
#[test]
fn every_planted_bug_of_the_driver_is_found() {
    let mut missed = Vec::new();
    println!("| bug | over | property that caught it | seeds |");
    println!("| --- | --- | --- | --- |");
    let of_http1 = Bug::OF_HTTP1.map(|bug| (bug, Protocol::Http1));
    let of_http2 = Bug::OF_HTTP2.map(|bug| (bug, Protocol::Http2));
    for (bug, protocol) in of_http1.into_iter().chain(of_http2) {
        select(Some(bug));
        let found: Vec<(u64, &str)> = thread::scope(|scope| {
            let searches = BEGINNINGS.map(|from| scope.spawn(move || search(from, protocol)));
            searches.into_iter().filter_map(|search| search.join().unwrap()).collect()
        });
        select(None);
        for (seed, _) in &found {
            let clean = run(&plan(*seed, protocol), 0).violation;
            assert!(clean.is_none(), "seed {seed} fails without {bug:?}, too: {clean:?}");
        }
        if found.len() < BEGINNINGS.len() {
            missed.push((bug, protocol));
        }
        let mut properties: Vec<&str> = found.iter().map(|(_, property)| *property).collect();
        properties.sort_unstable();
        properties.dedup();
        let seeds: Vec<String> = found.iter().map(|(seed, _)| seed.to_string()).collect();
        println!("| {bug:?} | {protocol:?} | {} | {} |", properties.join("; "), seeds.join(", "));
    }
    assert!(missed.is_empty(), "not found within {MOST_SEEDS} seeds: {missed:?}");
}

fn plan(seed: u64, protocol: Protocol) -> Plan {
    Plan::from_seed(seed).with_driver(protocol)
}

fn search(from: u64, protocol: Protocol) -> Option<(u64, &'static str)> {
    (from..from + MOST_SEEDS).find_map(|seed| {
        let violation = run(&plan(seed, protocol), 0).violation?;
        Some((seed, violation.property))
    })
}
