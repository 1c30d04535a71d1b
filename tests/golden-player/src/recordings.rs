//! The recordings held against themselves, and against mistakes planted in them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::{name, text};
use super::project::project;
use super::report::{Report, Run, compare};
use super::resource::Resource;
use super::scenario::{Recording, Scenario};
use super::{directory, invariants};

fn scenario(name: &str) -> Scenario {
    Scenario::load(&directory().join(name)).unwrap()
}

fn all() -> Vec<Scenario> {
    Scenario::load_all(&directory(), |_| true).unwrap()
}

/// The facets in which the changed recording differs from what was recorded.
fn changed(
    scenario: &Scenario,
    change: impl FnOnce(&mut Vec<Value>, &mut Vec<Value>),
) -> Vec<String> {
    let mut changed = scenario.recording.clone();
    change(&mut changed.trace, &mut changed.finals);
    broken(scenario, &changed)
}

/// The facets in which the recording differs from what was recorded once the whole objects are changed.
fn with_other_objects(scenario: &Scenario, change: impl FnOnce(&mut [Value])) -> Vec<String> {
    let mut changed = scenario.recording.clone();
    change(changed.objects.as_mut().expect("whole objects"));
    broken(scenario, &changed)
}

fn broken(scenario: &Scenario, changed: &Recording) -> Vec<String> {
    let recording = &scenario.recording;
    let compared = compare(&recording.facets(), &changed.facets(), &recording.stable);
    let broken = compared.into_iter().filter(|facet| !facet.differences.is_empty());
    broken.map(|facet| facet.facet).collect()
}

fn find(rows: &[Value], is_it: impl Fn(&Value) -> bool) -> usize {
    rows.iter().position(is_it).expect("such a row")
}

#[test]
fn every_scenario_can_be_read() {
    let scenarios = all();
    let count = |prefix: &str| scenarios.iter().filter(|s| s.name.starts_with(prefix)).count();
    let counts = ["d-", "dt-", "rs-", "s-", "sg-"].map(count);
    assert_eq!(counts, [55, 3, 12, 26, 3]);
    for scenario in &scenarios {
        assert!(!scenario.recording.trace.is_empty(), "{}", scenario.name);
        assert!(!scenario.recording.stable.is_empty(), "{}", scenario.name);
        assert_eq!(scenario.recording.answers.len(), scenario.steps.len(), "{}", scenario.name);
    }
}

#[test]
fn every_stable_facet_is_known() {
    for scenario in all() {
        let facets = scenario.recording.facets();
        for stable in &scenario.recording.stable {
            assert!(facets.names().any(|name| name == stable), "{}: {stable}", scenario.name);
        }
    }
}

#[test]
fn every_recording_is_equal_to_itself_and_within_its_bounds() {
    for scenario in all() {
        let recording = scenario.recording.clone();
        let run = Run {
            trace: recording.trace,
            finals: recording.finals,
            objects: recording.objects.unwrap_or_default(),
            answers: recording.answers,
            failures: Vec::new(),
            is_in_real_time: false,
            took: std::time::Duration::ZERO,
        };
        let report = Report::new(&scenario, run);
        assert!(report.is_success(), "{report}");
        assert!(report.facets.iter().all(|facet| facet.differences.is_empty()), "{report}");
    }
}

#[test]
fn swapped_scaling_events_are_found() {
    let scenario = scenario("d-rolling-default-10");
    let broken = changed(&scenario, |trace, _| {
        let is_scaling = |row: &Value| row["reason"] == "ScalingReplicaSet";
        let first = find(trace, is_scaling);
        let second = first + 1 + find(&trace[first + 1..], is_scaling);
        trace.swap(first, second);
    });
    assert_eq!(broken, ["scaling-events"]);
}

