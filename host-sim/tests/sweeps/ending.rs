//! How a run ended, in what must be the same whatever has gone wrong.

use std::collections::BTreeSet;

use picokube_golden::Scenario;
use picokube_golden::diff::diff;
use picokube_golden::facets::Facets;
use picokube_golden::report::Run;
use serde_json::{Value, json};

/// Scenarios in which a scale-down finds pods that differ in nothing, or only in ages that fall
/// into the same power of two: which of them go is up to the order in which the controller has
/// come to know them, to uids and to the time it is.
const EQUAL_PODS: [&str; 4] = [
    "d-pod-label-changed",
    "d-scale-down-colocated",
    "d-scale-down-colocated-young",
    "rs-scale-down-colocated",
];

/// What is compared of the end of a run.
///
/// Everything that the recordings compare at the end, but for
/// - how often ReplicaSets were scaled (their generation): a controller that was away may get
///   there in fewer or more steps; but it must have observed the last one,
/// - the ReplicaSet that the message of a complete Deployment names: a controller that dies after
///   it has created the new ReplicaSet of a Deployment that recreates, and before it has said so,
///   finds a complete Deployment when it is back, and Kubernetes does not touch the condition of
///   such a one,
/// - which of several equal pods are left: they are counted. Pods that the scenario names are not
///   equal to others; they are left, or not left, by name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ending(Value);

impl Ending {
    pub(crate) fn of(scenario: &Scenario, run: &Run) -> Self {
        let facets = Facets::of(&[], &run.finals, &run.answers);
        let mut objects = facets.facet("final").clone();
        objects.as_array_mut().into_iter().flatten().for_each(forget_steps);
        let named = named_pods(scenario);
        let left = facets.facet("pods-left").as_array().into_iter().flatten();
        let left: Vec<&Value> =
            left.filter(|pod| pod.as_str().is_some_and(|pod| named.contains(pod))).collect();
        Self(json!({
            "objects": objects,
            "pods": facets.facet("final-pods"),
            "named pods": left,
            "answers": facets.facet("answers"),
        }))
    }

    /// What is different in the other; nothing if they are the same.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        diff(&self.0, &other.0)
    }
}

/// Takes out what depends on the steps in which the end was reached.
fn forget_steps(object: &mut Value) {
    let conditions = object.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if condition["reason"] == "NewReplicaSetAvailable" {
            condition["message"] = Value::Null;
        }
    }
    if object["kind"] == "ReplicaSet" {
        let is_observed = object["status"]["observedGeneration"] == object["generation"];
        object["generation"] = Value::Null;
        object["status"]["observedGeneration"] = is_observed.into();
    }
}

/// The pods that the steps name, by alias or by the names that they are created with.
fn named_pods(scenario: &Scenario) -> BTreeSet<String> {
    if EQUAL_PODS.contains(&scenario.name.as_str()) {
        return BTreeSet::new();
    }
    fn collect(value: &Value, names: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                names.insert(text.trim_start_matches('@').to_owned());
            }
            Value::Array(members) => members.iter().for_each(|member| collect(member, names)),
            Value::Object(fields) => fields.values().for_each(|value| collect(value, names)),
            _ => {}
        }
    }
    let mut names = BTreeSet::new();
    scenario.steps.iter().for_each(|step| collect(&step.source, &mut names));
    names
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::Result;
    use picokube_golden::directory;

    use super::*;

    /// The end that was recorded, and what is different if that is done to an object of it.
    fn differences(kind: &str, change: impl Fn(&mut Value)) -> Result<Vec<String>> {
        let scenario = Scenario::load(&directory().join("d-create-3"))?;
        let mut run = Run {
            trace: Vec::new(),
            finals: scenario.recording.finals.clone(),
            objects: Vec::new(),
            answers: scenario.recording.answers.clone(),
            failures: Vec::new(),
            is_in_real_time: false,
            took: Duration::ZERO,
        };
        let before = Ending::of(&scenario, &run);
        run.finals.iter_mut().filter(|row| row["kind"] == kind).take(1).for_each(change);
        Ok(before.differences(&Ending::of(&scenario, &run)))
    }

    #[test]
    fn other_pods_statuses_and_conditions_are_seen() -> Result<()> {
        let is_seen = |kind: &str, change: fn(&mut Value)| {
            differences(kind, change).map(|differences| !differences.is_empty())
        };
        assert!(is_seen("Pod", |pod| pod["kind"] = "Gone".into())?);
        assert!(is_seen("Pod", |pod| pod["ready"] = false.into())?);
        assert!(is_seen("Pod", |pod| pod["owners"] = json!([]))?);
        assert!(is_seen("ReplicaSet", |set| set["replicas"] = 2.into())?);
        assert!(is_seen("ReplicaSet", |set| set["status"]["observedGeneration"] = 0.into())?);
        assert!(is_seen("Deployment", |d| d["status"]["availableReplicas"] = 2.into())?);
        assert!(is_seen("Deployment", |d| d["conditions"][0]["status"] = "False".into())?);
        assert!(is_seen("Deployment", |d| d["annotations"] = json!({}))?);
        Ok(())
    }

    #[test]
    fn how_often_a_replica_set_was_scaled_is_not_seen() -> Result<()> {
        let scaled = differences("ReplicaSet", |set| {
            set["generation"] = 7.into();
            set["status"]["observedGeneration"] = 7.into();
        })?;
        assert_eq!(scaled, Vec::<String>::new());
        Ok(())
    }
}
