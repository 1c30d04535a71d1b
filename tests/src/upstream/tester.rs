//! A Deployment under test, and what upstream's tests ask about it.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::lab::{Lab, condition, is_observed, number, text};

use super::objects::{controller_of, image_patch, is_same_template};

const REVISION: &str = "deployment.kubernetes.io/revision";

/// A Deployment in a namespace.
pub(super) struct Tester<'l, 'a> {
    pub(super) lab: &'l Lab<'a>,
    object: String,
}

impl<'l, 'a> Tester<'l, 'a> {
    /// Creates the Deployment.
    pub(super) fn new(lab: &'l Lab<'a>, deployment: &Value) -> Result<Self> {
        lab.create("deployments", deployment)?;
        let name = text(&deployment["metadata"]["name"]);
        Ok(Self { lab, object: format!("deployments/{name}") })
    }

    pub(super) fn get(&self) -> Result<Value> {
        self.lab.get(&self.object)
    }

    pub(super) fn patch(&self, patch: &Value) -> Result<Value> {
        self.lab.patch(&self.object, patch)
    }

    pub(super) fn set_image(&self, image: &str) -> Result<Value> {
        self.patch(&image_patch(image))
    }

    /// Scales through the spec and waits until the new ReplicaSet follows.
    pub(super) fn scale(&self, replicas: i64) -> Result<()> {
        self.patch(&json!({"spec": {"replicas": replicas}}))?;
        self.wait_until_observed()?;
        self.lab.wait("the new ReplicaSet follows", || {
            Ok(self
                .new_replica_set()?
                .is_some_and(|set| number(&set["spec"]["replicas"]) == replicas))
        })
    }

    pub(super) fn wait_for(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Result<Value> {
        self.lab.wait_for(&self.object, what, condition)
    }

    /// Waits until the controller has acted on the latest spec.
    pub(super) fn wait_until_observed(&self) -> Result<Value> {
        self.wait_for("it was observed", is_observed)
    }

    pub(super) fn wait_for_condition(&self, kind: &str, reason: &str) -> Result<Value> {
        let what = format!("{kind} because of {reason}");
        self.wait_for(&what, |deployment| condition(deployment, kind)["reason"] == reason)
    }

    /// Waits until Deployment and new ReplicaSet have this revision and image.
    pub(super) fn wait_for_revision(&self, revision: &str, image: &str) -> Result<Value> {
        let is_it = |object: &Value| {
            let container = &object["spec"]["template"]["spec"]["containers"][0];
            container["image"] == image && object["metadata"]["annotations"][REVISION] == revision
        };
        let deployment = self.wait_for(&format!("it is at revision {revision}"), is_it)?;
        self.lab.wait("the ReplicaSet has the revision too", || {
            Ok(self.new_replica_set()?.is_some_and(|set| is_it(&set)))
        })?;
        Ok(deployment)
    }

    /// The ReplicaSets that the Deployment controls.
    pub(super) fn replica_sets(&self) -> Result<Vec<Value>> {
        let uid = self.get()?["metadata"]["uid"].clone();
        let mut sets = self.lab.list("replicasets")?;
        sets.retain(|set| controller_of(set).is_some_and(|reference| reference["uid"] == uid));
        Ok(sets)
    }

    /// The ReplicaSet with the Deployment's template.
    pub(super) fn new_replica_set(&self) -> Result<Option<Value>> {
        let template = &self.get()?["spec"]["template"];
        let mut sets = self.replica_sets()?.into_iter();
        Ok(sets.find(|set| is_same_template(&set["spec"]["template"], template)))
    }

    /// The same, where it has to be there.
    pub(super) fn expect_new_replica_set(&self) -> Result<Value> {
        self.new_replica_set()?.context("there is no new ReplicaSet")
    }

    /// The other ReplicaSets.
    pub(super) fn old_replica_sets(&self) -> Result<Vec<Value>> {
        let new = self.new_replica_set()?.unwrap_or_default();
        let mut sets = self.replica_sets()?;
        sets.retain(|set| set["metadata"]["uid"] != new["metadata"]["uid"]);
        Ok(sets)
    }

    /// Waits for the end of the rollout, and reports the new pods ready as they come.
    pub(super) fn complete(&self) -> Result<Value> {
        self.complete_with(|| Ok(()))
    }

    /// The same, while the promises of a rolling update are kept.
    pub(super) fn complete_and_check_rolling(&self) -> Result<Value> {
        let spec = &self.get()?["spec"];
        let (most, least) = promises(spec)?;
        self.complete_with(|| {
            let sets = self.replica_sets()?;
            let total = |value: fn(&Value) -> &Value| -> i64 {
                sets.iter().map(|set| number(value(set))).sum()
            };
            let created = total(|set| &set["spec"]["replicas"]);
            ensure!(created <= most, "{created} replicas are wanted, of at most {most}");
            let available = total(|set| &set["status"]["availableReplicas"]);
            ensure!(available >= least, "{available} are available, of at least {least}");
            Ok(())
        })
    }

    fn complete_with(&self, check: impl Fn() -> Result<()>) -> Result<Value> {
        let mut last = Value::Null;
        let done = self.lab.wait("the rollout is complete", || {
            check()?;
            if let Some(set) = self.new_replica_set()? {
                self.lab.report_ready(&self.lab.pods_of(&set)?)?;
            }
            last = self.get()?;
            Ok(is_complete(&last))
        });
        done.with_context(|| format!("it is {last:#}"))?;
        Ok(last)
    }

    /// `replicas`, `updatedReplicas`, `readyReplicas`, `availableReplicas`, `unavailableReplicas`.
    pub(super) fn wait_for_counts(&self, wanted: [i64; 5]) -> Result<Value> {
        self.wait_for(&format!("its counts are {wanted:?}"), |deployment| {
            let fields = [
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
            ];
            fields.map(|field| number(&deployment["status"][field])) == wanted
        })
    }
}

/// Whether every replica is new and available.
fn is_complete(deployment: &Value) -> bool {
    let (status, wanted) = (&deployment["status"], number(&deployment["spec"]["replicas"]));
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    is_observed(deployment) && counts.iter().all(|count| number(&status[count]) == wanted)
}

/// How many replicas a Deployment may have at most and must have at least.
fn promises(spec: &Value) -> Result<(i64, i64)> {
    let replicas = number(&spec["replicas"]);
    let part = |value: &Value, round_up: bool| match value {
        Value::Number(count) => Ok(count.as_i64().unwrap_or(0)),
        Value::String(percent) => {
            let percent: i64 = percent.trim_end_matches('%').parse()?;
            Ok((replicas * percent + if round_up { 99 } else { 0 }) / 100)
        }
        _ => bail!("neither a number nor a percentage: {value}"),
    };
    let rolling = &spec["strategy"]["rollingUpdate"];
    let most = replicas + part(&rolling["maxSurge"], true)?;
    Ok((most, replicas - part(&rolling["maxUnavailable"], false)?))
}
