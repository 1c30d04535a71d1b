//! Plays a scenario: does its steps, watches what comes of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::client::Client;
use super::conditions;
use super::kubelet::{Kubelet, Mode};
#[cfg(feature = "over-http")]
use super::namespace::Namespace;
use super::node::Node;
use super::normalise::Normaliser;
use super::object::text;
use super::probe::Probe;
use super::recorder::Recorder;
use super::refusals;
use super::report::Run;
use super::resource::Resource;
use super::scenario::Scenario;
use super::step::{Operation, Step, Wait};
use super::trace::{finals, trace};
use super::whole::whole;

/// How much longer than a step asks for its conditions are waited for: a busy machine is no
/// failure.
const PATIENCE: u32 = 10;
/// How long nothing must happen after as many refusals as were recorded: much less than until the next one.
const AFTER_REFUSALS: u64 = 600;
/// So much of a second is left when pods are created.
const ENOUGH: Duration = Duration::from_millis(800);
/// How long the pause after a step may last at most: some controllers are never quiet.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Plays a scenario in a namespace of its own.
#[cfg(feature = "over-http")]
pub(super) async fn play(
    server: &super::Server,
    scenario: &Scenario,
    probe: Option<Arc<Probe>>,
) -> Result<Run> {
    let client = Client::new(server)?;
    let namespace = Namespace::create(&client, &scenario.name).await?;
    let played = play_in(&client, &namespace.name, scenario, Detail::Everything, probe).await;
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
    probe: Option<Arc<Probe>>,
) -> Result<Run> {
    let began = Instant::now();
    let recorder = Arc::new(Recorder::start(client, namespace, &scenario.watch, probe).await?);
    let node = Node::new(client, &recorder, namespace);
    let kubelet = Kubelet::new(node.clone(), recorder.clone(), scenario.kubelet.clone());
    let mut player = Player {
        client,
        namespace,
        scenario,
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
        ended = kubelet.run() => ended.map(|never| match never {}),
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
        objects: match detail {
            Detail::Everything => whole(&objects, &normaliser),
            Detail::Ending => Vec::new(),
        },
        answers: answers.iter().map(|answer| normaliser.value(answer)).collect(),
        failures,
        is_in_real_time: client.is_in_real_time(),
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
    scenario: &'a Scenario,
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
        if let Operation::Create { .. } = step.operation {
            self.early_in_a_second().await;
        }
        if step.is_marked() {
            self.recorder.mark(number, &step.source);
        }
        match self.operate(number, step).await {
            Ok(answer) => answer,
            Err(error) => json!({"error": format!("{error:#}")}),
        }
    }

    /// Pods that are created in one go shall be of the same age, as they were with the real controllers,
    /// and not differ by a second that ends meanwhile: it would decide which of them goes first.
    async fn early_in_a_second(&self) {
        if let Some(rest) = self.node.until_the_next_second().filter(|rest| *rest < ENOUGH) {
            sleep(rest).await;
        }
    }

    /// Waits until nothing has happened for as long as something had taken with the real server, so
    /// that controllers have the time to act that the real ones had; but not for ever.
    pub(super) async fn pause(&self, duration: Duration) {
        // Controllers that are gone are missed by the next step that waits for them.
        let _ = timeout(duration + LONGEST_PAUSE, self.quiet(duration)).await;
    }

    /// Waits until nothing has happened for so long while the controllers were there.
    async fn quiet(&self, asked: Duration) -> Result<()> {
        loop {
            self.undisturbed().await;
            self.recorder.quiet(asked).await?;
            if self.is_calm() {
                return Ok(());
            }
        }
    }

    /// Waits until controllers that are known to be away are back. They get the time to act that
    /// others have, even if they were away only while nobody looked.
    async fn undisturbed(&self) {
        if self.is_calm() {
            return;
        }
        let Some(mut calm) = self.calm().clone() else { return };
        // Nobody tells any more only when all is over.
        let _ = calm.wait_for(|calm| *calm).await;
        self.calm().replace(calm);
        self.recorder.stir();
    }

    /// Whether the controllers have been there all the time.
    fn is_calm(&self) -> bool {
        let calm = self.calm();
        calm.as_ref().is_none_or(|calm| !calm.has_changed().unwrap_or(false) && *calm.borrow())
    }

    fn calm(&self) -> MutexGuard<'_, Option<watch::Receiver<bool>>> {
        self.calm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn operate(&mut self, number: usize, step: &Step) -> Result<Value> {
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
                let (quiet_ms, timeout) = (quiet_ms.unwrap_or(600), timeout.unwrap_or(60.0));
                let quiet_ms = self.refused(number, quiet_ms, timeout).await?;
                self.settle(quiet_ms, timeout).await?;
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

    /// Waits until creations were refused as often as was recorded, if any were, and the machine's speed
    /// matters. Says how long nothing must happen then, in milliseconds.
    async fn refused(&self, step: usize, quiet_ms: u64, patience_secs: f64) -> Result<u64> {
        let recorded = refusals::recorded(&self.scenario.recording, step);
        let Some(count) = recorded.filter(|_| self.client.is_in_real_time()) else {
            return Ok(quiet_ms);
        };
        self.wait_for(patience(Some(patience_secs), patience_secs), |seen| {
            let told = refusals::seen(seen);
            if told >= count { Ok(()) } else { Err(format!("{told} of {count} refusals")) }
        })
        .await?;
        Ok(quiet_ms.min(AFTER_REFUSALS))
    }

    /// Waits until nothing has happened for a while and the kubelet has nothing left to do.
    async fn settle(&self, quiet_ms: u64, patience_secs: f64) -> Result<()> {
        let quiet = Duration::from_millis(quiet_ms);
        let settled = timeout(patience(Some(patience_secs), patience_secs), async {
            let mut changes = self.recorder.changes();
            loop {
                changes.mark_unchanged();
                // As long as there is work, only a change can bring the quiet that is waited for.
                let is_idle = self.work_left() == 0;
                tokio::select! {
                    biased;
                    quiet = self.quiet(quiet), if is_idle => return quiet,
                    changed = changes.changed() => changed?,
                }
            }
        });
        settled.await.unwrap_or_else(|_| {
            let work = self.work_left();
            bail!("not quiet within {patience_secs} s; the kubelet has {work} things to do")
        })
    }

    /// How many things the kubelet has to do that it will do by itself.
    fn work_left(&self) -> usize {
        let settings = self.kubelet.settings();
        match settings.mode {
            Mode::Manual => 0,
            Mode::Step | Mode::Auto => settings.work(&self.recorder.seen()).len(),
        }
    }
}

fn patience(given: Option<f64>, usual: f64) -> Duration {
    Duration::from_secs_f64(given.unwrap_or(usual).max(0.0)) * PATIENCE
}
