//! Faults of those who are no controllers: users whose requests are lost or come twice, kubelets that report
//! late, twice or out of order, and pods that lie.
//!
//! Whatever a pod's status says that is not so, its kubelet puts right after a while, as it does in
//! Kubernetes: it looks at its pods again and again.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::random::Random;
use crate::server::request::Request;

use super::checks::Facts;
use super::fault::Fault;
use super::trace::Actor;
use super::workload::MERGE;
use super::world::{Happening, World};

/// How often kubelets look at their pods.
const LOOKS_EVERY_SECS: u32 = 10;

/// What the status of a pod says that is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lie {
    /// It is not ready, and since this moment.
    NotReady,
    /// Nobody knows whether it is ready.
    Unknown,
    /// It is ready, and has no address, no container, and is still pending.
    ReadyFromNothing,
    /// It has no conditions at all.
    NoConditions,
    /// It has conditions, but none that says whether it is ready.
    NoReadyCondition,
    /// Its containers are not those of its spec, and have been started again so many times.
    OtherContainers(u16),
    /// It has been ready since so many days from now; the past has a minus.
    ReadySince(i16),
    /// It has been ready since nobody says when.
    ReadySinceNever,
}

impl Lie {
    pub(super) fn draw(random: &mut Random) -> Self {
        match random.below(10) {
            0..=2 => Self::NotReady,
            3 => Self::Unknown,
            4 => Self::ReadyFromNothing,
            5 => Self::NoConditions,
            6 => Self::NoReadyCondition,
            7 => Self::OtherContainers(random.below(1000) as u16),
            8 => Self::ReadySince([-20_000, -1, 1, 400][random.below(4) as usize]),
            _ => Self::ReadySinceNever,
        }
    }

    /// What it writes over the status of a pod.
    fn status(self, pod: &Facts, now: crate::time::Timestamp) -> Value {
        let told = &pod.object["status"]["conditions"];
        let but = |told: &Value, condition: Option<Value>| -> Value {
            let all = told.as_array().into_iter().flatten();
            all.filter(|it| it["type"] != "Ready").cloned().chain(condition).collect()
        };
        let ready = |status: &str, since: Value| {
            let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": since});
            json!({"conditions": but(told, Some(condition))})
        };
        let now_as_text = json!(now.to_rfc3339());
        match self {
            Self::NotReady => ready("False", now_as_text),
            Self::Unknown => ready("Unknown", now_as_text),
            Self::ReadyFromNothing => {
                let mut status = ready("True", now_as_text);
                status["phase"] = json!("Pending");
                for field in ["podIP", "podIPs", "containerStatuses"] {
                    status[field] = Value::Null;
                }
                status
            }
            Self::NoConditions => json!({"conditions": null}),
            Self::NoReadyCondition => json!({"conditions": but(told, None)}),
            Self::OtherContainers(restarts) => json!({"containerStatuses": [{
                "name": "other", "image": "other", "imageID": "", "ready": false,
                "restartCount": restarts, "state": {}, "lastState": {},
            }]}),
            Self::ReadySince(days) => {
                ready("True", json!(now.plus_seconds(i64::from(days) * 86_400).to_rfc3339()))
            }
            Self::ReadySinceNever => ready("True", Value::Null),
        }
    }
}

