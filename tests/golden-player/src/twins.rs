//! Pods that are equal by every rule of Kubernetes: when one of them is too many, nothing says which.
//!
//! The real controllers take the one that comes first in a map, ours the one that they have seen first. Of
//! two that are created side by side, that is the one whose answer was faster. So a run in which a twin of
//! the recorded one went is the recorded run, with the names of the two exchanged.

use serde_json::Value;

use super::object::text;
use super::report::Run;
use super::scenario::Scenario;

/// Scenarios, and their pods that differ in nothing, or in what the rules do not look at.
const TWINS: [(&str, &[&str]); 3] = [
    ("d-scale-down-colocated", &["web-rsA-p2", "web-rsA-p3"]),
    ("d-scale-down-colocated-young", &["web-rsA-p1", "web-rsA-p2", "web-rsA-p3"]),
    // A ReplicaSet without a Deployment does not look at nodes.
    ("rs-scale-down-colocated", &["rs-p1", "rs-p2", "rs-p3", "rs-p4"]),
];

/// The run with names exchanged so that of each group of twins those are left that were left in the
/// recording, as far as that goes by names alone.
pub(super) fn as_recorded(scenario: &Scenario, run: Run) -> Run {
    let group = TWINS.iter().find(|(name, _)| *name == scenario.name);
    let Some((_, twins)) = group else { return run };
    let is_left = |finals: &[Value], twin: &str| {
        finals.iter().any(|row| row["kind"] == "Pod" && text(&row["name"]) == twin)
    };
    let only_in = |one: &[Value], other: &[Value]| -> Vec<&str> {
        let twins = twins.iter().filter(|twin| is_left(one, twin) && !is_left(other, twin));
        twins.copied().collect()
    };
    let recorded = only_in(&scenario.recording.finals, &run.finals);
    let instead = only_in(&run.finals, &scenario.recording.finals);
    // Where another number of them is left, names are not what is wrong.
    if recorded.len() != instead.len() {
        return run;
    }
    let pairs: Vec<(&str, &str)> = recorded.into_iter().zip(instead).collect();
    let exchanged = |rows: &[Value]| rows.iter().map(|row| exchange(row, &pairs)).collect();
    Run {
        trace: exchanged(&run.trace),
        finals: exchanged(&run.finals),
        objects: exchanged(&run.objects),
        ..run
    }
}

fn exchange(value: &Value, pairs: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => {
            let exchange = |text: String, (one, other): &(&str, &str)| {
                let parts = text.split(one).map(|part| part.replace(other, one));
                parts.collect::<Vec<_>>().join(other)
            };
            pairs.iter().fold(text.clone(), exchange).into()
        }
        Value::Array(members) => members.iter().map(|member| exchange(member, pairs)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), exchange(value, pairs)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Report, directory};

    /// The recorded run of a scenario, with names exchanged everywhere.
    fn report(scenario: &str, pairs: &[(&str, &str)]) -> Report {
        let scenario = Scenario::load(&directory().join(scenario)).expect("a scenario");
        let exchanged =
            |rows: &[Value]| rows.iter().map(|row| exchange(row, pairs)).collect::<Vec<_>>();
        let recording = &scenario.recording;
        let run = Run {
            trace: exchanged(&recording.trace),
            finals: exchanged(&recording.finals),
            objects: exchanged(recording.objects.as_deref().unwrap_or_default()),
            answers: recording.answers.clone(),
            failures: Vec::new(),
            is_in_real_time: false,
            took: Duration::ZERO,
        };
        Report::new(&scenario, run)
    }

    #[test]
    fn another_twin_may_go_and_nobody_else() {
        for (scenario, twins) in TWINS {
            for one in twins {
                for other in twins {
                    let report = report(scenario, &[(one, other)]);
                    assert!(report.is_success(), "{one} for {other}: {report}");
                }
            }
        }
        for stranger in ["web-rsA-p1", "web-rsA-p4"] {
            let report = report("d-scale-down-colocated", &[(stranger, "web-rsA-p2")]);
            assert!(!report.is_success(), "{stranger} went");
        }
        let report = report("d-scale-down-colocated-young", &[("web-rsA-p4", "web-rsA-p2")]);
        assert!(!report.is_success(), "the one on another node went");
    }

    #[test]
    fn names_are_exchanged_wherever_they_stand() {
        let row = serde_json::json!({"a": ["p1", "of p2 and p1"], "b": {"c": "p3"}});
        let expected = serde_json::json!({"a": ["p2", "of p1 and p2"], "b": {"c": "p3"}});
        assert_eq!(exchange(&row, &[("p1", "p2")]), expected);
        assert_eq!(exchange(&row, &[]), row);
        assert_eq!(exchange(&row, &[("p1", "p1")]), row);
    }
}