#[test]
fn a_changed_message_is_found() {
    let scenario = scenario("d-create-3");
    let broken = changed(&scenario, |trace, _| {
        let row = find(trace, |row| row["reason"] == "SuccessfulCreate");
        trace[row]["message"] = "Created a pod: web-rsA-p1".into();
    });
    assert_eq!(broken, ["events"]);
    let broken = changed(&scenario, |_, finals| {
        let row = find(finals, |row| row["kind"] == "Deployment");
        finals[row]["conditions"][0]["message"] = "All is well.".into();
    });
    assert_eq!(broken, ["final"]);
}

#[test]
fn a_wrong_number_of_replicas_is_found() {
    let scenario = scenario("d-scale-down");
    let broken = changed(&scenario, |trace, finals| {
        let row = find(trace, |row| row["kind"] == "ReplicaSet" && row["replicas"] == 2);
        trace[row]["replicas"] = 3.into();
        let row = find(finals, |row| row["kind"] == "ReplicaSet");
        finals[row]["status"]["readyReplicas"] = 3.into();
    });
    assert_eq!(broken, ["final", "replicas-order", "strict-ReplicaSet"]);
}

#[test]
fn a_missing_pod_is_found() {
    let scenario = scenario("d-create-3");
    let broken = changed(&scenario, |trace, finals| {
        let pod = find(finals, |row| row["kind"] == "Pod");
        let name = text(&finals.remove(pod)["name"]).to_owned();
        trace.retain(|row| row["name"] != name);
    });
    assert_eq!(broken, ["final-pods", "pod-order", "pods-left"]);
}

#[test]
fn a_template_that_lost_something_is_found() {
    let scenario = scenario("d-create-3");
    let broken = with_other_objects(&scenario, |objects| {
        let set = find(objects, |row| row["metadata"]["name"] == "web-rsA");
        let spec = objects[set]["spec"]["template"]["spec"].as_object_mut().unwrap();
        assert!(spec.remove("terminationGracePeriodSeconds").is_some());
    });
    assert_eq!(broken, ["objects"]);
    let broken = with_other_objects(&scenario, |objects| {
        let pod = find(objects, |row| row["metadata"]["name"] == "web-rsA-p2");
        let app = objects[pod]["spec"]["containers"][0].as_object_mut().unwrap();
        assert!(app.remove("terminationMessagePath").is_some());
    });
    assert_eq!(broken, ["pods"]);
}

