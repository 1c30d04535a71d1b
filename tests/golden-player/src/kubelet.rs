//! A fake kubelet: moves the pods of one namespace, in an order that repeats.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::node::Node;
use super::object::{is_deleting, is_finished, is_ready, is_set, members, text};
use super::recorder::{Recorder, Seen};
use super::resource::Resource;
use super::step::PodStatus;

/// How long until the next pod's turn, unless in [`Mode::Step`]: controllers shall see some of what
/// is between nothing and everything.
const STAGGER: Duration = Duration::from_millis(15);

/// Since how many seconds the first pod is said to be ready, see [`Kubelet::age`]. It and its halves stand
/// in the middle between powers of two, so that the time that a scenario takes makes no difference.
const OLDEST: u64 = 3 << 29;
const YOUNGEST: u64 = 3 << 7;

/// Who moves pods, and when.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Once the watches are quiet one thing is done: all unbound pods are bound, or all
    /// terminating ones removed, or all with a bad image reported, or the oldest pod that is not
    /// ready made ready. One cause at a time: such traces repeat.
    Step,
    /// Everything at once.
    Auto,
    /// Only terminating pods are removed; the steps do the rest.
    Manual,
}

/// How the kubelet behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who moves pods, and when.
    pub mode: Mode,
    /// How long nothing must happen before the next thing is done, in [`Mode::Step`].
    pub quiet: Duration,
    /// How old a pod is before it is bound, in [`Mode::Auto`].
    pub delay: Duration,
    /// Images with this in their name never run.
    pub never_ready_tag: String,
    /// How many nodes pods are bound to, in turn.
    pub nodes: usize,
    /// Whether pods are bound.
    pub bind: bool,
    /// Whether pods are bound even in [`Mode::Manual`].
    pub bind_manual: bool,
    /// Whether terminating pods are removed.
    pub finalize: bool,
    /// Whether pods are made ready.
    pub ready: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Step,
            quiet: Duration::from_millis(250),
            delay: Duration::ZERO,
            never_ready_tag: "bad".to_owned(),
            nodes: 2,
            bind: true,
            bind_manual: false,
            finalize: true,
            ready: true,
        }
    }
}

/// New values for some settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsChange {
    mode: Option<Mode>,
    quiet_ms: Option<u64>,
    delay_ms: Option<u64>,
    never_ready_tag: Option<String>,
    nodes: Option<usize>,
    bind: Option<bool>,
    bind_manual: Option<bool>,
    finalize: Option<bool>,
    ready: Option<bool>,
}

impl Settings {
    /// Takes over what is given.
    pub fn change(&mut self, change: &SettingsChange) {
        fn set<T: Clone>(setting: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                setting.clone_from(value);
            }
        }
        set(&mut self.mode, &change.mode);
        set(&mut self.quiet, &change.quiet_ms.map(Duration::from_millis));
        set(&mut self.delay, &change.delay_ms.map(Duration::from_millis));
        set(&mut self.never_ready_tag, &change.never_ready_tag);
        set(&mut self.nodes, &change.nodes);
        set(&mut self.bind, &change.bind);
        set(&mut self.bind_manual, &change.bind_manual);
        set(&mut self.finalize, &change.finalize);
        set(&mut self.ready, &change.ready);
    }

    /// What there is to do, oldest pod first.
    pub fn work(&self, seen: &Seen) -> Vec<Task> {
        let pods = seen.pods_by_age().into_iter();
        pods.filter_map(|(pod, since)| Some(Task { action: self.action(&pod)?, pod, since }))
            .collect()
    }

    fn action(&self, pod: &Value) -> Option<Action> {
        if is_deleting(pod) {
            return self.finalize.then_some(Action::Finalize);
        }
        if is_finished(pod) || (self.mode == Mode::Manual && !self.bind_manual) {
            return None;
        }
        if self.bind && !is_set(&pod["spec"]["nodeName"]) {
            return Some(Action::Bind);
        }
        if self.mode == Mode::Manual || is_ready(pod) || !self.ready {
            return None;
        }
        if !self.is_bad(pod) {
            return Some(Action::MakeReady);
        }
        let is_reported = is_set(&pod["status"]["containerStatuses"]);
        (!is_reported).then_some(Action::ReportBadImage)
    }

    fn is_bad(&self, pod: &Value) -> bool {
        let tag = &self.never_ready_tag;
        let mut containers = members(&pod["spec"]["containers"]).iter();
        !tag.is_empty() && containers.any(|container| text(&container["image"]).contains(tag))
    }
}

/// Something to do for a pod.
#[derive(Clone, Debug)]
pub struct Task {
    /// What to do.
    pub action: Action,
    /// The pod as last seen.
    pub pod: Arc<Value>,
    since: Instant,
}

/// What a kubelet (and a scheduler) do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Puts the pod on a node.
    Bind,
    /// Removes the pod, whose containers have ended.
    Finalize,
    /// Reports that the image cannot be had.
    ReportBadImage,
    /// Reports that all containers run.
    MakeReady,
}

/// The kubelet of one namespace.
#[derive(Debug)]
pub struct Kubelet {
    node: Node,
    recorder: Arc<Recorder>,
    settings: Mutex<Settings>,
}

impl Kubelet {
    /// One that does nothing until it [runs](Self::run).
    pub fn new(node: Node, recorder: Arc<Recorder>, settings: Settings) -> Self {
        Self { node, recorder, settings: Mutex::new(settings) }
    }

