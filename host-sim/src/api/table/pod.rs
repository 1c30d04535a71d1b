//! The row of a pod: what `kubectl get pods` says it is doing.

use serde_json::{Value, json};

use super::age;
use crate::api::object::{at, flag, int, list, name, text};
use crate::time::Timestamp;

pub(in crate::api) fn pod(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = Summary::of(pod);
    let mut restarts = summary.restarts.to_string();
    if summary.restarts != 0 && !summary.last_restart.is_empty() {
        restarts = format!("{restarts} ({} ago)", age::since(&summary.last_restart, now));
    }
    let (spec, status) = (at(pod, &["spec"]), at(pod, &["status"]));
    let address = list(status, "podIPs").first().map_or("", |ip| text(ip, "ip"));
    vec![
        json!(name(pod)),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        json!(age::of_object(pod, now)),
        json!(or_none(if address.is_empty() { text(status, "podIP") } else { address })),
        json!(or_none(text(spec, "nodeName"))),
        json!(or_none(text(status, "nominatedNodeName"))),
        json!(readiness_gates(spec, status)),
    ]
}

/// Marks rows of pods that have ended.
pub(super) fn row_conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(at(pod, &["status"]), "phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    let condition =
        json!({"type": "Completed", "status": "True", "reason": reason, "message": message});
    Some(json!([condition]))
}

pub(super) fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

#[derive(Default)]
struct Summary {
    total: usize,
    ready: usize,
    restarts: i64,
    last_restart: String,
    reason: String,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let (spec, status) = (at(pod, &["spec"]), at(pod, &["status"]));
        let init = list(spec, "initContainers");
        let mut summary = Self {
            total: list(spec, "containers").len() + init.iter().filter(|c| is_sidecar(c)).count(),
            reason: match text(status, "reason") {
                "" => text(status, "phase").to_owned(),
                reason => reason.to_owned(),
            },
            ..Self::default()
        };
        let gated =
            |c: &Value| text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated";
        if list(status, "conditions").iter().any(gated) {
            summary.reason = "SchedulingGated".to_owned();
        }
        let initializing = summary.init_containers(init, status);
        if !initializing || has_condition(status, "Initialized") {
            summary.containers(init, status);
        }
        summary.deletion(pod, status);
        summary
    }

    /// Counts init containers up to the first that is not done; says whether there is one.
    fn init_containers(&mut self, init: &[Value], status: &Value) -> bool {
        for (i, container) in list(status, "initContainerStatuses").iter().enumerate() {
            self.count_restarts(container);
            let spec = init.iter().find(|c| text(c, "name") == text(container, "name"));
            let sidecar = spec.is_some_and(is_sidecar);
            let terminated = at(container, &["state", "terminated"]);
            let waiting = text(at(container, &["state", "waiting"]), "reason");
            if terminated.is_object() && int(terminated, "exitCode").unwrap_or(0) == 0 {
                continue;
            }
            if sidecar && flag(container, "started") {
                self.ready += usize::from(flag(container, "ready"));
                continue;
            }
            self.reason = if terminated.is_object() {
                format!("Init:{}", ended(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{i}/{}", init.len())
            };
            return true;
        }
        false
    }

    fn containers(&mut self, init: &[Value], status: &Value) {
        (self.restarts, self.last_restart) = (0, String::new());
        for container in list(status, "initContainerStatuses") {
            let spec = init.iter().find(|c| text(c, "name") == text(container, "name"));
            if spec.is_some_and(is_sidecar) {
                self.count_restarts(container);
            }
        }
        let mut running = false;
        for container in list(status, "containerStatuses").iter().rev() {
            self.count_restarts(container);
            let state = at(container, &["state"]);
            let waiting = text(at(state, &["waiting"]), "reason");
            let terminated = at(state, &["terminated"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if terminated.is_object() {
                self.reason = ended(terminated);
            } else if flag(container, "ready") && at(state, &["running"]).is_object() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let ready = has_condition(status, "Ready");
            self.reason = if ready { "Running" } else { "NotReady" }.to_owned();
        }
    }

    fn deletion(&mut self, pod: &Value, status: &Value) {
        if at(pod, &["metadata", "deletionTimestamp"]).is_null() {
            return;
        }
        if text(status, "reason") == "NodeLost" {
            self.reason = "Unknown".to_owned();
        } else if !matches!(text(status, "phase"), "Failed" | "Succeeded") {
            self.reason = "Terminating".to_owned();
        }
    }

    fn count_restarts(&mut self, container: &Value) {
        self.restarts += int(container, "restartCount").unwrap_or(0).max(0);
        let last = at(container, &["lastState", "terminated"]);
        let finished = text(last, "finishedAt");
        // Times in UTC with the same precision compare as text.
        if self.last_restart.as_str() < finished {
            self.last_restart = finished.to_owned();
        }
    }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn ended(terminated: &Value) -> String {
    let reason = text(terminated, "reason");
    let signal = int(terminated, "signal").unwrap_or(0);
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", int(terminated, "exitCode").unwrap_or(0))
    }
}

fn has_condition(status: &Value, kind: &str) -> bool {
    list(status, "conditions")
        .iter()
        .any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

fn readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = list(spec, "readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|g| has_condition(status, text(g, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}
