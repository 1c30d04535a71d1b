//! ReplicationControllers: a controller writes their status and nothing else.

use serde_json::Value;

use super::super::Verdict;
use super::super::model::{Change, Facts};
use super::{Act, statuses, wrong};

pub(super) const STATUS: &str = "of a ReplicationController, only the status is written";

/// Judges what a controller has done to a ReplicationController.
pub(super) fn check(act: Act<'_>, change: &Change) -> Verdict {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        let object = change.before.as_ref().or(change.after.as_ref());
        return object.map_or(Ok(()), |it| wrong(STATUS, it, "it comes or goes"));
    };
    if rest(before) != rest(after) {
        return wrong(STATUS, after, "something else changes");
    }
    statuses::of_replica_set(act, before, after)
}

fn rest(controller: &Facts) -> Value {
    let mut object = controller.object.clone();
    object["status"] = Value::Null;
    for field in ["resourceVersion", "managedFields"] {
        object["metadata"][field] = Value::Null;
    }
    object
}
