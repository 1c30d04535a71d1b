//! The budget of a rollout: not more pods than the surge allows, and not fewer available ones than may
//! be missing.
//!
//! With `L(r)` and `M(r)` the least and the most of ReplicaSet `r` within what the controller may have
//! known (see [`past`](super::super::past)), a size `n` of one of them is within the surge if
//! `n + Σ L(others) ≤ replicas + maxSurge` for some version of the Deployment; and `k` pods may be taken
//! from one if that leaves `replicas − maxUnavailable` of `Σ M` available, or takes none that is.
//!
//! Where sizes are about to follow that of the Deployment, each gets its share of what there is to be,
//! `S(r) = round(s · (replicas + maxSurge) / m)`, with `s` its size before and `m` what there was to be in
//! all when it was scaled last, as it tells; the first also gets what is left over. So `n ≤ S(r)` is right,
//! too, and so is `n + Σ min(L, S)(others) ≤ replicas + maxSurge`, since one is written after the other. The
//! shares of ReplicaSets that were scaled together fit; but one that was somebody else's, or had been let
//! go, tells of another `m`, and Kubernetes takes no more than all pods from the one that has to make up for
//! that.

use super::super::Verdict;
use super::super::model::Facts;
use super::words::MOST;
use super::{Act, wrong};

pub(super) const SURGE: &str = "no more pods than the surge allows on the server";
pub(super) const AVAILABILITY: &str = "no fewer pods available on the server than may be missing";
pub(super) const RECREATE: &str =
    "recreating starts nothing new before the old is gone on the server";

/// Judges the size of a ReplicaSet that has been created, or has grown.
pub(super) fn grown(act: Act<'_>, deployments: &[&Facts], set: &Facts) -> Verdict {
    let to = set.spec("replicas");
    if to == 0 {
        return Ok(());
    }
    let others = sum(act, set, |versions| versions.iter().map(size).min());
    let is_within = |d: &&Facts| {
        let wanted = d.spec("replicas");
        // Kubernetes creates the new ReplicaSet at once when it is asked to roll back.
        to + others <= wanted + d.surge()
            || (d.rolls_back() && !d.is_rolling() && to <= wanted)
            || (d.is_rolling() && is_resizing(act, d, set) && is_shared(act, d, set))
    };
    if !deployments.iter().any(is_within) {
        return wrong(SURGE, set, &format!("{to} and {others} of others"));
    }
    recreated(act, deployments, set)
}

/// Judges a change of a ReplicaSet's size.
pub(super) fn resized(
    act: Act<'_>,
    deployments: &[&Facts],
    before: &Facts,
    after: &Facts,
) -> Verdict {
    let (from, to) = (before.spec("replicas"), after.spec("replicas"));
    if to > from {
        return grown(act, deployments, after);
    }
    let available = |it: &Option<&Facts>| it.map_or(0, |it| it.status("availableReplicas"));
    let others = sum(act, after, |versions| versions.iter().map(available).max());
    let own = || {
        act.view
            .versions("replicasets", &after.key)
            .flatten()
            .map(|it| it.status("availableReplicas"))
    };
    let (least, most) = (own().min().unwrap_or(0), own().max().unwrap_or(0));
    let holds = |d: &&Facts| {
        let needed = d.spec("replicas") - d.missing();
        let is_new = after.is_of_template(&d.bare_template()) && to == d.spec("replicas");
        // Neither regards who is available: the old all go before the new come, and sizes follow their
        // Deployment's in proportion.
        !d.is_rolling() || d.is_paused() || is_new || is_resizing(act, d, after)
            // Those taken are not available, or can be spared.
            || least <= to
            || others + to >= needed
            || others + most - (from - to) >= needed
    };
    if !deployments.iter().any(holds) {
        let detail =
            format!("from {from} to {to}, {most} of them available and {others} of others");
        return wrong(AVAILABILITY, after, &detail);
    }
    Ok(())
}

/// Whether the sizes of ReplicaSets may be about to follow that of their Deployment.
fn is_resizing(act: Act<'_>, deployment: &Facts, set: &Facts) -> bool {
    let wanted = deployment.spec("replicas");
    let is_it = |it: &Facts| it.is_of(&deployment.uid) && it.is_to_be_resized(wanted);
    let mut sets = act.siblings("replicasets", set);
    sets.any(|versions| versions.iter().flatten().any(|it| is_it(it)))
}

/// Whether a ReplicaSet has grown to no more than what may fall to it when all sizes follow that of their
/// Deployment.
fn is_shared(act: Act<'_>, deployment: &Facts, set: &Facts) -> bool {
    let (to, all) = (set.spec("replicas"), deployment.spec("replicas") + deployment.surge());
    let share = |it: &Facts| {
        let told = it.number(MOST).filter(|told| *told > 0);
        let before = told.unwrap_or_else(|| deployment.status("replicas"));
        (2 * it.spec("replicas") * all + before).checked_div(2 * before)
    };
    let least = |it: &Option<&Facts>| size(it).min(it.and_then(share).unwrap_or(i64::MAX));
    let others = sum(act, set, |versions| versions.iter().map(least).min());
    let versions = act.view.versions("replicasets", &set.key).flatten();
    let own = versions.filter(|it| it.uid == set.uid).filter_map(share).max();
    to + others <= all || own.is_some_and(|own| to <= own)
}

/// With `Recreate`, no pod of an old template is there when new ones are to come.
fn recreated(act: Act<'_>, deployments: &[&Facts], set: &Facts) -> Verdict {
    let template = set.bare_template();
    let concerns = |d: &&Facts| {
        !d.is_rolling()
            && !d.is_paused()
            && !d.rolls_back()
            && d.bare_template() == template
            && !is_resizing(act, d, set)
    };
    if !deployments.iter().all(concerns) {
        return Ok(());
    }
    let owner = set.controller.as_deref().unwrap_or_default();
    let is_old = |it: &Facts| it.is_of(owner) && !it.is_of_template(&template);
    let old: Vec<&str> = act
        .siblings("replicasets", set)
        .filter(|it| it.iter().all(|it| it.is_some_and(is_old)))
        .filter_map(|it| Some((*it.last()?)?.uid.as_str()))
        .collect();
    let is_left = |it: &Facts| {
        !it.has_ended() && it.controller.as_deref().is_some_and(|owner| old.contains(&owner))
    };
    let mut pods = act.siblings("pods", set);
    match pods.find(|it| it.iter().all(|it| it.is_some_and(is_left))) {
        Some(pods) => {
            let key = pods.last().and_then(|it| it.as_ref()).map_or("", |pod| &pod.key);
            wrong(RECREATE, set, &format!("{key} is still there"))
        }
        None => Ok(()),
    }
}

/// Sums up something of the other ReplicaSets with the same controller.
fn sum(act: Act<'_>, set: &Facts, each: impl Fn(Vec<Option<&Facts>>) -> Option<i64>) -> i64 {
    let owner = set.controller.as_deref().unwrap_or_default();
    let others = act.siblings("replicasets", set).map(|versions| -> Vec<Option<&Facts>> {
        let is_other = |it: &&Facts| it.is_of(owner) && it.uid != set.uid;
        versions.into_iter().map(|it| it.filter(is_other)).collect()
    });
    others.filter_map(each).sum()
}

fn size(it: &Option<&Facts>) -> i64 {
    it.map_or(0, |it| it.spec("replicas"))
}
