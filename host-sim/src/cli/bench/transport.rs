//! `picokube bench transport`: what rollouts and idleness cost over plain HTTP/1.1 and over HTTP/2 with TLS,
//! in turns in one run.
//!
//! Bytes are those on the wire, with what TLS adds. The controllers run in processes of their own, which
//! alone are measured; server and nodes of both are in this one.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::super::TransportBenchOptions;
use super::cluster::{Controllers, Site, Transport, Usage};
use super::controllers::{create, delete, update};
use super::process::machine;

const KIB: f64 = 1024.0;
const MEGABYTE: f64 = 1e6;
const DAY: f64 = 86_400.0;
/// As picokube does by default.
const STATUS_LAG: u32 = 100;

/// Measures and prints.
pub(in super::super) async fn transport(options: TransportBenchOptions) -> Result<()> {
    say!("machine: {}", machine());
    let mut trials = Vec::new();
    for transport in Transport::ALL {
        trials.push(Trial::start(transport, &options).await?);
    }
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for trial in &mut trials {
            trial.round(&options).await?;
        }
    }
    for (what, costs) in [
        (format!("a rolling update of {}", options.replicas), Trial::one as fn(&Trial) -> &[Cost]),
        (format!("the same of {} Deployments", options.deployments), Trial::many),
    ] {
        say!("\n{what}, median of {} rounds", options.rounds);
        say!(
            "{:<16} {:>9} {:>10} {:>13} {:>8} {:>16}",
            "",
            "requests",
            "sent KiB",
            "received KiB",
            "CPU s",
            "CPU µs a request"
        );
        for trial in &trials {
            Cost::median(costs(trial)).print(trial.transport.name());
        }
    }
    if options.idle > 0 {
        say!("\nidle, with a Deployment of {}, for {} s", options.replicas, options.idle);
        say!("{:<16} {:>9} {:>10} {:>13} {:>10}", "", "requests", "sent", "received", "MB a day");
        for trial in &trials {
            create(&trial.site, 1, options.replicas).await?;
            trial.site.settle().await;
        }
        let idle = Duration::from_secs(options.idle);
        let begun = trials.iter().map(Trial::mark);
        let begun = futures_util::future::try_join_all(begun).await?;
        tokio::time::sleep(idle).await;
        for (trial, begun) in trials.iter().zip(&begun) {
            let cost = trial.since(begun).await?;
            let a_day = (cost.sent + cost.received) * DAY / begun.at.elapsed().as_secs_f64();
            let (name, requests) = (trial.transport.name(), cost.requests);
            let (sent, received) = (cost.sent, cost.received);
            say!("{name:<16} {requests:>9} {sent:>10} {received:>13} {:>10.2}", a_day / MEGABYTE);
        }
    }
    for trial in trials {
        trial.controllers.stop().await?;
    }
    Ok(())
}

/// Controllers that use this transport.
struct Trial {
    transport: Transport,
    site: Site,
    controllers: Controllers,
    /// Of single updates, and of many at once.
    one: Vec<Cost>,
    many: Vec<Cost>,
}

/// What has been used until a moment.
struct Mark {
    at: Instant,
    requests: u64,
    usage: Usage,
}

impl Trial {
    async fn start(transport: Transport, options: &TransportBenchOptions) -> Result<Self> {
        // A rolling update needs a quarter more, and pods take a moment to go.
        let site = Site::over(transport, 2 * options.deployments * options.replicas).await?;
        let mut arguments = Vec::new();
        if !options.leader_elect {
            arguments.push("--leader-elect=false");
        }
        let controllers =
            Controllers::start_with(&site, options.capacity, STATUS_LAG, &arguments).await?;
        Ok(Self { transport, site, controllers, one: Vec::new(), many: Vec::new() })
    }

    fn one(&self) -> &[Cost] {
        &self.one
    }

    fn many(&self) -> &[Cost] {
        &self.many
    }

    async fn round(&mut self, options: &TransportBenchOptions) -> Result<()> {
        self.one.push(self.rolled(1, options.replicas).await?);
        if options.deployments > 0 {
            self.many.push(self.rolled(options.deployments, options.replicas).await?);
        }
        Ok(())
    }

    /// The cost of an update, without what comes before and after it.
    async fn rolled(&self, deployments: usize, replicas: usize) -> Result<Cost> {
        create(&self.site, deployments, replicas).await?;
        self.site.settle().await;
        let before = self.mark().await?;
        update(&self.site, deployments).await?;
        self.site.settle().await;
        let cost = self.since(&before).await?;
        delete(&self.site, deployments).await?;
        self.site.settle().await;
        Ok(cost)
    }

    async fn mark(&self) -> Result<Mark> {
        let requests = self.site.requests().values().sum();
        Ok(Mark { at: Instant::now(), requests, usage: self.controllers.usage().await? })
    }

    async fn since(&self, before: &Mark) -> Result<Cost> {
        let now = self.mark().await?;
        Ok(Cost {
            requests: now.requests - before.requests,
            sent: (now.usage.sent - before.usage.sent) as f64,
            received: (now.usage.received - before.usage.received) as f64,
            cpu_seconds: now.usage.cpu_seconds - before.usage.cpu_seconds,
        })
    }
}

/// What something has cost. Bytes are those on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cost {
    requests: u64,
    sent: f64,
    received: f64,
    cpu_seconds: f64,
}

impl Cost {
    /// Of each figure the one in the middle; nothing of nothing.
    fn median(all: &[Self]) -> Self {
        let middle = |of: fn(&Self) -> f64| {
            let mut values: Vec<f64> = all.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        Self {
            requests: middle(|cost| cost.requests as f64) as u64,
            sent: middle(|cost| cost.sent),
            received: middle(|cost| cost.received),
            cpu_seconds: middle(|cost| cost.cpu_seconds),
        }
    }

    fn print(&self, name: &str) {
        let Self { requests, sent, received, cpu_seconds } = self;
        let each = cpu_seconds * 1e6 / (*requests).max(1) as f64;
        let (sent, received) = (sent / KIB, received / KIB);
        say!(
            "{name:<16} {requests:>9} {sent:>10.1} {received:>13.1} {cpu_seconds:>8.2} {each:>16.0}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_a_median_of_its_own() {
        let cost = |requests, sent| Cost { requests, sent, ..Cost::default() };
        let all = [cost(3, 10.0), cost(1, 30.0), cost(2, 20.0)];
        assert_eq!(Cost::median(&all), cost(2, 20.0));
        assert_eq!(Cost::median(&[]), Cost::default());
    }
}
