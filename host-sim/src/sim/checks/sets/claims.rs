//! Claims of StatefulSets: made as their templates say, belonging to whom the retention policy says,
//! and never deleted by a controller.

use serde_json::Value;

use super::super::Verdict;
use super::super::model::{Change, Facts};
use super::super::past::View;
use super::names::says;
use super::wrong;

pub(super) const KEPT: &str = "no controller deletes a claim";
pub(super) const MADE: &str = "claims are made as their templates say";
pub(super) const RETENTION: &str = "claims belong to whom the retention policy says";

/// Judges what a controller has done to a claim.
pub(super) fn check(view: View<'_>, change: &Change) -> Verdict {
    match (&change.before, &change.after) {
        (None, Some(claim)) => created(view, claim),
        (Some(before), Some(after)) if before.deleting == after.deleting => {
            changed(view, before, after)
        }
        (Some(claim), _) => wrong(KEPT, claim, "it goes"),
        (None, None) => Ok(()),
    }
}

/// Those StatefulSets that a claim may be of, with its template and ordinal.
fn candidates<'v>(view: View<'v>, claim: &Facts) -> Vec<(&'v Facts, &'v Value, i64)> {
    let keys: Vec<&str> = view.past.keys("statefulsets", claim.namespace()).collect();
    let sets = keys.into_iter().flat_map(|key| view.versions("statefulsets", key).flatten());
    let sets = sets.filter(|set| !set.deleting);
    sets.filter_map(|set| set.claim_of(claim.name()).map(|(it, ordinal)| (set, it, ordinal)))
        .collect()
}

fn created(view: View<'_>, claim: &Facts) -> Verdict {
    let is_made_so = |(set, template, ordinal): &(&Facts, &Value, i64)| {
        let labels = &claim.object["metadata"]["labels"];
        set.ordinals().contains(ordinal)
            && says(labels, &set.object["spec"]["selector"]["matchLabels"])
            && says(labels, &template["metadata"]["labels"])
            && says(&claim.object["spec"], &template["spec"])
    };
    if !candidates(view, claim).iter().any(is_made_so) {
        return wrong(MADE, claim, "no StatefulSet has such a template");
    }
    if !owners(claim).is_empty() {
        return wrong(RETENTION, claim, "it is born with an owner");
    }
    Ok(())
}

fn owners(claim: &Facts) -> Vec<&Value> {
    let owners = claim.object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().collect()
}

fn changed(view: View<'_>, before: &Facts, after: &Facts) -> Verdict {
    if before.without_owner() != after.without_owner() {
        return wrong(RETENTION, after, "something else than its owners has changed");
    }
    let candidates = candidates(view, after);
    let is_wanted = |owner: &Value, is_wanted: bool| {
        candidates.iter().any(|(set, _, ordinal)| {
            let is_condemned = !set.ordinals().contains(ordinal);
            let with_pod = set.deletes_claims("whenScaled") && is_condemned;
            let with_set = set.deletes_claims("whenDeleted") && !with_pod;
            let is_pod = |pod: &Facts| owner["uid"] == pod.uid.as_str();
            match owner["kind"].as_str() {
                Some("StatefulSet") => owner["uid"] == set.uid.as_str() && with_set == is_wanted,
                Some("Pod") => {
                    view.may_be("pods", &set.pod_key(*ordinal), is_pod) && with_pod == is_wanted
                }
                _ => false,
            }
        })
    };
    let (old, new) = (owners(before), owners(after));
    for owner in new.iter().filter(|owner| !old.contains(owner)) {
        if !is_wanted(owner, true) {
            return wrong(RETENTION, after, &format!("it is given to {owner}"));
        }
    }
    let uid = |owner: &Value| owner["uid"].clone();
    for owner in old.iter().filter(|owner| !new.iter().any(|it| uid(it) == uid(owner))) {
        // Where somebody else is its controller, the policy is ignored.
        let is_other = |it: &&Value| it["controller"] == true && uid(it) != uid(owner);
        if !is_wanted(owner, false) && !old.iter().any(is_other) {
            return wrong(RETENTION, after, &format!("it is taken from {owner}"));
        }
    }
    Ok(())
}
