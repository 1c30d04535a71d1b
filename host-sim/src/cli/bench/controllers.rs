//! `picokube bench controllers`: what Deployments cost, in requests, bytes, CPU time and memory.
//!
//! The controllers run in a process of their own, so that nothing but them is measured; server
//! and nodes are in this one. What the bench itself asks of the server does not count.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::http::Subject;

use super::super::ControllersBenchOptions;
use super::super::inside::{DEPLOYMENTS, is_rolled_out};
use super::cluster::{Controllers, Site, Usage};
use super::process::machine;

const MIB: f64 = 1048576.0;
const KIB: f64 = 1024.0;

/// Measures and prints.
pub(in super::super) async fn controllers(options: ControllersBenchOptions) -> Result<()> {
    say!("machine: {}", machine());
    for status_lag in &options.status_lag {
        say!("\nwith a status that waits for up to {status_lag} ms");
        one_rollout(&options, *status_lag).await?;
        for deployments in &options.deployments {
            round(*deployments, &options, *status_lag).await?;
        }
    }
    Ok(())
}

/// A single rolling update, request by request.
async fn one_rollout(options: &ControllersBenchOptions, status_lag: u32) -> Result<()> {
    let site = Site::start(2 * options.replicas).await?;
    let controllers = Controllers::start(&site, options.capacity, status_lag).await?;
    create(&site, 1, options.replicas).await?;
    site.settle().await;
    let (before, usage) = (site.requests(), controllers.usage().await?);
    update(&site, 1).await?;
    site.settle().await;
    let cost = Cost::between(&before, &usage, &site.requests(), &controllers.usage().await?);
    say!(
        "\none rolling update of {} replicas: {} requests, {} of them conflicts; \
         {:.1} KiB sent, {:.1} KiB received\n",
        options.replicas,
        cost.requests(),
        cost.conflicts(),
        cost.sent / KIB,
        cost.received / KIB
    );
    cost.print_requests();
    controllers.stop().await
}

/// Many Deployments, created, updated and deleted.
async fn round(
    deployments: usize,
    options: &ControllersBenchOptions,
    status_lag: u32,
) -> Result<()> {
    // A rolling update needs a quarter more, and pods take a moment to go.
    let site = Site::start(2 * deployments * options.replicas).await?;
    let controllers = Controllers::start(&site, options.capacity, status_lag).await?;
    say!("\n{deployments} Deployments of {} replicas\n", options.replicas);
    say!(
        "{:<8} {:>8} {:>9} {:>9} {:>13} {:>8}",
        "",
        "seconds",
        "requests",
        "sent KiB",
        "received KiB",
        "CPU s"
    );
    let mut total = Cost::default();
    let mut seconds = 0.0;
    for phase in ["create", "update", "delete"] {
        let (before, usage) = (site.requests(), controllers.usage().await?);
        let started = Instant::now();
        match phase {
            "create" => create(&site, deployments, options.replicas).await?,
            "update" => update(&site, deployments).await?,
            _ => delete(&site, deployments).await?,
        }
        let took = started.elapsed().as_secs_f64();
        site.settle().await;
        let cost = Cost::between(&before, &usage, &site.requests(), &controllers.usage().await?);
        cost.print_row(phase, took);
        seconds += took;
        total.add(&cost);
    }
    total.print_row("all", seconds);
    let usage = controllers.usage().await?;
    say!(
        "\nmemory of the controllers: {:.1} MiB anonymous, {:.1} MiB resident; nothing is left \
         in the cluster\n",
        usage.anonymous as f64 / MIB,
        usage.resident as f64 / MIB
    );
    total.print_requests();
    controllers.stop().await
}

pub(super) async fn create(site: &Site, deployments: usize, replicas: usize) -> Result<()> {
    for index in 0..deployments {
        let name = format!("web-{index}");
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
                },
            },
        });
        site.ask(Method::POST, DEPLOYMENTS, &deployment).await?;
    }
    site.wait("deployments", |all| all.iter().all(is_rolled_out)).await;
    Ok(())
}

pub(super) async fn update(site: &Site, deployments: usize) -> Result<()> {
    let containers = json!([{"name": "app", "image": "app:2"}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    for index in 0..deployments {
        site.ask(Method::PATCH, &format!("{DEPLOYMENTS}/web-{index}"), &patch).await?;
    }
    site.wait("deployments", |all| all.iter().all(is_rolled_out)).await;
    Ok(())
}

pub(super) async fn delete(site: &Site, deployments: usize) -> Result<()> {
    for index in 0..deployments {
        site.ask(Method::DELETE, &format!("{DEPLOYMENTS}/web-{index}"), &json!({})).await?;
    }
    for resource in ["deployments", "replicasets", "pods"] {
        site.wait(resource, <[Value]>::is_empty).await;
    }
    Ok(())
}

/// What something has cost.
#[derive(Default)]
struct Cost {
    answers: BTreeMap<(Subject, u16), u64>,
    sent: f64,
    received: f64,
    cpu_seconds: f64,
}

impl Cost {
    fn between(
        before: &BTreeMap<(Subject, u16), u64>,
        used: &Usage,
        after: &BTreeMap<(Subject, u16), u64>,
        using: &Usage,
    ) -> Self {
        let answers = after.iter().filter_map(|(request, count)| {
            let new = count - before.get(request).copied().unwrap_or(0);
            (new > 0).then_some((*request, new))
        });
        Self {
            answers: answers.collect(),
            sent: (using.sent - used.sent) as f64,
            received: (using.received - used.received) as f64,
            cpu_seconds: using.cpu_seconds - used.cpu_seconds,
        }
    }

    fn add(&mut self, other: &Self) {
        for (request, count) in &other.answers {
            *self.answers.entry(*request).or_default() += count;
        }
        self.sent += other.sent;
        self.received += other.received;
        self.cpu_seconds += other.cpu_seconds;
    }

    fn requests(&self) -> u64 {
        self.answers.values().sum()
    }

    fn conflicts(&self) -> u64 {
        let conflicts = self.answers.iter().filter(|((_, code), _)| *code == 409);
        conflicts.map(|(_, count)| count).sum()
    }

    fn print_row(&self, name: &str, seconds: f64) {
        say!(
            "{name:<8} {seconds:>8.1} {:>9} {:>9.0} {:>13.0} {:>8.2}",
            self.requests(),
            self.sent / KIB,
            self.received / KIB,
            self.cpu_seconds
        );
    }

    fn print_requests(&self) {
        for ((subject, code), count) in &self.answers {
            let Subject { verb, resource, subresource, .. } = subject;
            let slash = if subresource.is_empty() { "" } else { "/" };
            say!("{count:>9}  {verb:<6} {:<24} {code}", format!("{resource}{slash}{subresource}"));
        }
    }
}
