//! ReplicaSets of Deployments: made of its template, once each; sized by its budget; deleted when they
//! are history.

use serde_json::Value;

use super::super::Verdict;
use super::super::model::{Change, Facts};
use super::words::{DESIRED, HASH, MOST, REVISION};
use super::{Act, rollout, statuses, wrong};

pub(super) const TEMPLATE: &str =
    "a ReplicaSet is made of its Deployment's template, field by field";
pub(super) const TWIN: &str = "one ReplicaSet per template on the server";
pub(super) const CHANGED: &str =
    "of a ReplicaSet, only size, annotations, owner and status are written";
pub(super) const SIZED: &str =
    "a ReplicaSet that is scaled tells of the size that its Deployment has";
pub(super) const CLAIMED: &str =
    "a Deployment adopts what it selects, and lets go what it does not";
pub(super) const REVISIONS: &str = "revisions grow on the server";
pub(super) const HISTORY: &str = "only history that is too long is deleted";

/// Judges what a controller has done to a ReplicaSet.
pub(super) fn check(act: Act<'_>, change: &Change) -> Verdict {
    match (&change.before, &change.after) {
        (None, Some(set)) => created(act, set),
        (Some(before), Some(after)) if before.deleting == after.deleting => {
            changed(act, before, after)
        }
        (Some(set), _) if !set.deleting => deleted(act, set),
        _ => Ok(()),
    }
}

fn created(act: Act<'_>, set: &Facts) -> Verdict {
    let deployments = act.owners_of(set);
    if deployments.is_empty() {
        return wrong(CLAIMED, set, "its Deployment is not there, or on its way out");
    }
    let template = set.bare_template();
    if !deployments.iter().any(|it| *it.template() == template) {
        return wrong(TEMPLATE, set, "its Deployment's template says something else");
    }
    let hash = set.label(HASH).unwrap_or_default();
    let labels = &set.object["spec"]["template"]["metadata"]["labels"];
    let is_named = set.name().ends_with(&format!("-{hash}")) && !hash.is_empty();
    let selects_hash = set.object["spec"]["selector"]["matchLabels"][HASH] == hash;
    if !is_named || labels[HASH] != hash || !selects_hash || !set.selects(labels) {
        return wrong(TEMPLATE, set, "name, labels and selector do not tell its hash");
    }
    let is_twin = |it: &Facts| {
        it.is_of(set.controller.as_deref().unwrap_or_default())
            && !it.deleting
            && it.uid != set.uid
            && it.is_of_template(&template)
    };
    if sure(act, set).any(|versions| versions.iter().all(|it| it.is_some_and(is_twin))) {
        return wrong(TWIN, set, "there is another one");
    }
    numbered(act, set)?;
    sized(&deployments, set)?;
    rollout::grown(act, &deployments, set)
}

/// Whoever gives it a size says for which size of its Deployment that is. Nothing is written where it has
/// the right size already, by a user's hand: then it goes on to tell of the size before, as in Kubernetes.
fn sized(deployments: &[&Facts], set: &Facts) -> Verdict {
    let told = (set.number(DESIRED), set.number(MOST));
    let is_it = |d: &&Facts| {
        let wanted = d.spec("replicas");
        told == (Some(wanted), Some(wanted + d.surge()))
    };
    if !deployments.iter().any(is_it) {
        return wrong(SIZED, set, &format!("it tells of {told:?}"));
    }
    Ok(())
}

/// The versions of the ReplicaSets around one.
fn sure<'a>(act: Act<'a>, set: &'a Facts) -> impl Iterator<Item = Vec<Option<&'a Facts>>> {
    act.siblings("replicasets", set)
}

