//! A StatefulSet under test, and what upstream's tests ask about it.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::lab::{Lab, condition, is_observed, name, number, text};

use super::objects::image_patch;

/// The annotation that makes a simulated pod misbehave.
const BEHAVIOUR: &str = "sim.picokube.dev/behaviour";

/// A StatefulSet in a namespace.
pub(super) struct SetTester<'l, 'a> {
    pub(super) lab: &'l Lab<'a>,
    pub(super) object: String,
}

impl<'l, 'a> SetTester<'l, 'a> {
    /// Creates the StatefulSet.
    pub(super) fn new(lab: &'l Lab<'a>, set: &Value) -> Result<Self> {
        lab.create("statefulsets", set)?;
        Ok(Self { lab, object: format!("statefulsets/{}", name(set)) })
    }

    /// The same, once all its pods are ready.
    pub(super) fn ready(lab: &'l Lab<'a>, set: &Value) -> Result<Self> {
        let tester = Self::new(lab, set)?;
        tester.wait_for_ready(number(&set["spec"]["replicas"]))?;
        Ok(tester)
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

    pub(super) fn set_replicas(&self, replicas: i64) -> Result<Value> {
        self.patch(&json!({"spec": {"replicas": replicas}}))
    }

    pub(super) fn set_partition(&self, partition: i64) -> Result<Value> {
        self.patch(
            &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": partition}}}}),
        )
    }

    pub(super) fn wait_for(&self, what: &str, condition: impl Fn(&Value) -> bool) -> Result<Value> {
        self.lab.wait_for(&self.object, what, condition)
    }

    /// Waits until the controller has acted on the latest spec. Its status comes last: pods that it creates
    /// or deletes for this spec are created or deleted by then, as far as nothing holds it up.
    pub(super) fn wait_until_observed(&self) -> Result<Value> {
        self.wait_for("it was observed", is_observed)
    }

    /// Waits until so many pods are there, none of them going.
    pub(super) fn wait_for_replicas(&self, replicas: i64) -> Result<Value> {
        let set = self.wait_for(&format!("it has {replicas} pods"), |set| {
            is_observed(set) && number(&set["status"]["replicas"]) == replicas
        })?;
        self.lab.wait("no other pods are there", || {
            Ok(self.lab.list("pods")?.len() as i64 == replicas)
        })?;
        Ok(set)
    }

    /// Waits until so many pods are there and ready.
    pub(super) fn wait_for_ready(&self, replicas: i64) -> Result<Value> {
        self.wait_for(&format!("{replicas} are ready"), |set| {
            is_observed(set)
                && ["replicas", "readyReplicas"]
                    .iter()
                    .all(|f| number(&set["status"][f]) == replicas)
        })
    }

    /// Waits until the status counts so many ready pods, however many there are.
    pub(super) fn wait_for_count_of_ready(&self, ready: i64) -> Result<Value> {
        self.wait_for(&format!("{ready} are counted as ready"), |set| {
            number(&set["status"]["readyReplicas"]) == ready
        })
    }

    /// Waits for the end of a rolling update.
    pub(super) fn wait_until_updated(&self) -> Result<Value> {
        let replicas = number(&self.get()?["spec"]["replicas"]);
        self.wait_for("it is updated", |set| {
            let status = &set["status"];
            is_observed(set)
                && status["currentRevision"] == status["updateRevision"]
                && ["replicas", "readyReplicas", "updatedReplicas"]
                    .iter()
                    .all(|field| number(&status[field]) == replicas)
        })
    }

    /// The pods that are not about to go, by ordinal.
    pub(super) fn pods(&self) -> Result<Vec<Value>> {
        let mut pods = self.lab.staying_pods()?;
        pods.sort_by_key(ordinal);
        Ok(pods)
    }

    /// The ordinals of the pods that are there.
    pub(super) fn ordinals(&self) -> Result<Vec<i64>> {
        Ok(self.pods()?.iter().map(ordinal).collect())
    }

    /// The images of the pods, by ordinal.
    pub(super) fn images(&self) -> Result<Vec<String>> {
        let image = |pod: &Value| text(&pod["spec"]["containers"][0]["image"]).to_owned();
        Ok(self.pods()?.iter().map(image).collect())
    }

    /// The revisions of the pods, by ordinal.
    pub(super) fn revisions(&self) -> Result<Vec<String>> {
        let revision =
            |pod: &Value| text(&pod["metadata"]["labels"]["controller-revision-hash"]).to_owned();
        Ok(self.pods()?.iter().map(revision).collect())
    }

    /// The path of the pod of an ordinal.
    pub(super) fn pod(&self, ordinal: i64) -> String {
        format!("pods/{}-{ordinal}", self.object.trim_start_matches("statefulsets/"))
    }

    /// Makes a simulated pod misbehave, or lets it recover.
    pub(super) fn behave(&self, ordinal: i64, behaviour: Option<&str>) -> Result<()> {
        let annotations = json!({"metadata": {"annotations": {BEHAVIOUR: behaviour}}});
        self.lab.patch(&self.pod(ordinal), &annotations).map(|_| ())
    }

    /// Deletes a pod and waits until another one of its name is ready.
    pub(super) fn replace(&self, ordinal: i64) -> Result<Value> {
        let pod = self.pod(ordinal);
        let uid = self.lab.get(&pod)?["metadata"]["uid"].clone();
        self.lab.ask("DELETE", &pod, &json!({}))?;
        self.wait_for_another(ordinal, &uid)
    }

    /// Waits until the pod of an ordinal is ready and not the one with this identity.
    pub(super) fn wait_for_another(&self, ordinal: i64, uid: &Value) -> Result<Value> {
        let object = self.pod(ordinal);
        let mut found = Value::Null;
        self.lab.wait("there is another pod of this name", || {
            let answer = self.lab.send("GET", &object, &Value::Null)?;
            found = answer.json()?;
            let is_ready = condition(&found, "Ready")["status"] == "True";
            Ok(answer.status == 200 && found["metadata"]["uid"] != *uid && is_ready)
        })?;
        Ok(found)
    }

    /// The ordinals in the events with this reason, in the order in which they came.
    pub(super) fn told(&self, reason: &str) -> Result<Vec<i64>> {
        let mut events = self.lab.list("events")?;
        events.retain(|event| {
            event["involvedObject"]["kind"] == "StatefulSet" && event["reason"] == reason
        });
        events.sort_by_key(|event| {
            text(&event["metadata"]["resourceVersion"]).parse().unwrap_or(0_u64)
        });
        let ordinals = events.iter().map(|event| {
            // "create Pod NAME in StatefulSet SET successful"
            let pod = text(&event["message"]).split(' ').nth(2);
            let ordinal = pod.and_then(|pod| pod.rsplit('-').next());
            ordinal.and_then(|word| word.parse().ok()).with_context(|| format!("no pod in {event}"))
        });
        ordinals.collect()
    }

    /// Waits until the events with this reason are about these ordinals, in this order.
    pub(super) fn wait_until_told(&self, reason: &str, ordinals: &[i64]) -> Result<()> {
        self.lab.wait(&format!("{reason} of {ordinals:?}"), || Ok(self.told(reason)? == ordinals))
    }
}

/// The ordinal in a pod's name.
fn ordinal(pod: &Value) -> i64 {
    name(pod).rsplit('-').next().and_then(|word| word.parse().ok()).unwrap_or(-1)
}
