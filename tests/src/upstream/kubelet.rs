//! What a test does in a kubelet's stead.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, condition, name};

use super::objects::controller_of;

impl Lab<'_> {
    /// The pods with the label `name=test` that are not about to go.
    pub(super) fn staying_pods(&self) -> Result<Vec<Value>> {
        let mut pods = self.list("pods?labelSelector=name%3Dtest")?;
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        Ok(pods)
    }

    /// The pods that a ReplicaSet controls and that are not about to go.
    pub(super) fn pods_of(&self, replica_set: &Value) -> Result<Vec<Value>> {
        let mut pods = self.list("pods")?;
        pods.retain(|pod| {
            let uid = controller_of(pod).map(|reference| &reference["uid"]);
            uid == Some(&replica_set["metadata"]["uid"])
                && pod["metadata"]["deletionTimestamp"].is_null()
        });
        Ok(pods)
    }

    /// Reports that a pod runs and has become ready.
    pub(super) fn report_pod_ready(&self, pod: &Value) -> Result<()> {
        self.report_pod_ready_since(pod, &self.server_time()?)
    }

    /// Reports that a pod runs and has been ready since a time.
    pub(super) fn report_pod_ready_since(&self, pod: &Value, time: &str) -> Result<()> {
        let status = json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}],
        });
        let object = format!("pods/{}/status", name(pod));
        let answer = self.send("PATCH", &object, &json!({"status": status}))?;
        // The controllers may have deleted it in the meantime.
        ensure!(matches!(answer.status, 200 | 404), "{object}: {}", answer.text());
        Ok(())
    }

    /// Reports all of them ready that are not yet.
    pub(super) fn report_ready(&self, pods: &[Value]) -> Result<()> {
        for pod in pods.iter().filter(|pod| condition(pod, "Ready")["status"] != "True") {
            self.report_pod_ready(pod)?;
        }
        Ok(())
    }

    /// Lets go of every pod that is being deleted; says how many there were.
    pub(super) fn finish_terminating_pods(&self) -> Result<usize> {
        let mut pods = self.list("pods")?;
        pods.retain(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
        for pod in &pods {
            let object = format!("pods/{}", name(pod));
            self.send("DELETE", &object, &json!({"gracePeriodSeconds": 0}))?;
        }
        Ok(pods.len())
    }

    /// How many pods are being deleted.
    pub(super) fn terminating_pods(&self) -> Result<usize> {
        let pods = self.list("pods")?;
        let going = pods.iter().filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
        Ok(going.count())
    }

    /// What time the cluster has, to the second.
    fn server_time(&self) -> Result<String> {
        let answer = self.send("GET", "pods?limit=1", &Value::Null)?;
        Ok(rfc3339(answer.header("date").context("the server does not tell the time")?))
    }
}

/// An HTTP date in the form of Kubernetes' times.
fn rfc3339(date: &str) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = date.split_whitespace().skip(1);
    let mut word = || words.next().unwrap_or_default();
    let (day, month, year, time) = (word(), word(), word(), word());
    let month = MONTHS.find(month).unwrap_or(0) / 3 + 1;
    format!("{year}-{month:02}-{day}T{time}Z")
}

#[test]
fn dates_become_times() {
    assert_eq!(rfc3339("Mon, 16 Nov 2026 02:13:58 GMT"), "2026-11-16T02:13:58Z");
    assert_eq!(rfc3339("Thu, 01 Jan 1970 00:00:00 GMT"), "1970-01-01T00:00:00Z");
}
