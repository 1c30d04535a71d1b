//! The life of one pod on a simulated node.

use serde_json::{Value, json};

use crate::store::Entry;
use crate::time::Timestamp;

use super::behaviour::{Behaviour, Kind};
use super::client::Client;
use super::status::{Containers, Report};

/// Up to this delay a pod goes from nothing to ready in one step; beyond, it is seen running.
const ONE_STEP_MILLIS: i64 = 1_000;
const FIRST_BACKOFF_SECONDS: i64 = 10;
const LONGEST_BACKOFF_SECONDS: i64 = 300;

/// What a kubelet remembers about a pod.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) uid: Box<str>,
    /// The version that was last looked at.
    pub(super) revision: u64,
    pub(super) node: Option<String>,
    /// Distinguishes the pods of a node; their addresses are made from it.
    pub(super) number: u32,
    /// When it will be looked at next.
    pub(super) planned: Option<Timestamp>,
    stage: Stage,
    behaviour: Behaviour,
    images: Vec<String>,
    restarts: u32,
}

/// Where in its life a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No node has it yet.
    Unscheduled,
    /// Its containers come up then.
    Starting { due: Timestamp },
    /// They run.
    Running { since: Timestamp, ready: bool, ready_at: Option<Timestamp>, ends: Option<Timestamp> },
    /// They ended and will be started again.
    Backoff { until: Timestamp },
    /// It is to go, and will be gone then.
    Stopping { due: Timestamp },
    /// Nothing more happens to it.
    Done,
}

impl Pod {
    /// A pod that is seen for the first time.
    pub(super) fn new(entry: &Entry, object: &Value) -> Self {
        let statuses = object["status"]["containerStatuses"].as_array().into_iter().flatten();
        let restarts = statuses.filter_map(|s| s["restartCount"].as_u64()).max().unwrap_or(0);
        Self {
            uid: entry.uid.clone(),
            revision: 0,
            node: None,
            number: 0,
            planned: None,
            stage: Stage::Unscheduled,
            behaviour: Behaviour::of(object),
            images: images(object),
            restarts: restarts as u32,
        }
    }

    /// Takes a new version in and plans what follows from it.
    pub(super) fn observe(&mut self, now: Timestamp, entry: &Entry, object: &Value) {
        self.revision = entry.revision;
        let node = object["spec"]["nodeName"].as_str().filter(|node| !node.is_empty());
        self.node = node.map(str::to_owned);
        let (behaviour, images) = (Behaviour::of(object), images(object));
        let changed = behaviour != self.behaviour || images != self.images;
        if images != self.images && self.is_running() {
            self.restarts += 1;
        }
        (self.behaviour, self.images) = (behaviour, images);
        let ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        self.stage = match self.stage {
            Stage::Done => Stage::Done,
            stopping @ Stage::Stopping { .. } => stopping,
            _ if self.node.is_some() && entry.deletion.is_some() => {
                let stopped = now.plus_millis(self.behaviour.stop_millis);
                Stage::Stopping { due: entry.deletion.map_or(stopped, |end| end.min(stopped)) }
            }
            _ if ended => Stage::Done,
            // The simulation was started over a cluster that was running before.
            Stage::Unscheduled if self.runs_as_it_should(object) => {
                Stage::Running { since: now, ready: true, ready_at: None, ends: None }
            }
            Stage::Unscheduled if self.node.is_some() => Stage::Starting { due: self.start(now) },
            stage if changed && stage != Stage::Unscheduled => Stage::Starting { due: now },
            stage => stage,
        };
        self.planned = self.due(now);
    }

    /// Forgets how far it was: its node has been away.
    pub(super) fn recover(&mut self, now: Timestamp) {
        if self.is_running() {
            self.stage = Stage::Starting { due: now };
        }
    }

    /// Does what is due; says when to come again.
    pub(super) fn advance(
        &mut self,
        client: &mut Client<'_>,
        entry: &Entry,
        host: &str,
        address: &str,
    ) -> Option<Timestamp> {
        let now = client.now;
        let kubelet = Kubelet { entry, object: entry.parse(), host, address };
        match self.stage {
            Stage::Starting { due } if due <= now => self.start_containers(client, &kubelet),
            Stage::Backoff { until } if until <= now => {
                self.restarts += 1;
                self.start_containers(client, &kubelet);
            }
            Stage::Running { ends: Some(ends), .. } if ends <= now => {
                self.end_containers(client, &kubelet);
            }
            Stage::Running { since, ready_at: Some(at), ends, .. } if at <= now => {
                self.stage = Stage::Running { since, ready: true, ready_at: None, ends };
                self.report_running(client, &kubelet);
            }
            Stage::Stopping { due } if due <= now => self.stop(client, &kubelet),
            _ => {}
        }
        self.due(now)
    }

    fn runs_as_it_should(&self, object: &Value) -> bool {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        self.behaviour.kind == Kind::Run
            && self.node.is_some()
            && conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
    }

    fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running { .. } | Stage::Backoff { .. })
    }

    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        match self.stage {
            Stage::Unscheduled => Some(now),
            Stage::Starting { due } | Stage::Stopping { due } => Some(due),
            Stage::Backoff { until } => Some(until),
            Stage::Running { ready_at, ends, .. } => [ready_at, ends].into_iter().flatten().min(),
            Stage::Done => None,
        }
    }

    /// When the containers of a pod that has just got its node come up.
    fn start(&self, now: Timestamp) -> Timestamp {
        let delay = match self.behaviour.kind {
            Kind::Run if self.behaviour.ready_millis <= ONE_STEP_MILLIS => {
                self.behaviour.ready_millis
            }
            _ => ONE_STEP_MILLIS / 2,
        };
        now.plus_millis(delay)
    }

    fn start_containers(&mut self, client: &mut Client<'_>, kubelet: &Kubelet<'_>) {
        let now = client.now;
        let Behaviour { kind, ready_millis, run_millis, .. } = self.behaviour;
        let running = |ready, ready_at, ends| Stage::Running { since: now, ready, ready_at, ends };
        self.stage = match kind {
            Kind::NoImage => {
                let message = "Failed to pull image: image not found";
                client.event(&kubelet.object, "Warning", "Failed", message);
                let containers = Containers::Waiting("ImagePullBackOff");
                self.report(client, kubelet, "Pending", false, containers, None);
                self.stage = running(false, None, None);
                return;
            }
            Kind::Run if ready_millis <= ONE_STEP_MILLIS => running(true, None, None),
            Kind::Run => {
                let ready_at = now.plus_millis(ready_millis - ONE_STEP_MILLIS / 2);
                running(false, Some(ready_at), None)
            }
            Kind::NeverReady => running(false, None, None),
            Kind::Exit(_) => running(false, None, Some(now.plus_millis(run_millis))),
            Kind::Evict => running(true, None, Some(now.plus_millis(run_millis))),
        };
        self.report_running(client, kubelet);
    }

    fn end_containers(&mut self, client: &mut Client<'_>, kubelet: &Kubelet<'_>) {
        let Kind::Exit(code) = self.behaviour.kind else {
            let why = ("Evicted", "The node was low on resource: simulated.");
            client.event(&kubelet.object, "Warning", why.0, why.1);
            self.report(client, kubelet, "Failed", false, Containers::Ended(137), Some(why));
            self.stage = Stage::Done;
            return;
        };
        let restart = match kubelet.object["spec"]["restartPolicy"].as_str() {
            Some("Never") => false,
            Some("OnFailure") => code != 0,
            _ => true,
        };
        if !restart {
            let phase = if code == 0 { "Succeeded" } else { "Failed" };
            self.report(client, kubelet, phase, false, Containers::Ended(code), None);
            self.stage = Stage::Done;
            return;
        }
        let doubled = FIRST_BACKOFF_SECONDS << self.restarts.min(10);
        let until = client.now.plus_seconds(doubled.min(LONGEST_BACKOFF_SECONDS));
        self.stage = Stage::Backoff { until };
        let message = "Back-off restarting failed container";
        client.event(&kubelet.object, "Warning", "BackOff", message);
        let containers = Containers::Waiting("CrashLoopBackOff");
        self.report(client, kubelet, "Running", false, containers, None);
    }

    /// The containers have stopped: the pod may go, unless others still hold it.
    fn stop(&mut self, client: &mut Client<'_>, kubelet: &Kubelet<'_>) {
        let entry = kubelet.entry;
        if !entry.finalizers.is_empty() {
            self.report(client, kubelet, "Failed", false, Containers::Ended(137), None);
        }
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": &*entry.uid}});
        client.delete(&kubelet.path(), &options);
        self.stage = Stage::Done;
    }

    fn report_running(&self, client: &mut Client<'_>, kubelet: &Kubelet<'_>) {
        if let Stage::Running { since, ready, .. } = self.stage {
            self.report(client, kubelet, "Running", ready, Containers::Running(since), None);
        }
    }

    fn report(
        &self,
        client: &mut Client<'_>,
        kubelet: &Kubelet<'_>,
        phase: &'static str,
        ready: bool,
        containers: Containers,
        reason: Option<(&'static str, &'static str)>,
    ) {
        let report = Report {
            phase,
            ready,
            containers,
            restarts: self.restarts,
            reason,
            host: kubelet.host,
            address: kubelet.address,
        };
        let status = report.status(&kubelet.object, client.now);
        client.merge(&format!("{}/status", kubelet.path()), &json!({"status": status}));
    }
}

/// The node's side of one look at a pod.
struct Kubelet<'a> {
    entry: &'a Entry,
    object: Value,
    host: &'a str,
    address: &'a str,
}

impl Kubelet<'_> {
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods/{}", self.entry.namespace(), self.entry.name())
    }
}

fn images(pod: &Value) -> Vec<String> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.map(|c| c["image"].as_str().unwrap_or_default().to_owned()).collect()
}
