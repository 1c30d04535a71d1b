//! Plays a scenario: does its steps, watches what comes of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::client::{Client, Server};
use super::conditions;
use super::kubelet::{Kubelet, Mode};
use super::namespace::Namespace;
use super::node::Node;
use super::normalise::Normaliser;
use super::object::text;
use super::recorder::Recorder;
use super::report::Run;
use super::resource::Resource;
use super::scenario::Scenario;
use super::step::{Operation, Step, Wait};
use super::trace::{finals, trace};

/// How much longer than a step asks for its conditions are waited for: a busy machine is no
/// failure.
const PATIENCE: u32 = 4;

/// Plays a scenario in a namespace of its own.
pub(super) async fn play(server: &Server, scenario: &Scenario) -> Result<Run> {
    let client = Client::new(server)?;
    let namespace = Namespace::create(&client, &scenario.name).await?;
    let played = play_in(&client, &namespace.name, scenario, Detail::Everything).await;
    // A namespace that stays takes nothing away from what was recorded.
    let removed = namespace.remove(&client).await;
    let run = played?;
    removed.with_context(|| format!("cannot remove namespace {}", namespace.name))?;
    Ok(run)
}

/// Plays a scenario in a namespace that is there for it alone, and that stays.
pub async fn play_in(
    client: &Client,
    namespace: &str,
    scenario: &Scenario,
    detail: Detail,
) -> Result<Run> {
    let began = Instant::now();
    let recorder = Arc::new(Recorder::start(client, namespace, &scenario.watch).await?);
    let node = Node::new(client, &recorder, namespace);
    let kubelet = Kubelet::new(node.clone(), recorder.clone(), scenario.kubelet.clone());
    let mut player = Player {
        client,
        namespace,
        recorder: &recorder,
        kubelet: &kubelet,
        node,
        saved: BTreeMap::new(),
        calm: Mutex::new(client.disturbances()),
    };
    let mut answers = Vec::new();
    let mut failures = Vec::new();
    let script = async {
        for (number, step) in scenario.steps.iter().enumerate() {
            let mut answer = player.step(number, step).await;
            if step.is_marked() {
                player.pause(scenario.recording.duration(number)).await;
            }
            answer["step"] = number.into();
            answer["op"] = step.op().into();
            let error = answer.get("error").map(|error| text(error).to_owned());
            answers.push(answer);
            if let Some(error) = error {
                failures.push(format!("step {number} ({}): {error}", step.op()));
                if !step.goes_on {
                    break;
                }
            }
        }
        player.settle(scenario.final_quiet_ms, 60.0).await
    };
    // The kubelet never ends by itself.
    let settled = tokio::select! {
        // In virtual time, a run is the same every time.
        biased;
        settled = script => settled,
        () = kubelet.run() => Err(anyhow!("the watches ended")),
    };
    if let Err(error) = settled {
        failures.push(format!("at the end: {error:#}"));
    }
    let mut objects = Vec::new();
    for resource in &scenario.watch {
        let list = client.get(&resource.collection(namespace)).await?;
        let items = super::object::members(&list.body["items"]).iter();
        objects.extend(items.map(|object| (*resource, object.clone())));
    }
    let seen = recorder.seen();
    failures.extend(seen.broken.clone());
    let normaliser = Normaliser::new(&seen.aliases, namespace)?;
    Ok(Run {
        trace: match detail {
            Detail::Everything => trace(&seen.observations, &seen.markers, &normaliser),
            Detail::Ending => Vec::new(),
        },
        finals: finals(&objects, &normaliser),
        answers: answers.iter().map(|answer| normaliser.value(answer)).collect(),
        failures,
        took: began.elapsed(),
    })
}

/// What is wanted of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Every transition: to be held against a recording.
    Everything,
    /// How it ended.
    Ending,
}

/// Does the steps of a scenario.
pub(super) struct Player<'a> {
    pub(super) client: &'a Client,
    pub(super) namespace: &'a str,
    pub(super) recorder: &'a Recorder,
    pub(super) node: Node,
    pub(super) saved: BTreeMap<String, Value>,
    pub(super) kubelet: &'a Kubelet,
    /// Whether the controllers are there, where anybody knows.
    calm: Mutex<Option<watch::Receiver<bool>>>,
}

