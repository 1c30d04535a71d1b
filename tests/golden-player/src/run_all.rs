//! Plays many scenarios over HTTP.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::probe::Probe;
use super::{Client, Report, Scenario, Server, player};

/// Plays scenarios, `jobs` at a time, each in a namespace of its own. `done` hears of each one as
/// it ends; a scenario that could not be played at all is an error. Where Deployments have a
/// controller, a [probe](super::probe) tells when it is the scenario's turn again; else time alone does.
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
            true => Some(Arc::new(Probe::start(&Client::new(server)?, &scenarios).await?)),
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
