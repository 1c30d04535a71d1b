//! Facets: a run seen from several sides, from robust to strict.
//!
//! Where two controllers race, the real ones do not make the same trace twice. Each facet leaves
//! something out, so that what a scenario is about can be compared exactly.
//!
//! | facet | what it holds |
//! |---|---|
//! | `final` | the projections of all objects at the end, pods left out |
//! | `final-pods` | how many pods of each sort there are at the end |
//! | `objects` | all objects at the end as a whole, templates and metadata included; pods left out |
//! | `pods` | metadata and `spec` of every pod at the end, as often as there is such a one |
//! | `pods-left` | which pods are there at the end, by alias: who were the victims |
//! | `scaling-events` | what was said about scaling ReplicaSets, in order |
//! | `event-kinds` | which reasons were given for which kinds |
//! | `events` | every event in full, in no order |
//! | `replicas-order` | every number of replicas asked of each set, in order over all sets |
//! | `conditions-order` | every set of conditions a Deployment went through |
//! | `pod-order` | pods made and gone, by owner and image |
//! | `strict-KIND` | every projection every object of the kind went through |
//! | `answers` | how the server answered each step, down to the wording of refusals |

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::object::{members, text};

/// Held against every recording: an API server's answers do not depend on races.
pub const ANSWERS: &str = "answers";

/// Whole objects. They were recorded once, and are held where what is compared of them was the same in
/// every run.
pub const OBJECTS: &str = "objects";
/// Whole pods, likewise.
pub const PODS: &str = "pods";

/// The reason that is given when pods cannot be created.
pub(super) const REFUSED: &str = "FailedCreate";

const STRICT_KINDS: [&str; 5] =
    ["Deployment", "ReplicaSet", "StatefulSet", "ControllerRevision", "PersistentVolumeClaim"];

/// A run, facet by facet.
#[derive(Clone, Debug, PartialEq)]
pub struct Facets(BTreeMap<String, Value>);

impl Facets {
    /// The facets of a run, from its trace, its final projections and the answers to its steps.
    pub fn of(trace: &[Value], finals: &[Value], answers: &[Value]) -> Self {
        let trace: Vec<Value> = trace.iter().map(with_sorted_conditions).collect();
        let finals: Vec<Value> = finals.iter().map(with_sorted_conditions).collect();
        let mut facets = BTreeMap::new();
        let mut put = |name: &str, facet: Value| facets.insert(name.to_owned(), facet);
        put("final", finals.iter().filter(|row| row["kind"] != "Pod").cloned().collect());
        put("final-pods", final_pods(&finals));
        put("pods-left", pods_left(&finals));
        put("scaling-events", scaling_events(&trace));
        put("event-kinds", event_kinds(&trace));
        put("events", events(&trace));
        put("replicas-order", replicas_order(&trace));
        put("conditions-order", conditions_order(&trace));
        put("pod-order", pod_order(&trace));
        put(ANSWERS, answers.iter().map(answer).collect());
        for kind in STRICT_KINDS {
            if let Some(facet) = strict(&trace, kind) {
                put(&format!("strict-{kind}"), facet);
            }
        }
        Self(facets)
    }

    /// The same, and the facets of the [whole](super::whole) objects at the end.
    pub fn with_objects(mut self, objects: &[Value]) -> Self {
        let is_pod = |object: &&Value| object["spec"]["containers"].is_array();
        let (pods, others): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(is_pod);
        let others = others.into_iter().map(|object| {
            let mut object = object.clone();
            if let Some(status) = object.get_mut("status") {
                *status = with_sorted_conditions(status);
            }
            object
        });
        self.0.insert(OBJECTS.to_owned(), others.collect());
        let mut pods: Vec<Value> = pods.into_iter().map(made_of_template).collect();
        pods.sort_by_cached_key(Value::to_string);
        self.0.insert(PODS.to_owned(), Value::Array(pods));
        self
    }

    /// The same with every refused creation told of once: how often it was tried until somebody looked, and
    /// from when on events are combined, is a question of time.
    pub fn without_counting_refusals(mut self) -> Self {
        let events = self.0.get_mut("events").and_then(Value::as_array_mut);
        if let Some(events) = events {
            events.iter_mut().filter(|event| event["reason"] == REFUSED).for_each(|event| {
                event["message"] = uncombined(&event["message"]).into();
                event["count"] = Value::Null;
            });
            events.sort_by_cached_key(Value::to_string);
            events.dedup();
        }
        self
    }

    /// The names of all facets.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A facet; null where the run has nothing of the sort.
    pub fn facet(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }
}

/// The order of conditions carries no meaning.
fn with_sorted_conditions(row: &Value) -> Value {
    let mut row = row.clone();
    if let Some(conditions) = row.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.sort_by(|a, b| text(&a["type"]).cmp(text(&b["type"])));
    }
    row
}

/// What a controller has made of a pod: not its status, its node, or a name that was drawn.
fn made_of_template(pod: &Value) -> Value {
    let (mut metadata, mut spec) = (pod["metadata"].clone(), pod["spec"].clone());
    if let Some(metadata) = metadata.as_object_mut()
        && metadata.contains_key("generateName")
    {
        metadata.remove("name");
    }
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nodeName");
    }
    json!({"metadata": metadata, "spec": spec})
}

