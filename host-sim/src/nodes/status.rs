//! Pod status as a kubelet writes it.

use serde_json::{Value, json};

use crate::time::Timestamp;

/// What all containers of a pod are doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Containers {
    /// Waiting, for a reason.
    Waiting(&'static str),
    /// Running since then.
    Running(Timestamp),
    /// Ended with that code.
    Ended(i32),
}

/// A kubelet's view of a pod.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) phase: &'static str,
    pub(super) ready: bool,
    pub(super) containers: Containers,
    pub(super) restarts: u32,
    /// status.reason and status.message, for pods that ended otherwise than by themselves.
    pub(super) reason: Option<(&'static str, &'static str)>,
    pub(super) host: &'a str,
    pub(super) address: &'a str,
}

impl Report<'_> {
    /// The status for a merge patch of `pod`.
    pub(super) fn status(&self, pod: &Value, now: Timestamp) -> Value {
        let mut conditions = pod["status"]["conditions"].clone();
        let flag = |on: bool| if on { "True" } else { "False" };
        let ended = matches!(self.phase, "Succeeded" | "Failed");
        let why = match (self.ready, self.phase) {
            (true, _) => None,
            (_, "Succeeded") => Some(("PodCompleted", "")),
            (_, "Failed") => Some(("PodFailed", "")),
            _ => Some(("ContainersNotReady", "containers with unready status")),
        };
        set_condition(&mut conditions, "PodScheduled", "True", None, now);
        set_condition(&mut conditions, "PodReadyToStartContainers", flag(!ended), None, now);
        set_condition(&mut conditions, "Initialized", "True", None, now);
        set_condition(&mut conditions, "ContainersReady", flag(self.ready), why, now);
        set_condition(&mut conditions, "Ready", flag(self.ready), why, now);
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let statuses: Vec<Value> = containers.map(|c| self.container(c, now)).collect();
        let mut status = json!({
            "phase": self.phase,
            "conditions": conditions,
            "containerStatuses": statuses,
            "hostIP": self.host,
            "hostIPs": [{"ip": self.host}],
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "reason": self.reason.map(|(reason, _)| reason),
            "message": self.reason.map(|(_, message)| message),
        });
        if !pod["status"]["startTime"].is_string() {
            status["startTime"] = json!(now.to_rfc3339());
        }
        if pod["metadata"]["generation"].is_i64() {
            status["observedGeneration"] = pod["metadata"]["generation"].clone();
        }
        status
    }

    fn container(&self, container: &Value, now: Timestamp) -> Value {
        let at = now.to_rfc3339();
        let terminated = |code: i32| {
            let reason = if code == 0 { "Completed" } else { "Error" };
            json!({"terminated": {
                "exitCode": code, "reason": reason, "startedAt": at, "finishedAt": at,
            }})
        };
        let (state, running) = match self.containers {
            Containers::Waiting(reason) => {
                (json!({"waiting": {"reason": reason, "message": waiting(reason)}}), false)
            }
            Containers::Running(since) => {
                (json!({"running": {"startedAt": since.to_rfc3339()}}), true)
            }
            Containers::Ended(code) => (terminated(code), false),
        };
        let crashed = matches!(self.containers, Containers::Waiting("CrashLoopBackOff"));
        json!({
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": self.ready,
            "started": running,
            "restartCount": self.restarts,
            "state": state,
            "lastState": if crashed { terminated(1) } else { json!({}) },
        })
    }
}

fn waiting(reason: &str) -> &'static str {
    match reason {
        "ImagePullBackOff" => "Back-off pulling image",
        "CrashLoopBackOff" => "back-off restarting failed container",
        _ => "",
    }
}

/// Sets a condition in a list; the time of transition moves only when the status does.
pub(super) fn set_condition(
    conditions: &mut Value,
    kind: &str,
    status: &str,
    reason: Option<(&str, &str)>,
    now: Timestamp,
) {
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else { return };
    let existing = list.iter().position(|condition| condition["type"] == kind);
    let since = existing
        .and_then(|at| list.get(at))
        .filter(|condition| condition["status"] == status)
        .map(|condition| condition["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": kind,
        "status": status,
        "lastProbeTime": null,
        "lastTransitionTime": since.unwrap_or_else(|| json!(now.to_rfc3339())),
    });
    if let Some((reason, message)) = reason {
        condition["reason"] = json!(reason);
        if !message.is_empty() {
            condition["message"] = json!(message);
        }
    }
    match existing.and_then(|at| list.get_mut(at)) {
        Some(place) => *place = condition,
        None => list.push(condition),
    }
}
