//! The trace: what happened, one transition a row, in the order of resource versions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::normalise::Normaliser;
use super::object::{name, text, version};
use super::project::project;
use super::recorder::{Change, Marker, Observation};
use super::resource::Resource;

/// The rows of a trace. An observation makes a row only if it changes the object's projection.
pub fn trace(
    observations: &[Observation],
    markers: &[Marker],
    normaliser: &Normaliser,
) -> Vec<Value> {
    let mut known: BTreeMap<(Resource, &str), Value> = BTreeMap::new();
    let mut rows = Vec::new();
    for entry in in_order(observations, markers) {
        let mut row = match entry {
            Entry::Step(marker) => step_row(marker, normaliser),
            Entry::Observation(observation) => {
                let Observation { change, resource, object } = observation;
                let mut projection = project(*resource, object);
                if let (Resource::Events, Some(fields)) = (resource, projection.as_object_mut()) {
                    // Events are named at random.
                    fields.remove("name");
                }
                let identity = (*resource, name(object));
                if *change == Change::Deleted {
                    known.remove(&identity);
                } else if known.get(&identity) == Some(&projection) {
                    continue;
                } else {
                    known.insert(identity, projection.clone());
                }
                let mut row = normaliser.value(&projection);
                row["t"] = sign(*change).into();
                row
            }
        };
        row["n"] = rows.len().into();
        rows.push(row);
    }
    rows
}

/// The projections of what there was at the end, without events, by kind and name.
pub fn finals(objects: &[(Resource, Value)], normaliser: &Normaliser) -> Vec<Value> {
    let lasting = objects.iter().filter(|(resource, _)| *resource != Resource::Events);
    let mut finals: Vec<Value> =
        lasting.map(|(resource, object)| normaliser.value(&project(*resource, object))).collect();
    finals.sort_by(|a, b| {
        let key = |row: &Value| (text(&row["kind"]).to_owned(), text(&row["name"]).to_owned());
        key(a).cmp(&key(b))
    });
    finals
}

enum Entry<'a> {
    Step(&'a Marker),
    Observation(&'a Observation),
}

/// Watches of several kinds are read side by side; only the versions tell the true order. On a
/// server whose versions are no numbers, the order of arrival has to do.
fn in_order<'a>(observations: &'a [Observation], markers: &'a [Marker]) -> Vec<Entry<'a>> {
    let versions: Option<Vec<u64>> =
        observations.iter().map(|observation| version(&observation.object)).collect();
    // Observations get even places and markers odd ones: a marker comes right after its place.
    let mut entries: Vec<((u64, u64), Entry<'_>)> = Vec::new();
    for (arrival, observation) in observations.iter().enumerate() {
        let arrival = arrival as u64;
        let place = versions.as_ref().map_or(arrival + 1, |versions| versions[arrival as usize]);
        entries.push(((place * 2, arrival), Entry::Observation(observation)));
    }
    for (number, marker) in markers.iter().enumerate() {
        let arrived = marker.observations as u64;
        let place = if versions.is_some() { marker.version } else { arrived };
        entries.push(((place * 2 + 1, number as u64), Entry::Step(marker)));
    }
    entries.sort_by_key(|(place, _)| *place);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

fn step_row(marker: &Marker, normaliser: &Normaliser) -> Value {
    let mut source = marker.source.clone();
    if let Some(fields) = source.as_object_mut() {
        fields.retain(|key, _| key != "object" && key != "body");
    }
    json!({"step": marker.step, "do": normaliser.value(&source)})
}

fn sign(change: Change) -> &'static str {
    match change {
        Change::Existing => "=",
        Change::Added => "+",
        Change::Modified => "~",
        Change::Deleted => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alias::Aliases;
    use std::sync::Arc;

    fn pod(change: Change, version: &str, phase: &str) -> Observation {
        let object = json!({
            "metadata": {"name": "lone", "resourceVersion": version},
            "status": {"phase": phase},
        });
        Observation { change, resource: Resource::Pods, object: Arc::new(object) }
    }

    fn marker(version: u64, observations: usize) -> Marker {
        let source = json!({"op": "create", "object": {"kind": "Pod"}});
        Marker { version, observations, step: 0, source }
    }

    fn rows(observations: &[Observation], markers: &[Marker]) -> Vec<String> {
        let normaliser = Normaliser::new(&Aliases::default(), "ns").unwrap();
        let rows = trace(observations, markers, &normaliser);
        assert!(rows.iter().enumerate().all(|(number, row)| row["n"] == number));
        let short = |row: &Value| match row.get("step") {
            Some(_) => format!("step {}", row["do"]),
            None => format!("{} {}", text(&row["t"]), text(&row["phase"])),
        };
        rows.iter().map(short).collect()
    }

    #[test]
    fn rows_are_ordered_by_version_and_repeat_nothing() {
        let observations = [
            pod(Change::Modified, "12", "Running"),
            pod(Change::Added, "9", "Pending"),
            pod(Change::Modified, "13", "Running"),
            pod(Change::Deleted, "14", "Running"),
            pod(Change::Added, "15", "Running"),
        ];
        let expected =
            ["+ Pending", "step {\"op\":\"create\"}", "~ Running", "- Running", "+ Running"];
        assert_eq!(rows(&observations, &[marker(9, 2)]), expected);
    }

    #[test]
    fn versions_that_are_no_numbers_leave_the_order_of_arrival() {
        let observations =
            [pod(Change::Added, "b", "Pending"), pod(Change::Modified, "a", "Running")];
        let expected = ["+ Pending", "step {\"op\":\"create\"}", "~ Running"];
        assert_eq!(rows(&observations, &[marker(0, 1)]), expected);
    }
}
