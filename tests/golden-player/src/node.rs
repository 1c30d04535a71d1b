//! What a scheduler and a kubelet write to the API.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::client::{Answer, Client};
use super::object::{members, name, text};
use super::recorder::Recorder;
use super::resource::Resource;
use super::step::{PatchKind, PodStatus};

/// Acts on the pods of one namespace, as nodes do.
#[derive(Clone, Debug)]
pub struct Node {
    client: Client,
    recorder: Arc<Recorder>,
    namespace: String,
    /// Times long ago are counted back from here, so that pods of the same age have the very
    /// same age however slowly they are reported.
    began: SystemTime,
}

/// From here on, seconds ago are long ago.
const LONG_AGO: u64 = 600;

impl Node {
    /// One that acts through `client`.
    pub fn new(client: &Client, recorder: &Arc<Recorder>, namespace: &str) -> Self {
        Self {
            client: client.clone(),
            recorder: recorder.clone(),
            namespace: namespace.to_owned(),
            began: client.wall(),
        }
    }

    /// How long until the clock shows another second; none in virtual time, which is the same each
    /// time as it is.
    pub fn until_the_next_second(&self) -> Option<Duration> {
        let now = self.client.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let rest = Duration::from_nanos(1_000_000_000 - u64::from(now.subsec_nanos()));
        self.client.is_in_real_time().then_some(rest)
    }

    /// Whether time passes by itself.
    pub fn is_in_real_time(&self) -> bool {
        self.client.is_in_real_time()
    }

    /// Puts the pod on a node.
    pub async fn bind(&self, pod: &Value, node: &str) -> Result<()> {
        let name = name(pod);
        let path = Resource::Pods.subresource(&self.namespace, name, Some("binding"));
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": self.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let answer = self.client.post(&path, &binding).await?;
        if !answer.is_success() {
            bail!("{path}: {}: {}", answer.status, text(&answer.body["message"]));
        }
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        let is_bound = |pod: &Arc<Value>| pod["spec"]["nodeName"].is_string();
        let look = |seen: &super::recorder::Seen| match seen.object(Resource::Pods, name) {
            Some(pod) => is_bound(pod).then_some(()),
            None => Some(()),
        };
        self.recorder.until(deadline, look).await;
        Ok(())
    }

    /// Reports the status of a pod.
    pub async fn report(&self, pod: &Value, report: &PodStatus) -> Result<Answer> {
        let path = Resource::Pods.subresource(&self.namespace, name(pod), Some("status"));
        let now = if report.ago < LONG_AGO { self.client.wall() } else { self.began };
        let since = now - Duration::from_secs(report.ago);
        let patch = json!({"status": status(pod, report, since)});
        let answer = self.client.patch(&path, &patch, PatchKind::Merge.content_type()).await?;
        if answer.is_success() {
            self.recorder.catch_up(Resource::Pods, &answer.body).await;
        }
        Ok(answer)
    }

    /// Removes a pod whose containers have ended.
    pub async fn finalize(&self, pod: &Value) -> Result<Answer> {
        let path = Resource::Pods.object(&self.namespace, name(pod));
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let answer = self.client.delete(&path, &options).await?;
        if answer.is_success() {
            let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
            let uid = &pod["metadata"]["uid"];
            let is_gone = |seen: &super::recorder::Seen| {
                let current = seen.object(Resource::Pods, name(pod));
                let same = current.filter(|current| current["metadata"]["uid"] == *uid);
                // With finalizers left it stays until somebody takes them away.
                let held = same.filter(|pod| members(&pod["metadata"]["finalizers"]).is_empty());
                held.is_none().then_some(())
            };
            self.recorder.until(deadline, is_gone).await;
        }
        Ok(answer)
    }
}

fn status(pod: &Value, report: &PodStatus, since: SystemTime) -> Value {
    let since = rfc3339(since);
    let ready = report.ready.unwrap_or(false);
    let phase = report.phase.as_deref().unwrap_or("Running");
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        json!({
            "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since,
        })
    };
    let state = match (phase, &report.waiting) {
        ("Failed", _) => terminated(1, "Error", &since),
        ("Succeeded", _) => terminated(0, "Completed", &since),
        (_, Some(reason)) => json!({"waiting": {"reason": reason, "message": "as told"}}),
        (_, None) => json!({"running": {"startedAt": since}}),
    };
    let containers = members(&pod["spec"]["containers"]).iter().map(|container| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "",
            "ready": ready, "started": ready, "restartCount": report.restarts, "state": state,
        })
    });
    let mut status = json!({
        "phase": phase,
        "startTime": since,
        "hostIP": "127.0.0.1",
        "podIP": "127.0.0.1",
        "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [
            condition("PodScheduled", true),
            condition("Initialized", true),
            condition("ContainersReady", ready),
            condition("Ready", ready),
        ],
        "containerStatuses": containers.collect::<Value>(),
    });
    for (key, text) in [("reason", &report.reason), ("message", &report.message)] {
        if let Some(text) = text {
            status[key] = text.as_str().into();
        }
    }
    status
}

fn terminated(exit_code: i32, reason: &str, at: &str) -> Value {
    json!({"terminated": {
        "exitCode": exit_code, "reason": reason, "startedAt": at, "finishedAt": at,
    }})
}

/// To the second, as the API writes times.
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from March, so that the leap day comes last; eras have 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_api_does() {
        let at = |seconds| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn reports_say_what_they_are_told() {
        let pod = json!({"spec": {"containers": [{"name": "app", "image": "img:v1"}]}});
        let report = PodStatus {
            ready: Some(false),
            phase: Some("Failed".to_owned()),
            reason: Some("Evicted".to_owned()),
            restarts: 3,
            ..PodStatus::default()
        };
        let status = status(&pod, &report, SystemTime::now());
        assert_eq!(status["phase"], "Failed");
        assert_eq!(status["reason"], "Evicted");
        assert_eq!(status["containerStatuses"][0]["restartCount"], 3);
        assert_eq!(status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 1);
        assert_eq!(status["conditions"][3]["status"], "False");
        assert!(status.get("message").is_none());
    }
}