    /// Changes how it behaves from now on.
    pub fn change(&self, change: &SettingsChange) {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).change(change);
        self.recorder.stir();
    }

    /// How it behaves at the moment.
    pub fn settings(&self) -> Settings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Moves pods until the watches end.
    pub async fn run(&self) -> Result<Infallible> {
        let mut changes = self.recorder.changes();
        let mut done = Done::default();
        loop {
            changes.mark_unchanged();
            let settings = self.settings();
            let work = settings.work(&self.recorder.seen());
            let tasks = tokio::select! {
                biased;
                tasks = self.next(&settings, work) => tasks?,
                changed = changes.changed() => {
                    changed?;
                    continue;
                }
            };
            for task in &tasks {
                // What fails now (a conflict, a pod just gone) is seen anew the next time.
                let _ = self.act(&settings, task, &mut done).await;
                if settings.mode != Mode::Step {
                    sleep(STAGGER).await;
                } else if task.action == Action::Finalize {
                    // The real controllers had told of one that is gone before the next one was.
                    self.recorder.quiet(Duration::ZERO).await?;
                }
            }
            if settings.mode == Mode::Step {
                self.recorder.stir();
            }
        }
    }

    /// What is done next out of all there is to do, once it is time for it.
    async fn next(&self, settings: &Settings, work: Vec<Task>) -> Result<Vec<Task>> {
        let due_at = |task: &Task| match task.action {
            Action::Finalize => task.since,
            _ => task.since + settings.delay,
        };
        let Some(first) = work.iter().map(due_at).min() else { return pending().await };
        if settings.mode == Mode::Step {
            self.recorder.quiet(settings.quiet).await?;
            let tasks = together(work);
            if let Some(rest) = self.node.until_the_next_second()
                && self.begins_to_count(&tasks)
            {
                sleep(rest).await;
            }
            return Ok(tasks);
        }
        sleep_until(first).await;
        if settings.mode == Mode::Manual {
            // The recorded kubelet looked every 20 ms: the controllers had told of a pod that goes before it
            // was gone.
            self.recorder.quiet(Duration::ZERO).await?;
        }
        let now = Instant::now();
        Ok(work.into_iter().filter(|task| due_at(task) <= now).collect())
    }

    /// Whether the first of several pods is to become ready whose seconds are counted from then on.
    /// Times in the API are whole seconds, and with the real controllers they were all the same.
    fn begins_to_count(&self, tasks: &[Task]) -> bool {
        tasks.iter().any(|task| task.action == Action::MakeReady)
            && self.counts(Resource::ReplicaSets)
            && !self.recorder.seen().objects(Resource::Pods).any(|pod| is_ready(pod))
    }

    /// Whether it matters since when exactly pods are ready.
    fn counts(&self, resource: Resource) -> bool {
        let is_counted = |set: &Arc<Value>| is_set(&set["spec"]["minReadySeconds"]);
        self.recorder.seen().objects(resource).any(is_counted)
    }

    /// Since how many seconds a pod is said to be ready that becomes so now, as one of so many.
    ///
    /// Of ready pods, the younger ones go first. Kubernetes compares whole seconds and, where these
    /// differ, only the powers of two of the ages; if they are the same, the uids, which are random. So
    /// how fast this machine is would decide who goes. In real time, every pod is said to have been ready
    /// half as long as the one before: then there is nothing left to chance.
    fn age(&self, settings: &Settings, number: u32) -> u64 {
        let sets = [Resource::ReplicaSets, Resource::StatefulSets];
        let is_told = settings.mode == Mode::Step
            && self.node.is_in_real_time()
            && !sets.into_iter().any(|sets| self.counts(sets));
        if is_told {
            OLDEST.checked_shr(number).filter(|age| *age >= YOUNGEST).unwrap_or(0)
        } else {
            0
        }
    }

    async fn act(&self, settings: &Settings, task: &Task, done: &mut Done) -> Result<()> {
        match task.action {
            Action::Bind => {
                let node = format!("node-{}", done.bound % settings.nodes.max(1) + 1);
                done.bound += 1;
                self.node.bind(&task.pod, &node).await?;
                if settings.mode != Mode::Auto {
                    return Ok(());
                }
                let bad = settings.is_bad(&task.pod);
                let report = if bad { bad_image() } else { running() };
                self.node.report(&task.pod, &report).await?;
            }
            Action::Finalize => {
                self.node.finalize(&task.pod).await?;
            }
            Action::ReportBadImage => {
                self.node.report(&task.pod, &bad_image()).await?;
            }
            Action::MakeReady => {
                let ago = self.age(settings, done.ready);
                done.ready += 1;
                self.node.report(&task.pod, &PodStatus { ago, ..running() }).await?;
            }
        }
        Ok(())
    }
}

/// What a kubelet has done so far.
#[derive(Debug, Default)]
struct Done {
    /// How many pods it has bound.
    bound: usize,
    /// How many pods it has made ready, one after the other.
    ready: u32,
}

/// Which of the tasks are one cause in [`Mode::Step`].
fn together(tasks: Vec<Task>) -> Vec<Task> {
    for action in [Action::Bind, Action::Finalize, Action::ReportBadImage] {
        let same: Vec<Task> = tasks.iter().filter(|t| t.action == action).cloned().collect();
        if !same.is_empty() {
            return same;
        }
    }
    tasks.into_iter().take(1).collect()
}

fn running() -> PodStatus {
    PodStatus { ready: Some(true), ..PodStatus::default() }
}

fn bad_image() -> PodStatus {
    PodStatus {
        ready: Some(false),
        phase: Some("Pending".to_owned()),
        waiting: Some("ImagePullBackOff".to_owned()),
        ..PodStatus::default()
    }
}