impl World<'_> {
    /// Strikes users, kubelets or pods, unless the fault is of another sort; says whether it is one of these.
    /// Where there is no pod, nothing strikes it.
    pub(super) fn strike_others(&mut self, fault: Fault) -> bool {
        let until = |world: &Self, seconds: u32| world.now.plus_secs(u64::from(seconds));
        match fault {
            Fault::LoseAction | Fault::RepeatAction(_) => self.user_fates.push_back(fault),
            Fault::HoldKubelets(seconds) => {
                self.struck(fault);
                self.kubelets_held_until = until(self, seconds);
            }
            Fault::RepeatReport { pod, back } => {
                if self.repeat_report(pod, back) {
                    self.struck(fault);
                    let looks = until(self, LOOKS_EVERY_SECS);
                    self.agenda.plan(looks, Happening::TellTheTruth);
                }
            }
            Fault::Lie { pod, lie, seconds } => {
                if self.lie(pod, lie) {
                    self.struck(fault);
                    self.agenda.plan(until(self, seconds), Happening::TellTheTruth);
                }
            }
            _ => return false,
        }
        true
    }

    /// What becomes of the next thing that a user does, which is about to be done. Says whether it is done.
    pub(super) fn meddle_with_action(&mut self, index: usize) -> bool {
        let Some(fault) = self.user_fates.pop_front() else { return true };
        self.struck(fault);
        if let Fault::RepeatAction(seconds) = fault {
            let again = self.now.plus_secs(u64::from(seconds));
            self.agenda.plan(again, Happening::Act(index));
        }
        fault != Fault::LoseAction
    }

    /// A report about a pod arrives that has been overtaken by as many others; 0 is the last one, twice.
    /// Says whether there is such a report.
    fn repeat_report(&mut self, pick: u8, back: u8) -> bool {
        let Some((key, path)) = self.pick_running(pick) else { return false };
        let reports = self.checks.model().past.reports(&key);
        let Some(report) = reports.iter().rev().nth(usize::from(back)) else { return false };
        let body = json!({"status": report});
        self.report(&key, &path, &body);
        true
    }

    /// The status of a pod says what is not so. Says whether there is such a pod.
    fn lie(&mut self, pick: u8, lie: Lie) -> bool {
        let Some((key, path)) = self.pick_running(pick) else { return false };
        let model = self.checks.model();
        let pod = model.all("pods").find(|pod| pod.key == key);
        let Some(status) = pod.map(|pod| lie.status(pod, self.now.wall())) else { return false };
        self.report(&key, &path, &json!({"status": status}));
        true
    }

    fn report(&mut self, key: &str, path: &str, body: &Value) {
        let status = self.as_kubelet(path, body);
        self.note(Actor::Nodes, format_args!("{key} is said to be {body}: {status}"));
        self.observe(Actor::Nodes);
        self.misreported.insert(key.to_owned());
    }

    /// Kubelets look at the pods of which something else is said.
    pub(super) fn tell_the_truth(&mut self) {
        let held_until = self.server_down_until.max(self.kubelets_held_until);
        if held_until > self.now {
            return self.agenda.plan(held_until, Happening::TellTheTruth);
        }
        for key in std::mem::take(&mut self.misreported) {
            let Some((namespace, name)) = key.split_once('/') else { continue };
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/status");
            // What it had said before counts for nothing: conditions begin anew.
            if self.checks.model().all("pods").any(|pod| pod.key == key && pod.is_active()) {
                self.nodes.look_again(self.now.wall(), &key);
                self.as_kubelet(&path, &json!({"status": {"conditions": null}}));
            }
        }
        self.observe(Actor::Nodes);
        self.plan_nodes(self.now);
    }

    fn as_kubelet(&mut self, path: &str, body: &Value) -> u16 {
        let mut request = Request::new(Method::PATCH, path).with_body(MERGE, body.to_string());
        request.user_agent = "kubelet".to_owned();
        self.server.handle(self.now.wall(), &request).status
    }

    /// Key and status of one of the pods that have a node and have not come to their end.
    fn pick_running(&self, pick: u8) -> Option<(String, String)> {
        let is_one = |pod: &&Facts| pod.is_active() && pod.object["spec"]["nodeName"].is_string();
        let mut pods: Vec<&Facts> = self.checks.model().all("pods").filter(is_one).collect();
        pods.sort_by(|a, b| a.key.cmp(&b.key));
        let pod = pods.get(usize::from(pick) % pods.len().max(1))?;
        let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace(), pod.name());
        Some((pod.key.clone(), path))
    }
}