/// Its revision is above those that others had for sure.
fn numbered(act: Act<'_>, set: &Facts) -> Verdict {
    let Some(revision) = set.number(REVISION) else { return Ok(()) };
    let owner = set.controller.as_deref().unwrap_or_default();
    let least = |versions: &[Option<&Facts>]| -> Option<i64> {
        let numbers: Option<Vec<i64>> = versions
            .iter()
            .map(|it| it.filter(|it| it.is_of(owner) && it.uid != set.uid)?.number(REVISION))
            .collect();
        numbers?.into_iter().min()
    };
    let most = sure(act, set).filter_map(|versions| least(&versions)).max();
    match most {
        Some(most) if revision <= most => {
            wrong(REVISIONS, set, &format!("it gets {revision}, another has {most}"))
        }
        _ => Ok(()),
    }
}

fn changed(act: Act<'_>, before: &Facts, after: &Facts) -> Verdict {
    if rest(before) != rest(after) {
        return wrong(CHANGED, after, "something else changes");
    }
    if before.controller != after.controller {
        return claimed(act, before, after);
    }
    if before.annotation(REVISION) != after.annotation(REVISION) {
        numbered(act, after)?;
    }
    if before.spec("replicas") != after.spec("replicas") {
        let deployments = act.owners_of(after);
        if deployments.is_empty() {
            return wrong(CHANGED, after, "it is scaled by whom it does not belong to");
        }
        sized(&deployments, after)?;
        return rollout::resized(act, &deployments, before, after);
    }
    statuses::of_replica_set(act, before, after)
}

/// What no controller changes.
fn rest(set: &Facts) -> Value {
    let mut object = set.object.clone();
    object["status"] = Value::Null;
    for field in
        ["resourceVersion", "generation", "managedFields", "annotations", "ownerReferences"]
    {
        object["metadata"][field] = Value::Null;
    }
    for field in ["replicas", "minReadySeconds"] {
        object["spec"][field] = Value::Null;
    }
    object
}

fn claimed(act: Act<'_>, before: &Facts, after: &Facts) -> Verdict {
    let (is_adoption, owned) = match (&before.controller, &after.controller) {
        (None, Some(_)) => (true, after),
        (Some(_), None) => (false, before),
        _ => return wrong(CLAIMED, after, "it goes from one controller to another"),
    };
    let deployments = act.owners_of(owned);
    let is_right = |set: &Facts| {
        let labels = &set.object["metadata"]["labels"];
        deployments.iter().any(|it| it.selects(labels) == is_adoption)
    };
    if !act.view.may_be("replicasets", &after.key, is_right) {
        let what = if is_adoption { "it is adopted" } else { "it is let go" };
        return wrong(CLAIMED, after, what);
    }
    Ok(())
}

/// It was empty, not the oldest of its Deployment's template, and one too many.
fn deleted(act: Act<'_>, set: &Facts) -> Verdict {
    // It may have lost its owner while the request was under way.
    let versions = act.view.versions("replicasets", &set.key).flatten();
    let versions = versions.filter(|it| it.uid == set.uid);
    let deployments: Vec<&Facts> = versions.flat_map(|it| act.owners_of(it)).collect();
    let is_empty =
        |it: &Facts| it.uid == set.uid && it.spec("replicas") == 0 && it.status("replicas") == 0;
    let is_history = |deployment: &&Facts| {
        let template = deployment.bare_template();
        let limit = deployment.object["spec"]["revisionHistoryLimit"].as_i64().unwrap_or(i64::MAX);
        let is_own = |it: &Facts| it.is_of(&deployment.uid);
        let is_older =
            |it: &Facts| is_own(it) && it.age() < set.age() && it.is_of_template(&template);
        let any = |is: &dyn Fn(&Facts) -> bool| -> usize {
            let sets = act.siblings("replicasets", set);
            sets.filter(|it| it.iter().flatten().any(|it| is(it))).count()
        };
        let is_new = set.is_of_template(&template) && any(&is_older) == 0;
        let is_any_new = any(&|it| is_own(it) && it.is_of_template(&template)) > 0;
        let old = any(&is_own) - usize::from(is_any_new);
        !is_new && old as i64 > limit
    };
    if !act.view.may_be("replicasets", &set.key, is_empty) || !deployments.iter().any(is_history) {
        return wrong(HISTORY, set, "it is no history, or not too much of it");
    }
    Ok(())
}