#[test]
fn what_the_kubelet_has_made_of_a_pod_is_not_compared() {
    let scenario = scenario("d-create-3");
    let broken = with_other_objects(&scenario, |objects| {
        let pod = find(objects, |row| row["metadata"]["name"] == "web-rsA-p2");
        objects[pod]["spec"]["nodeName"] = "another".into();
        objects[pod]["status"]["phase"] = "Pending".into();
        objects[pod]["metadata"]["name"] = "web-rsA-p9".into();
    });
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn another_victim_is_found() {
    let scenario = scenario("d-scale-down");
    let broken = changed(&scenario, |_, finals| {
        let pod = find(finals, |row| row["kind"] == "Pod");
        finals[pod]["name"] = "web-rsA-p9".into();
    });
    assert_eq!(broken, ["pods-left"]);
}

#[test]
fn a_missing_condition_is_found() {
    let scenario = scenario("d-progress-deadline");
    let broken = changed(&scenario, |trace, _| {
        let late = |row: &Value| row["conditions"].to_string().contains("ProgressDeadlineExceeded");
        trace.retain(|row| !late(row));
    });
    assert!(broken.contains(&"conditions-order".to_owned()), "{broken:?}");
}

#[test]
fn an_unknown_event_is_found() {
    let scenario = scenario("rs-create-3");
    let broken = changed(&scenario, |trace, _| {
        let row = find(trace, |row| row["kind"] == "Event");
        let mut event = trace[row].clone();
        event["reason"] = "FailedCreate".into();
        trace.push(event);
    });
    assert_eq!(broken, ["event-kinds", "events"]);
}

#[test]
fn pods_of_a_stateful_set_have_an_order() {
    let scenario = scenario("s-create-3");
    let broken = changed(&scenario, |trace, _| {
        let made = |row: &Value| row["kind"] == "Pod" && row["t"] == "+";
        let first = find(trace, made);
        let second = first + 1 + find(&trace[first + 1..], made);
        trace.swap(first, second);
    });
    assert_eq!(broken, ["pod-order"]);
}

#[test]
fn another_answer_is_found_though_no_facet_of_the_trace_differs() {
    let scenario = scenario("d-reject-both-zero");
    let recording = &scenario.recording;
    let mut answers = recording.answers.clone();
    answers[0]["causes"][0]["field"] = "spec.strategy".into();
    let run = Run {
        trace: recording.trace.clone(),
        finals: recording.finals.clone(),
        objects: recording.objects.clone().unwrap_or_default(),
        answers,
        failures: Vec::new(),
        is_in_real_time: false,
        took: std::time::Duration::ZERO,
    };
    let report = Report::new(&scenario, run);
    let broken: Vec<&str> = report.broken_facets().map(|facet| facet.facet.as_str()).collect();
    assert_eq!(broken, ["answers"]);
    let told = report.to_string();
    assert!(told.contains("d-reject-both-zero: FAILED"), "{told}");
    assert!(told.contains("- [0].causes[0].field: \"spec.strategy.rolling"), "{told}");
    assert!(told.contains("+ [0].causes[0].field: \"spec.strategy\""), "{told}");
}

#[test]
fn facets_that_vary_are_told_but_not_held() {
    let scenario = scenario("d-noop-update");
    let mut trace = scenario.recording.trace.clone();
    let row = find(&trace, |row| row["kind"] == "Deployment" && row["t"] == "~");
    trace[row]["conditions"][0]["reason"] = "Other".into();
    let recording = scenario.recording.clone();
    let run = Run {
        trace,
        finals: recording.finals,
        objects: recording.objects.unwrap_or_default(),
        answers: recording.answers,
        failures: Vec::new(),
        is_in_real_time: false,
        took: std::time::Duration::ZERO,
    };
    let report = Report::new(&scenario, run);
    let differing = report.facets.iter().filter(|facet| !facet.differences.is_empty());
    let differing: Vec<&str> = differing.map(|facet| facet.facet.as_str()).collect();
    assert_eq!(differing, ["conditions-order", "strict-Deployment"]);
    assert!(report.is_success());
}

#[test]
fn broken_bounds_are_found_in_a_real_trace() {
    let scenario = scenario("d-rolling-default-10");
    assert!(!scenario.invariants.is_empty());
    let mut trace = scenario.recording.trace.clone();
    let last = trace.iter().rposition(|row| row["kind"] == "ReplicaSet").unwrap();
    trace[last]["replicas"] = 14.into();
    let findings = invariants::check(&trace, &scenario.invariants);
    assert!(!findings.violations.is_empty());
}

/// Of some scenarios the objects at the end were recorded, too, and not only their projections.
#[test]
fn projections_are_those_of_the_recordings() {
    let mut kinds = BTreeSet::new();
    for scenario in all() {
        let path = directory().join(&scenario.name).join("final.full.json");
        let Ok(objects) = std::fs::read(path) else { continue };
        let objects: Vec<Value> = serde_json::from_slice(&objects).unwrap();
        assert_eq!(objects.len(), scenario.recording.finals.len(), "{}", scenario.name);
        for mut recorded in scenario.recording.finals {
            // These objects were recorded without times, so nothing tells that one is deleted.
            recorded.as_object_mut().unwrap().remove("deleting");
            let kind = text(&recorded["kind"]).to_owned();
            let resource = Resource::of_kind(&kind).unwrap();
            let mut namesakes = objects.iter().filter(|object| name(object) == recorded["name"]);
            let found = namesakes.any(|object| project(resource, object) == recorded);
            assert!(found, "{}: {recorded}", scenario.name);
            kinds.insert(kind);
        }
    }
    let expected = [
        "ControllerRevision",
        "Deployment",
        "PersistentVolumeClaim",
        "Pod",
        "ReplicaSet",
        "StatefulSet",
    ];
    assert!(kinds.iter().map(String::as_str).eq(expected), "{kinds:?}");
}
