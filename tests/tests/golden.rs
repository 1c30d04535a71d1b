//! The golden scenarios, played against `picokube up`.
//!
//! Environment:
//!
//! | variable | meaning |
//! |---|---|
//! | `PICOKUBE_GOLDEN_ONLY` | names of scenarios, with commas between; `*` at the end for all that begin so |
//! | `PICOKUBE_GOLDEN_BASE` | a running API server, with controllers, that leaves pods alone |
//! | `PICOKUBE_GOLDEN_TOKEN` | the bearer token it wants |
//! | `PICOKUBE_GOLDEN_JOBS` | how many scenarios are played at a time |
//! | `PICOKUBE_GOLDEN_OUT` | a directory for what happened, in the form of recordings |

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;

use picokube_tests::golden::{self, Scenario, Server};
use picokube_tests::picokube::Picokube;

#[test]
fn every_sort_of_step_goes_as_it_should_without_controllers() {
    play(&["x-"], &["--manual", "--no-controllers"]);
}

#[test]
fn deployments_and_replica_sets_behave_as_recorded() {
    play(&["d-", "rs-"], &["--manual"]);
}

#[test]
fn deployments_that_count_terminating_replicas_behave_as_recorded() {
    let gate = "DeploymentReplicaSetTerminatingReplicas=true";
    play(&["dt-"], &["--manual", "--feature-gates", gate]);
}

/// How often a scenario is played in which nothing is wrong but a question of timing.
const TRIES: usize = 3;

/// Facets that were the same in all recorded runs although a race decides: scenario and facet.
///
/// `d-rollover`: whether the new ReplicaSet has reported its first two pods before it is scaled
/// again. It has in `d-pause-resume`, where the same happens; ours always lets it report first.
const RACES: [(&str, &str); 1] = [("d-rollover", "strict-ReplicaSet")];

/// Plays the scenarios of these families that are wanted.
fn play(families: &[&str], options: &[&str]) {
    let only = env::var("PICOKUBE_GOLDEN_ONLY").unwrap_or("*".to_owned());
    let is_wanted = |name: &str| only.split(',').any(|pattern| matches(pattern, name));
    let in_families = |name: &str| families.iter().any(|family| name.starts_with(family));
    let scenarios = Scenario::load_all(&golden::directory(), is_wanted).unwrap();
    assert!(!scenarios.is_empty(), "no scenario is called {only}");
    let scenarios: Vec<Scenario> =
        scenarios.into_iter().filter(|scenario| in_families(&scenario.name)).collect();
    if scenarios.is_empty() {
        return;
    }
    let (server, _picokube) = server(options);
    let jobs = env::var("PICOKUBE_GOLDEN_JOBS").map_or(8, |jobs| jobs.parse().expect("a number"));
    let out = env::var("PICOKUBE_GOLDEN_OUT").ok();
    let count = scenarios.len();
    let mut failures = BTreeMap::new();
    let mut waiting = scenarios;
    for attempt in 1..=TRIES {
        let mut again = BTreeSet::new();
        // Those that are played again have the machine to themselves.
        let jobs = if attempt == 1 { jobs } else { 1 };
        golden::run_all(&server, waiting.clone(), jobs, |name, report| {
            let report = report.map(|mut report| {
                RACES.iter().filter(|race| race.0 == name).for_each(|race| report.let_go(race.1));
                report
            });
            let told = match &report {
                Ok(report) => report.to_string(),
                Err(error) => format!("{name}: {error:#}"),
            };
            eprintln!("{told}");
            let Ok(report) = report else {
                failures.insert(name.to_owned(), told);
                return;
            };
            if let Some(out) = &out {
                report.save(&Path::new(out).join(name)).expect("a directory to write to");
            }
            if report.is_success() {
                return;
            }
            if attempt < TRIES && report.is_question_of_timing() {
                again.insert(name.to_owned());
            } else {
                failures.insert(name.to_owned(), told);
            }
        })
        .unwrap();
        waiting.retain(|scenario| again.contains(&scenario.name));
    }
    let told: Vec<String> = failures.into_values().collect();
    assert!(told.is_empty(), "{} of {count} failed:\n{}", told.len(), told.join("\n"));
}

/// The server to play against, and the process it is, if we have started it.
fn server(options: &[&str]) -> (Server, Option<Picokube>) {
    if let Ok(base) = env::var("PICOKUBE_GOLDEN_BASE") {
        let token = env::var("PICOKUBE_GOLDEN_TOKEN").ok();
        return (Server { token, ..Server::new(base) }, None);
    }
    let picokube = Picokube::up(options).unwrap();
    (Server::new(picokube.base()), Some(picokube))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}
