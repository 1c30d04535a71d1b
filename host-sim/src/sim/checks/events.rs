//! Events tell what has happened: a ReplicaSet that is said to have been scaled has been.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::server::request::Request as HttpRequest;

use super::Verdict;
use super::model::{Facts, Model};

pub(super) const PROPERTY: &str = "events tell the truth";

/// The sizes that ReplicaSets have had, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Sizes(BTreeMap<String, BTreeSet<i64>>);

impl Sizes {
    pub(super) fn note(&mut self, set: &Facts) {
        if set.plural == "replicasets" {
            self.0.entry(set.key.clone()).or_default().insert(set.spec("replicas"));
        }
    }

    /// A controller has written something, perhaps an event.
    pub(super) fn check(&self, http: &HttpRequest, model: &Model) -> Verdict {
        let is_event = http.method == http::Method::POST && http.path.ends_with("/events");
        let event = is_event.then(|| serde_json::from_slice(&http.body).unwrap_or(Value::Null));
        let created = event.as_ref().and_then(created);
        if let Some(key) = created.filter(|key| !model.past.has_been("pods", key)) {
            return Err((PROPERTY, format!("pod {key} has never been there")));
        }
        let Some((key, size)) = event.as_ref().and_then(scaled) else { return Ok(()) };
        if self.0.get(&key).is_some_and(|sizes| sizes.contains(&size)) {
            return Ok(());
        }
        Err((PROPERTY, format!("{key} has never been of size {size}")))
    }
}

/// The pod that a StatefulSet is said to have created.
fn created(event: &Value) -> Option<String> {
    let told = event["message"].as_str()?.strip_suffix(" successful")?;
    let (name, _) = told.strip_prefix("create Pod ")?.split_once(" in StatefulSet ")?;
    Some(format!("{}/{name}", event["metadata"]["namespace"].as_str()?))
}

/// The ReplicaSet that an event is about and the size that it is said to have got.
fn scaled(event: &Value) -> Option<(String, i64)> {
    let (_, told) = event["message"].as_str()?.strip_prefix("Scaled ")?.split_once(" set ")?;
    let (name, sizes) = told.split_once(" from ")?;
    let (_, size) = sizes.split_once(" to ")?;
    let namespace = event["metadata"]["namespace"].as_str()?;
    Some((format!("{namespace}/{name}"), size.parse().ok()?))
}
