//! Golden scenarios: recordings of the real controllers, and a player that repeats them.
//!
//! Each directory in `tests/golden` has the steps of a scenario and what happened when the real
//! API server and controllers went through them. [`run_all`] goes through the same steps with any API
//! server and whatever controllers act on it, and compares. Neither server nor controllers are
//! started here: the same scenarios serve a simulator, a board, and a [simulation](direct) in
//! virtual time.
//!
//! A [`Scenario`] is read from its directory; the player does its [steps](step) over HTTP while a
//! [recorder] watches and a fake [kubelet] moves the pods. What was seen becomes a [trace] of
//! [projections](project) with [names](alias) that are the same in every run. A [`Report`] holds
//! its [facets] against those of the recording.

pub mod alias;
pub mod client;
pub mod conditions;
pub mod diff;
pub mod direct;
pub mod facets;
pub mod invariants;
pub mod kubelet;
pub mod namespace;
pub mod node;
pub mod normalise;
pub mod object;
mod placeholders;
mod player;
pub mod probe;
pub mod project;
pub mod recorder;
pub mod report;
mod requests;
pub mod resource;
pub mod scenario;
pub mod step;
pub mod suite;
pub mod trace;

#[cfg(test)]
mod recordings;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use client::{Client, Server};
pub use player::{Detail, play_in};
use probe::Probe;
pub use report::Report;
pub use scenario::Scenario;

/// Facets that were the same in all recorded runs although a race decides: scenario and facet.
///
/// `d-rollover`: whether the new ReplicaSet has reported its first two pods before it is scaled
/// again. It has in `d-pause-resume`, where the same happens; ours always lets it report first.
///
/// `s-partition`, `s-scale-down-unhealthy`: a pod is deleted without grace, which the watch tells in two
/// events at once. Kubernetes writes a status between them; ours often has read both before it looks.
pub const RACES: [(&str, &str); 3] = [
    ("d-rollover", "strict-ReplicaSet"),
    ("s-partition", "strict-StatefulSet"),
    ("s-scale-down-unhealthy", "strict-StatefulSet"),
];

/// Where the scenarios are.
pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../golden")
}

/// Plays scenarios, `jobs` at a time, each in a namespace of its own. `done` hears of each one as
/// it ends; a scenario that could not be played at all is an error. Where Deployments have a
/// controller, a [probe] tells when it is the scenario's turn again; else time alone does.
pub fn run_all(
    server: &Server,
    scenarios: Vec<Scenario>,
    jobs: usize,
    has_controllers: bool,
    mut done: impl FnMut(&str, Result<Report>),
) -> Result<()> {
    let turns = Arc::new(Semaphore::new(jobs.max(1)));
    runtime()?.block_on(async {
        let probe = match has_controllers {
            true => Some(Arc::new(Probe::start(&Client::new(server)?).await?)),
            false => None,
        };
        let mut playing = JoinSet::new();
        for scenario in scenarios {
            // Taken here, so that scenarios begin in order.
            let turn = turns.clone().acquire_owned().await?;
            while let Some(ended) = playing.try_join_next() {
                let (name, report): (String, _) = ended?;
                done(&name, report);
            }
            let (server, probe) = (server.clone(), probe.clone());
            playing.spawn(async move {
                let report = play(&server, &scenario, probe).await;
                drop(turn);
                (scenario.name, report)
            });
        }
        while let Some(ended) = playing.join_next().await {
            let (name, report) = ended?;
            done(&name, report);
        }
        match probe {
            Some(probe) => probe.remove().await,
            None => Ok(()),
        }
    })
}

async fn play(server: &Server, scenario: &Scenario, probe: Option<Arc<Probe>>) -> Result<Report> {
    let run = player::play(server, scenario, probe).await;
    let run = run.with_context(|| format!("cannot play {}", scenario.name))?;
    Ok(Report::new(scenario, run))
}

fn runtime() -> Result<runtime::Runtime> {
    Ok(runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
