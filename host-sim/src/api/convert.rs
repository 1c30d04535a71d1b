//! Between the forms of kinds that are served in two groups or versions and stored in one.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::conform::conform;
use super::kind::{Kind, Storage};
use super::object::{at, child, fields, int, list, remove, set, text};

/// Fields of an event under their names in events.k8s.io and in core.
const EVENT_NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// What of a v2 autoscaler has no place in v1 travels in annotations.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// From the form a kind has in requests to the form in which it is stored.
pub fn to_storage(kind: &'static Kind, mut object: Value) -> Value {
    let Some(stored) = other_form(kind) else { return object };
    match kind.kind {
        "Event" => rename(&mut object, EVENT_NAMES.iter().copied()),
        "HorizontalPodAutoscaler" => autoscaler_to_v2(&mut object),
        _ => {}
    }
    finish(stored, object)
}

/// From the form in which a kind is stored to the form it has in requests.
pub fn from_storage(kind: &'static Kind, mut object: Value) -> Value {
    if other_form(kind).is_none() {
        return object;
    }
    match kind.kind {
        "Event" => rename(&mut object, EVENT_NAMES.iter().map(|(new, old)| (*old, *new))),
        "HorizontalPodAutoscaler" => autoscaler_to_v1(&mut object),
        _ => {}
    }
    finish(kind, object)
}

/// What a client of `kind` sees of a stored object.
pub fn as_seen<'a>(kind: &'static Kind, stored: &'a Value) -> Cow<'a, Value> {
    match other_form(kind) {
        None => Cow::Borrowed(stored),
        Some(_) => Cow::Owned(from_storage(kind, stored.clone())),
    }
}

fn other_form(kind: &'static Kind) -> Option<&'static Kind> {
    if matches!(kind.storage, Storage::SharedWith { .. }) { kind.stored_as() } else { None }
}

/// Names the form, drops what it does not know and fills in what it always has.
fn finish(kind: &Kind, mut object: Value) -> Value {
    set(&mut object, "apiVersion", json!(kind.api_version()));
    set(&mut object, "kind", json!(kind.kind));
    if let Some(ty) = kind.object_type() {
        // The fields were conforming under their other names: there is nothing left to refuse.
        let _ = conform(ty, &mut object);
    }
    object
}

fn rename<'a>(object: &mut Value, names: impl Iterator<Item = (&'a str, &'a str)>) {
    let fields = fields(object);
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

fn autoscaler_to_v2(object: &mut Value) {
    let annotation = |name: &str| {
        let text = at(object, &["metadata", "annotations", name]).as_str();
        text.and_then(|text| serde_json::from_str::<Value>(text).ok())
    };
    let (others, behavior) = (annotation(METRICS), annotation(BEHAVIOR));
    for name in [METRICS, BEHAVIOR] {
        if let Some(annotations) = object.get_mut("metadata").and_then(|m| m.get_mut("annotations"))
        {
            remove(annotations, name);
        }
    }
    let spec = child(object, "spec");
    let mut metrics = match others {
        Some(Value::Array(others)) => others,
        _ => Vec::new(),
    };
    if let Some(percent) = int(spec, "targetCPUUtilizationPercentage") {
        metrics.insert(0, cpu_metric(percent));
    }
    remove(spec, "targetCPUUtilizationPercentage");
    if metrics.is_empty() {
        metrics.push(cpu_metric(80));
    }
    set(spec, "metrics", Value::Array(metrics));
    if let Some(behavior) = behavior.filter(Value::is_object) {
        set(spec, "behavior", behavior);
    }
}

fn autoscaler_to_v1(object: &mut Value) {
    let spec = child(object, "spec");
    let (cpu, others): (Vec<Value>, Vec<Value>) =
        list(spec, "metrics").iter().cloned().partition(|m| cpu_percent(m).is_some());
    let behavior = at(spec, &["behavior"]).clone();
    remove(spec, "metrics");
    remove(spec, "behavior");
    if let Some(percent) = cpu.first().and_then(cpu_percent) {
        set(spec, "targetCPUUtilizationPercentage", json!(percent));
    }
    let mut annotate = |name: &str, value: Value| {
        set(child(child(object, "metadata"), "annotations"), name, json!(value.to_string()));
    };
    if !others.is_empty() {
        annotate(METRICS, Value::Array(others));
    }
    if behavior.is_object() {
        annotate(BEHAVIOR, behavior);
    }
}

fn cpu_metric(percent: i64) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
           "target": {"type": "Utilization", "averageUtilization": percent}}})
}

fn cpu_percent(metric: &Value) -> Option<i64> {
    let resource = at(metric, &["resource"]);
    let is_cpu = text(metric, "type") == "Resource" && text(resource, "name") == "cpu";
    int(at(resource, &["target"]), "averageUtilization").filter(|_| is_cpu)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::kind;
    use crate::api::testing::any_json;

    #[test]
    fn events_have_other_names_in_their_own_group() {
        let kind = kind::find("events.k8s.io", "v1", "events").unwrap();
        let event = json!({"metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p"},
                           "note": "hi", "reason": "R", "reportingController": "c",
                           "deprecatedCount": 3, "eventTime": "2026-01-02T03:04:05.000000Z"});
        let stored = to_storage(kind, event);
        assert_eq!(stored["apiVersion"], "v1");
        assert_eq!(stored["involvedObject"]["name"], "p");
        assert_eq!((&stored["message"], &stored["count"]), (&json!("hi"), &json!(3)));
        assert_eq!(stored["reportingComponent"], "c");
        let back = from_storage(kind, stored);
        assert_eq!(back["apiVersion"], "events.k8s.io/v1");
        assert_eq!((&back["note"], &back["regarding"]["kind"]), (&json!("hi"), &json!("Pod")));
        assert!(back.get("message").is_none());
    }

    #[test]
    fn autoscalers_keep_what_v1_cannot_say() {
        let v1 = kind::find("autoscaling", "v1", "horizontalpodautoscalers").unwrap();
        let small = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 5,
            "targetCPUUtilizationPercentage": 70,
                           "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
        let stored = to_storage(v1, small);
        assert_eq!(stored["spec"]["metrics"], json!([cpu_metric(70)]));
        let mut rich = stored.clone();
        let memory = json!({"type": "Resource", "resource": {"name": "memory",
            "target": {"type": "Utilization", "averageUtilization": 50}}});
        rich["spec"]["metrics"] = json!([cpu_metric(70), memory]);
        rich["spec"]["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": 5}});
        let seen = from_storage(v1, rich.clone());
        assert_eq!(seen["spec"]["targetCPUUtilizationPercentage"], 70);
        let mut back = to_storage(v1, seen);
        remove(child(&mut back, "metadata"), "annotations");
        assert_eq!(back["spec"], rich["spec"]);
    }

    proptest! {
        #[test]
        fn any_value_is_converted_without_panic(value in any_json()) {
            for kind in kind::ALL {
                from_storage(kind, to_storage(kind, value.clone()));
            }
        }
    }
}
