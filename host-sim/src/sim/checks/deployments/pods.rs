//! Pods of ReplicaSets: which come, of what, and which go.

use super::super::Verdict;
use super::super::model::{Change, Facts};
use super::{Act, wrong};

pub(super) const OWN: &str = "only own pods of a ReplicaSet are touched";
pub(super) const MISSING: &str = "no more pods are created than are missing on the server";
pub(super) const SURPLUS: &str = "only pods that are too many on the server are deleted";
pub(super) const TEMPLATE: &str = "pods are made of their ReplicaSet's template, field by field";
pub(super) const ADOPTION: &str = "only what is selected is adopted, only what is not is let go";

/// Judges what a controller has done to a pod. Those of StatefulSets have rules of their own.
pub(super) fn check(act: Act<'_>, change: &Change) -> Verdict {
    match (&change.before, &change.after) {
        (None, Some(pod)) if is_of_set(pod) => Ok(()),
        (None, Some(pod)) => created(act, pod),
        (Some(pod), None) if pod.deleting => Ok(()),
        (Some(pod), None) => deleted(act, pod),
        (Some(pod), Some(after)) if !pod.deleting && after.deleting => deleted(act, pod),
        (Some(before), Some(after)) if before.controller != after.controller => {
            claimed(act, before, after)
        }
        (Some(before), Some(after)) if !is_of_set(after) => unchanged(before, after),
        _ => Ok(()),
    }
}

fn is_of_set(pod: &Facts) -> bool {
    pod.kind_of_controller() == Some("StatefulSet")
}

fn created(act: Act<'_>, pod: &Facts) -> Verdict {
    let sets = act.owners_of(pod);
    let Some(set) = sets.first() else {
        return wrong(OWN, pod, "its ReplicaSet is not there, or on its way out");
    };
    if !sets.iter().any(|set| pod.is_made_of_all(set.template())) {
        return wrong(TEMPLATE, pod, "its ReplicaSet's template says something else");
    }
    if !sets.iter().any(|set| set.selects(&pod.object["metadata"]["labels"])) {
        return wrong(OWN, pod, "its ReplicaSet does not select it");
    }
    let wanted = sets.iter().map(|set| set.spec("replicas")).max().unwrap_or(0);
    let there = there_for_sure(act, set, pod);
    if there as i64 >= wanted {
        return wrong(MISSING, pod, &format!("{wanted} were wanted, {there} there already"));
    }
    Ok(())
}

/// The other pods of a ReplicaSet that there are for sure, as far as the controller could know: those
/// that it has been told of, and those that it has created itself. All of them still count.
fn there_for_sure(act: Act<'_>, set: &Facts, pod: &Facts) -> usize {
    let counts = |it: &Facts| {
        it.is_of(&set.uid) && it.is_active() && set.selects(&it.object["metadata"]["labels"])
    };
    let own: Vec<&str> = act.own.created(act.device, &set.uid).collect();
    let is_sure = |versions: &Vec<Option<&Facts>>| {
        let Some(Some(last)) = versions.last() else { return false };
        let is_own = own.contains(&last.uid.as_str());
        let mut there = versions.iter().skip_while(|it| is_own && it.is_none());
        last.uid != pod.uid && there.all(|it| it.is_some_and(counts))
    };
    act.siblings("pods", pod).filter(is_sure).count()
}

fn deleted(act: Act<'_>, pod: &Facts) -> Verdict {
    let versions = act.view.versions("pods", &pod.key).flatten();
    let versions: Vec<&Facts> = versions.filter(|it| it.uid == pod.uid).collect();
    if versions.iter().any(|it| is_of_set(it)) {
        return Ok(());
    }
    let sets: Vec<&Facts> = versions.iter().flat_map(|it| act.owners_of(it)).collect();
    let Some(wanted) = sets.iter().map(|set| set.spec("replicas")).min() else {
        return wrong(OWN, pod, "no ReplicaSet that is to stay owns it");
    };
    // It may have had more than one owner.
    let may_count = |it: &Facts| {
        let is_taken = it.uid != pod.uid
            && act.own.has_deleted(act.device, &it.uid)
            && !act.view.basis.there_again.contains(&it.uid);
        it.is_active() && sets.iter().any(|set| it.is_of(&set.uid)) && !is_taken
    };
    let pods = act.siblings("pods", pod);
    let there = pods.filter(|it| it.iter().flatten().any(|it| may_count(it))).count();
    if there as i64 <= wanted {
        return wrong(SURPLUS, pod, &format!("{wanted} were wanted, {there} there at most"));
    }
    Ok(())
}

/// Judges a change of a pod's controller.
fn claimed(act: Act<'_>, before: &Facts, after: &Facts) -> Verdict {
    let (is_adoption, owned) = match (&before.controller, &after.controller) {
        (None, Some(_)) => (true, after),
        (Some(_), None) => (false, before),
        _ => return wrong(ADOPTION, after, "it goes from one controller to another"),
    };
    if is_of_set(owned) {
        return Ok(());
    }
    let sets = act.owners_of(owned);
    let is_right = |pod: &Facts| {
        let labels = &pod.object["metadata"]["labels"];
        let counts = !is_adoption || pod.is_active();
        counts && sets.iter().any(|set| set.selects(labels) == is_adoption)
    };
    if !act.view.may_be("pods", &after.key, is_right) {
        let what = if is_adoption { "it is adopted" } else { "it is let go" };
        return wrong(ADOPTION, after, what);
    }
    unchanged(before, after)
}

/// Nothing but its owner changes.
fn unchanged(before: &Facts, after: &Facts) -> Verdict {
    if before.without_owner() != after.without_owner() {
        return wrong(OWN, after, "something of it changes");
    }
    Ok(())
}
