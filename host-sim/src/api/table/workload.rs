//! Rows of workloads.

use serde_json::{Value, json};

use super::pod::or_none;
use super::{age, labels};
use crate::api::object::{at, int, list, name, text};
use crate::api::selector::LabelSelector;
use crate::time::Timestamp;

pub(in crate::api) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        json!(name(object)),
        json!(ready(object)),
        json!(count(object, "updatedReplicas")),
        json!(count(object, "availableReplicas")),
        json!(age::of_object(object, now)),
    ];
    cells.extend(containers_and_images(object));
    cells.push(json!(selector(object)));
    cells
}

pub(in crate::api) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, selector(object), now)
}

pub(in crate::api) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, labels(at(object, &["spec", "selector"])), now)
}

fn replicas(object: &Value, selector: String, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        json!(name(object)),
        json!(desired(object)),
        json!(count(object, "replicas")),
        json!(count(object, "readyReplicas")),
        json!(age::of_object(object, now)),
    ];
    cells.extend(containers_and_images(object));
    cells.push(json!(selector));
    cells
}

pub(in crate::api) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells =
        vec![json!(name(object)), json!(ready(object)), json!(age::of_object(object, now))];
    cells.extend(containers_and_images(object));
    cells
}

pub(in crate::api) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![
        json!(name(object)),
        json!(count(object, "desiredNumberScheduled")),
        json!(count(object, "currentNumberScheduled")),
        json!(count(object, "numberReady")),
        json!(count(object, "updatedNumberScheduled")),
        json!(count(object, "numberAvailable")),
        json!(labels(at(object, &["spec", "template", "spec", "nodeSelector"]))),
        json!(age::of_object(object, now)),
    ];
    cells.extend(containers_and_images(object));
    cells.push(json!(selector(object)));
    cells
}

pub(in crate::api) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (at(object, &["spec"]), at(object, &["status"]));
    let succeeded = int(status, "succeeded").unwrap_or(0);
    let parallelism = int(spec, "parallelism").unwrap_or(0);
    let completions = match int(spec, "completions") {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    };
    let start = Timestamp::parse(text(status, "startTime"));
    let end = Timestamp::parse(text(status, "completionTime")).unwrap_or(now);
    let duration =
        start.map_or(String::new(), |start| age::human(end.millis_since(start).div_euclid(1000)));
    let mut cells = vec![
        json!(name(object)),
        json!(job_status(object, status)),
        json!(completions),
        json!(duration),
        json!(age::of_object(object, now)),
    ];
    cells.extend(containers_and_images(object));
    cells.push(json!(selector(object)));
    cells
}

fn job_status(object: &Value, status: &Value) -> &'static str {
    let is = |kind: &str| {
        let conditions = list(status, "conditions").iter();
        conditions.clone().any(|c| text(c, "type") == kind && text(c, "status") == "True")
    };
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if !at(object, &["metadata", "deletionTimestamp"]).is_null() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn desired(object: &Value) -> i64 {
    int(at(object, &["spec"]), "replicas").unwrap_or(0)
}

fn count(object: &Value, name: &str) -> i64 {
    int(at(object, &["status"]), name).unwrap_or(0)
}

fn ready(object: &Value) -> String {
    format!("{}/{}", count(object, "readyReplicas"), desired(object))
}

fn containers_and_images(object: &Value) -> [Value; 2] {
    let containers = list(at(object, &["spec", "template", "spec"]), "containers");
    let join = |field: &str| {
        let texts: Vec<&str> = containers.iter().map(|c| text(c, field)).collect();
        json!(texts.join(","))
    };
    [join("name"), join("image")]
}

fn selector(object: &Value) -> String {
    let selector = at(object, &["spec", "selector"]);
    let text = LabelSelector::of_object(selector).map(|s| s.to_string()).unwrap_or_default();
    or_none(&text).to_owned()
}
