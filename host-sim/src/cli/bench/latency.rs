//! `picokube bench latency`: how long people wait for a Deployment, with statuses that wait for each other
//! and with those that do not, in turns in one run.

use std::time::Instant;

use anyhow::Result;

use super::super::LatencyBenchOptions;
use super::cluster::{Controllers, Site};
use super::controllers::{create, delete, update};
use super::process::machine;

/// Replicas of the Deployment that becomes available, and of the one that is rolled.
const NEW: usize = 3;
const ROLLED: usize = 10;

/// Measures and prints.
pub(in super::super) async fn latency(options: LatencyBenchOptions) -> Result<()> {
    say!("machine: {}", machine());
    let mut trials = Vec::new();
    for status_lag in [0, options.status_lag] {
        trials.push(Trial::start(status_lag, &options).await?);
    }
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for trial in &mut trials {
            trial.round().await?;
        }
    }
    say!(
        "\n{:<20} {:>22} {:>22} {:>10}",
        "median of",
        format!("{NEW} pods available"),
        format!("{ROLLED} pods rolled"),
        "requests"
    );
    for trial in &mut trials {
        let [available, rolled, requests] = trial.medians();
        let name = format!("a lag of {} ms", trial.status_lag);
        say!("{name:<20} {available:>19.1} ms {rolled:>19.1} ms {requests:>10}");
    }
    for trial in trials {
        trial.controllers.stop().await?;
    }
    Ok(())
}

/// Controllers whose statuses may wait for so long.
struct Trial {
    status_lag: u32,
    site: Site,
    controllers: Controllers,
    /// Milliseconds until a new Deployment was available.
    available: Vec<f64>,
    /// Milliseconds until a new template was everywhere, and requests until all was quiet.
    rolled: Vec<f64>,
    requests: Vec<f64>,
}

impl Trial {
    async fn start(status_lag: u32, options: &LatencyBenchOptions) -> Result<Self> {
        let site = Site::start(4 * ROLLED).await?.watched_closely();
        let controllers = Controllers::start(&site, options.capacity, status_lag).await?;
        let (available, rolled, requests) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { status_lag, site, controllers, available, rolled, requests })
    }

    async fn round(&mut self) -> Result<()> {
        let site = &self.site;
        let begun = Instant::now();
        create(site, 1, NEW).await?;
        self.available.push(begun.elapsed().as_secs_f64() * 1e3);
        delete(site, 1).await?;
        create(site, 1, ROLLED).await?;
        site.settle().await;
        let before: u64 = site.requests().values().sum();
        let begun = Instant::now();
        update(site, 1).await?;
        self.rolled.push(begun.elapsed().as_secs_f64() * 1e3);
        site.settle().await;
        let after: u64 = site.requests().values().sum();
        self.requests.push((after - before) as f64);
        delete(site, 1).await?;
        site.settle().await;
        Ok(())
    }

    fn medians(&mut self) -> [f64; 3] {
        [&mut self.available, &mut self.rolled, &mut self.requests].map(|all| median(all))
    }
}

/// The one in the middle; nothing of nothing.
fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [5.0]), 5.0);
        assert_eq!(median(&mut []), 0.0);
    }
}
