//! Tells when the controllers have done all that they knew of, however slow they are.
//!
//! A Deployment of the probe's own is given a new annotation, and its pod a new readiness. Both go
//! through the controllers as everything else does: the Deployment's watch, its controller, a write
//! to its ReplicaSet; the pod's watch, the ReplicaSet's controller, a status, the ReplicaSet's
//! watch, the Deployment's controller, a status. Work queues are first in, first out: when the
//! probe's change has come out at the end, what was known before it has had its turn.

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
use super::step::PatchKind;

/// Controllers that take longer are not slow, they are gone.
const PATIENCE: Duration = Duration::from_secs(600);

const NAME: &str = "probe";

/// A Deployment that nobody looks at but the player.
#[derive(Debug)]
pub struct Probe {
    client: Client,
    namespace: Namespace,
    recorder: Recorder,
    pod: String,
    round: Mutex<Round>,
}

/// The last time a change went through the controllers.
#[derive(Debug)]
struct Round {
    number: u64,
    began: Instant,
}

impl Probe {
    /// Creates the Deployment and waits for its pod.
    pub async fn start(client: &Client) -> Result<Self> {
        let namespace = Namespace::create(client, NAME).await?;
        let path = Resource::Deployments.collection(&namespace.name);
        let answer = client.post(&path, &deployment()).await?;
        let message = text(&answer.body["message"]);
        ensure!(answer.is_success(), "cannot create the probe: {message}");
        let watched = [Resource::Deployments, Resource::ReplicaSets, Resource::Pods];
        let recorder = Recorder::start(client, &namespace.name, &watched, None).await?;
        let pod = |seen: &Seen| Some(name(seen.objects(Resource::Pods).next()?).to_owned());
        let pod = recorder.until(Instant::now() + PATIENCE, pod).await;
        let pod = pod.with_context(|| no_controllers("made no pod"))?;
        let round = Mutex::new(Round { number: 0, began: Instant::now() });
        Ok(Self { client: client.clone(), namespace, recorder, pod, round })
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
        let outcome = |seen: &Seen| has_passed(seen, round.number).then_some(());
        let passed = self.recorder.until(Instant::now() + PATIENCE, outcome).await;
        passed.with_context(|| no_controllers("did nothing for the probe"))
    }

    /// Removes the Deployment and all that it has.
    pub async fn remove(&self) -> Result<()> {
        self.namespace.remove(&self.client).await
    }

    async fn change(&self, number: u64) -> Result<()> {
        let namespace = &self.namespace.name;
        let ready = if is_ready(number) { "True" } else { "False" };
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let pod = Resource::Pods.subresource(namespace, &self.pod, Some("status"));
        let annotation = json!({"metadata": {"annotations": {NAME: number.to_string()}}});
        let deployment = Resource::Deployments.object(namespace, NAME);
        for (path, patch) in [(pod, status), (deployment, annotation)] {
            let kind = PatchKind::Merge.content_type();
            let answer = self.client.patch(&path, &patch, kind).await?;
            ensure!(answer.is_success(), "{path}: {}", text(&answer.body["message"]));
        }
        Ok(())
    }
}

/// Whether the outcome of this round can be seen.
fn has_passed(seen: &Seen, number: u64) -> bool {
    let told = number.to_string();
    let mut sets = seen.objects(Resource::ReplicaSets);
    let is_told = sets.any(|set| set["metadata"]["annotations"][NAME].as_str() == Some(&*told));
    let deployment = seen.object(Resource::Deployments, NAME);
    let ready = deployment.and_then(|one| one["status"]["readyReplicas"].as_u64()).unwrap_or(0);
    is_told && ready == u64::from(is_ready(number))
}

fn is_ready(number: u64) -> bool {
    !number.is_multiple_of(2)
}

fn no_controllers(what: &str) -> String {
    format!("within {} s the controllers {what}: do they run?", PATIENCE.as_secs())
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {"containers": [{"name": NAME, "image": NAME}]},
            },
        },
    })
}