impl Player<'_> {
    /// Does a step. What comes back has a `code` if the server was asked something, and an
    /// `error` if the step failed.
    async fn step(&mut self, number: usize, step: &Step) -> Value {
        if step.is_marked() {
            self.recorder.mark(number, &step.source);
        }
        match self.operate(step).await {
            Ok(answer) => answer,
            Err(error) => json!({"error": format!("{error:#}")}),
        }
    }

    /// Waits until nothing has happened for as long as something had taken with the real server, so
    /// that controllers have the time to act that the real ones had; but not for ever.
    pub(super) async fn pause(&self, duration: Duration) {
        let deadline = Instant::now() + duration + Duration::from_secs(1);
        loop {
            self.undisturbed().await;
            let quiet_at = self.recorder.seen().quiet_at(self.recorder.quiet(duration));
            let now = Instant::now();
            if now >= quiet_at || now >= deadline {
                return;
            }
            sleep_until(quiet_at.min(deadline)).await;
        }
    }

    /// Waits until controllers that are known to be away are back. They get the time to act that
    /// others have, even if they were away only while nobody looked.
    async fn undisturbed(&self) {
        let mut calm = match &*self.calm.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(calm) => calm.clone(),
            None => return,
        };
        let was_calm = !calm.has_changed().unwrap_or(false) && *calm.borrow();
        if was_calm {
            return;
        }
        // Nobody tells any more only when all is over.
        let _ = calm.wait_for(|calm| *calm).await;
        self.calm.lock().unwrap_or_else(PoisonError::into_inner).replace(calm);
        self.recorder.stir();
    }

    async fn operate(&mut self, step: &Step) -> Result<Value> {
        match &step.operation {
            Operation::Wait(wait) => self.wait(wait, patience(wait.timeout, 60.0)).await?,
            Operation::Assert(wait) => self.wait(wait, Duration::ZERO).await?,
            Operation::WaitRollout { name, resource, timeout } => {
                let resource = resource.unwrap_or(Resource::Deployments);
                self.wait_for(patience(*timeout, 90.0), |seen| {
                    conditions::look_for_rollout(resource, name, seen)
                })
                .await?;
            }
            Operation::Settle { quiet_ms, timeout } => {
                self.settle(quiet_ms.unwrap_or(600), timeout.unwrap_or(60.0)).await?;
            }
            Operation::Sleep { seconds } => sleep(Duration::from_secs_f64(*seconds)).await,
            Operation::Kubelet(change) => self.kubelet.change(change),
            Operation::Comment => {}
            _ => return self.request(step).await,
        }
        Ok(json!({}))
    }

    async fn wait(&self, wait: &Wait, patience: Duration) -> Result<()> {
        self.wait_for(patience, |seen| conditions::look(wait, seen)).await
    }

    async fn wait_for(
        &self,
        patience: Duration,
        look: impl Fn(&super::recorder::Seen) -> Result<(), String>,
    ) -> Result<()> {
        let mut instead = String::new();
        let found = self
            .recorder
            .until(Instant::now() + patience, |seen| match look(seen) {
                Ok(()) => Some(()),
                Err(other) => {
                    instead = other;
                    None
                }
            })
            .await;
        found.with_context(|| format!("not within {} s: {instead}", patience.as_secs()))
    }

    /// Waits until nothing has happened for a while and the kubelet has nothing left to do.
    async fn settle(&self, quiet_ms: u64, timeout: f64) -> Result<()> {
        let quiet = Duration::from_millis(quiet_ms);
        let deadline = Instant::now() + patience(Some(timeout), timeout);
        let mut changes = self.recorder.changes();
        loop {
            self.undisturbed().await;
            changes.mark_unchanged();
            let settings = self.kubelet.settings();
            let (quiet_at, work) = {
                let seen = self.recorder.seen();
                (seen.quiet_at(self.recorder.quiet(quiet)), settings.work(&seen).len())
            };
            let now = Instant::now();
            let is_idle = settings.mode == Mode::Manual || work == 0;
            if is_idle && quiet_at <= now {
                return Ok(());
            }
            if now >= deadline {
                bail!("not quiet within {timeout} s; the kubelet has {work} things to do");
            }
            // As long as there is work, only a change can bring the quiet that is waited for.
            let wake = if is_idle { quiet_at.min(deadline) } else { deadline };
            tokio::select! {
                biased;
                () = sleep_until(wake) => {}
                changed = changes.changed() => changed?,
            }
        }
    }
}

fn patience(given: Option<f64>, usual: f64) -> Duration {
    Duration::from_secs_f64(given.unwrap_or(usual).max(0.0)) * PATIENCE
}