fn final_pods(finals: &[Value]) -> Value {
    let mut counts: BTreeMap<String, (Value, u64)> = BTreeMap::new();
    for pod in finals.iter().filter(|row| row["kind"] == "Pod") {
        let sort = json!({
            "owner": owner(pod),
            "images": pod["images"],
            "phase": pod["phase"],
            "ready": pod["ready"],
            "deleting": pod["deleting"] == true,
            "labels": pod["labels"],
        });
        counts.entry(sort.to_string()).or_insert((sort, 0)).1 += 1;
    }
    counts.into_values().map(|(sort, count)| json!([sort, count])).collect()
}

fn pods_left(finals: &[Value]) -> Value {
    let pods = finals.iter().filter(|row| row["kind"] == "Pod");
    let names: BTreeSet<&str> = pods.map(|pod| text(&pod["name"])).collect();
    names.into_iter().collect()
}

/// After ten similar events the recorder folds further ones into one object, whose message is
/// rewritten: those count, too.
fn scaling_events(trace: &[Value]) -> Value {
    let said = trace
        .iter()
        .filter(|row| row["reason"] == "ScalingReplicaSet" && (row["t"] == "+" || row["t"] == "~"));
    said.filter(|row| row["kind"] == "Event")
        .map(|row| json!([row["object"], uncombined(&row["message"])]))
        .collect()
}

fn uncombined(message: &Value) -> String {
    text(message).replace("(combined from similar events): ", "")
}

fn event_kinds(trace: &[Value]) -> Value {
    let events = trace.iter().filter(|row| row["kind"] == "Event");
    let kinds: BTreeSet<(&str, &str, &str)> = events
        .map(|row| {
            let kind = text(&row["object"]).split('/').next().unwrap_or_default();
            (kind, text(&row["type"]), text(&row["reason"]))
        })
        .collect();
    kinds.into_iter().map(|(kind, sort, reason)| json!([kind, sort, reason])).collect()
}

fn events(trace: &[Value]) -> Value {
    let events = trace.iter().filter(|row| row["kind"] == "Event");
    let mut events: Vec<Value> = events.map(|row| without(row, &["n", "t"])).collect();
    events.sort_by_cached_key(Value::to_string);
    Value::Array(events)
}

fn replicas_order(trace: &[Value]) -> Value {
    let sets = trace.iter().filter(|row| {
        let kind = text(&row["kind"]);
        kind == "ReplicaSet" || kind == "StatefulSet"
    });
    changes(sets.map(|row| {
        let gone = row["t"] == "-";
        (text(&row["name"]), if gone { "deleted".into() } else { row["replicas"].clone() })
    }))
}

fn conditions_order(trace: &[Value]) -> Value {
    let rows = trace.iter().filter(|row| row["kind"] == "Deployment" && row["t"] != "-");
    changes(rows.map(|row| {
        let conditions = members(&row["conditions"]).iter();
        let conditions = conditions.map(|one| json!([one["type"], one["status"], one["reason"]]));
        (text(&row["name"]), conditions.collect())
    }))
}

fn pod_order(trace: &[Value]) -> Value {
    let pods = trace.iter().filter(|row| row["kind"] == "Pod");
    pods.filter(|row| row["t"] == "+" || row["t"] == "-")
        .map(|row| {
            let owner = owner(row);
            // Only StatefulSets care which pod it is.
            let name = if owner.starts_with("StatefulSet/") { text(&row["name"]) } else { "" };
            json!([row["t"], owner, name, row["images"]])
        })
        .collect()
}

fn strict(trace: &[Value], kind: &str) -> Option<Value> {
    let mut objects: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for row in trace.iter().filter(|row| row["kind"] == kind) {
        objects.entry(text(&row["name"])).or_default().push(without(row, &["n"]));
    }
    (!objects.is_empty()).then(|| json!(objects))
}

fn answer(step: &Value) -> Value {
    let mut answer = without(step, &["ms", "error"]);
    let causes = answer.get_mut("causes").and_then(Value::as_array_mut);
    for cause in causes.into_iter().flatten() {
        cause["message"] = without_object(&cause["message"]);
    }
    if let Some(message) = answer.get_mut("message") {
        *message = without_object(message);
    }
    answer
}

/// Some messages hold a whole object as JSON; the order of its fields carries no meaning.
fn without_object(message: &Value) -> Value {
    let text = text(message);
    match (text.find("\"{"), text.rfind("}\"")) {
        (Some(start), Some(end)) if start < end => {
            format!("{}…{}", &text[..start + 2], &text[end..]).into()
        }
        _ => message.clone(),
    }
}

/// What each name went through, in order over all names, without repetitions.
fn changes<'a>(states: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let mut last: BTreeMap<&str, Value> = BTreeMap::new();
    let mut changes = Vec::new();
    for (name, state) in states {
        if last.get(name) != Some(&state) {
            changes.push(json!([name, state]));
            last.insert(name, state);
        }
    }
    Value::Array(changes)
}

fn owner(row: &Value) -> String {
    let controller = members(&row["owners"]).iter().find(|owner| owner["controller"] == true);
    match controller {
        Some(owner) => format!("{}/{}", text(&owner["kind"]), text(&owner["name"])),
        None => "none".to_owned(),
    }
}

fn without(row: &Value, keys: &[&str]) -> Value {
    let fields = row.as_object().into_iter().flatten();
    let kept = fields.filter(|(key, _)| !keys.contains(&key.as_str()));
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}
