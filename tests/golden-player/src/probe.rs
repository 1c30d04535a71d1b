//! Tells when the controllers have done all that they knew of, however slow they are.
//!
//! A Deployment of the probe's own is given a new annotation, and its pod a new readiness. Both go
//! through the controllers as everything else does: the Deployment's watch, its controller, a write
//! to its ReplicaSet; the pod's watch, the ReplicaSet's controller, a status, the ReplicaSet's
//! watch, the Deployment's controller, a status. Where StatefulSets are played, so has one of the
//! probe's own a new generation and its pod a new readiness, both of which its status tells. Work queues
//! are first in, first out: when the probe's changes have come out at the end, what was known before them
//! has had its turn.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::client::Client;
use super::namespace::Namespace;
use super::object::{name, text};
use super::recorder::{Recorder, Seen};
use super::resource::Resource;
use super::scenario::Scenario;
use super::step::PatchKind;

/// Controllers that take longer are not slow, they are gone.
const PATIENCE: Duration = Duration::from_secs(600);

const NAME: &str = "probe";

/// Workloads that nobody looks at but the player.
#[derive(Debug)]
pub struct Probe {
    client: Client,
    namespace: Namespace,
    recorder: Recorder,
    workloads: &'static [Resource],
    pods: Vec<String>,
    round: Mutex<Round>,
}

/// The last time a change went through the controllers.
#[derive(Debug)]
struct Round {
    number: u64,
    began: Instant,
}

impl Probe {
    /// Creates what goes through the controllers of these scenarios, and waits for its pods.
    pub async fn start(client: &Client, scenarios: &[Scenario]) -> Result<Self> {
        let has_sets = scenarios.iter().any(|one| one.watch.contains(&Resource::StatefulSets));
        let workloads: &[Resource] = match has_sets {
            true => &[Resource::Deployments, Resource::StatefulSets],
            false => &[Resource::Deployments],
        };
        let namespace = Namespace::create(client, NAME).await?;
        for workload in workloads {
            let path = workload.collection(&namespace.name);
            let answer = client.post(&path, &manifest(*workload)).await?;
            let message = text(&answer.body["message"]);
            ensure!(answer.is_success(), "{path}: cannot create the probe: {message}");
        }
        let watched = [&[Resource::ReplicaSets, Resource::Pods], workloads].concat();
        let recorder = Recorder::start(client, &namespace.name, &watched, None).await?;
        let pods = |seen: &Seen| {
            let pods: Vec<String> =
                seen.objects(Resource::Pods).map(|pod| name(pod).to_owned()).collect();
            (pods.len() == workloads.len()).then_some(pods)
        };
        let pods = recorder.until(Instant::now() + PATIENCE, pods).await;
        let pods = pods.with_context(|| no_controllers("made no pods for the probe"))?;
        let round = Mutex::new(Round { number: 0, began: Instant::now() });
        Ok(Self { client: client.clone(), namespace, recorder, workloads, pods, round })
    }

    /// Waits until a change that was made after this call has gone through the controllers. Many
    /// who wait at the same time share one.
    pub async fn pass(self: &Arc<Self>) -> Result<()> {
        let (probe, asked) = (self.clone(), Instant::now());
        // A round goes on when nobody waits any more: half of its change would confuse the next.
        tokio::spawn(async move { probe.go_round(asked).await }).await?
    }

    async fn go_round(&self, asked: Instant) -> Result<()> {
        let mut round = self.round.lock().await;
        if round.began > asked {
            return Ok(());
        }
        *round = Round { number: round.number + 1, began: Instant::now() };
        self.change(round.number).await?;
        let outcome = |seen: &Seen| {
            let have_passed = self.workloads.iter().all(|one| has_passed(seen, *one, round.number));
            have_passed.then_some(())
        };
        let passed = self.recorder.until(Instant::now() + PATIENCE, outcome).await;
        passed.with_context(|| no_controllers("did nothing for the probe"))
    }

    /// Removes it and all that it has.
    pub async fn remove(&self) -> Result<()> {
        self.namespace.remove(&self.client).await
    }

    async fn change(&self, number: u64) -> Result<()> {
        let namespace = &self.namespace.name;
        let ready = if is_ready(number) { "True" } else { "False" };
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let status = json!({"status": {"phase": "Running", "conditions": conditions}});
        let pods = self.pods.iter().map(|pod| {
            (Resource::Pods.subresource(namespace, pod, Some("status")), status.clone())
        });
        let workloads =
            self.workloads.iter().map(|one| (one.object(namespace, NAME), change_of(*one, number)));
        for (path, patch) in pods.chain(workloads) {
            let kind = PatchKind::Merge.content_type();
            let answer = self.client.patch(&path, &patch, kind).await?;
            ensure!(answer.is_success(), "{path}: {}", text(&answer.body["message"]));
        }
        Ok(())
    }
}

/// What tells the controllers of a round: an annotation that ReplicaSets are given, too; a new generation.
fn change_of(workload: Resource, number: u64) -> Value {
    match workload {
        Resource::StatefulSets => {
            json!({"spec": {"revisionHistoryLimit": history_limit(number)}})
        }
        _ => json!({"metadata": {"annotations": {NAME: number.to_string()}}}),
    }
}

/// Whether the outcome of this round can be seen.
fn has_passed(seen: &Seen, workload: Resource, number: u64) -> bool {
    let Some(object) = seen.object(workload, NAME) else { return false };
    let is_told = match workload {
        Resource::StatefulSets => {
            object["spec"]["revisionHistoryLimit"] == history_limit(number)
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        }
        _ => {
            let told = number.to_string();
            let mut sets = seen.objects(Resource::ReplicaSets);
            sets.any(|set| set["metadata"]["annotations"][NAME].as_str() == Some(&*told))
        }
    };
    let ready = object["status"]["readyReplicas"].as_u64().unwrap_or(0);
    is_told && ready == u64::from(is_ready(number))
}

/// Another one each time.
fn history_limit(number: u64) -> u64 {
    10 + number % 2
}

fn is_ready(number: u64) -> bool {
    !number.is_multiple_of(2)
}

fn no_controllers(what: &str) -> String {
    format!("within {} s the controllers {what}: do they run?", PATIENCE.as_secs())
}

fn manifest(workload: Resource) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": workload.kind(),
        "metadata": {"name": NAME},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": workload.kind()}},
            "template": {
                "metadata": {"labels": {"app": workload.kind()}},
                "spec": {"containers": [{"name": NAME, "image": NAME}]},
            },
        },
    })
}
