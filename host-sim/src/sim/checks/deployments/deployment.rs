//! Deployments: a controller writes their status and their revision, and what it was asked to roll back.

use serde_json::Value;

use super::super::Verdict;
use super::super::model::{Change, Facts};
use super::words::REVISION;
use super::{Act, statuses, wrong};

pub(super) const UNTOUCHED: &str =
    "of a Deployment, only status, revision and rollback are written";

/// Judges what a controller has done to a Deployment.
pub(super) fn check(act: Act<'_>, change: &Change) -> Verdict {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        let object = change.before.as_ref().or(change.after.as_ref());
        return object.map_or(Ok(()), |it| wrong(UNTOUCHED, it, "it comes or goes"));
    };
    if before.deleting != after.deleting {
        return wrong(UNTOUCHED, after, "it is deleted");
    }
    let may_roll_back = act.view.may_be("deployments", &after.key, Facts::rolls_back);
    if may_roll_back && before.object["spec"] != after.object["spec"] {
        return rolled_back(act, after);
    }
    if !may_roll_back && without_revision(before) != without_revision(after) {
        return wrong(UNTOUCHED, after, "something else changes");
    }
    statuses::of_deployment(act, before, after)
}

/// Its new template is that of one of its ReplicaSets.
fn rolled_back(act: Act<'_>, after: &Facts) -> Verdict {
    let template = after.bare_template();
    let is_it = |it: &Facts| it.is_of(&after.uid) && it.is_of_template(&template);
    let mut sets = act.siblings("replicasets", after);
    match sets.any(|it| it.iter().flatten().any(|it| is_it(it))) {
        true => Ok(()),
        false => wrong(UNTOUCHED, after, "it is rolled back to what it never was"),
    }
}

fn without_revision(deployment: &Facts) -> Value {
    let mut object = deployment.object.clone();
    object["status"] = Value::Null;
    for field in ["resourceVersion", "managedFields"] {
        object["metadata"][field] = Value::Null;
    }
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.remove(REVISION);
    }
    if object["metadata"]["annotations"].as_object().is_none_or(|it| it.is_empty()) {
        object["metadata"]["annotations"] = Value::Null;
    }
    object
}
