//! A status that a controller writes makes sense, and never goes back to an older generation.

use super::Verdict;
use super::model::{Change, Facts};
use super::past::View;

pub(super) const PROPERTY: &str = "statuses are consistent";

/// Two controllers may write the same status, or one may have given up a write and sent another: the older
/// may arrive later, and is excused as long as the newer was not known when it left. Kubernetes' own would
/// write it, too. It is put right when the watch tells of it.
pub(super) fn check(view: View<'_>, change: &Change) -> Verdict {
    let Some(after) = change.after.as_ref().filter(|after| after.plural != "pods") else {
        return Ok(());
    };
    let observed = after.status("observedGeneration");
    let generation = after.object["metadata"]["generation"].as_i64().unwrap_or_default();
    if observed > generation {
        return wrong(after, format!("generation {observed} is observed of {generation}"));
    }
    let before = change.before.as_ref().map_or(0, |before| before.status("observedGeneration"));
    let is_newer = |it: &Facts| it.uid == after.uid && it.status("observedGeneration") > observed;
    if observed < before && view.must_be(after.plural, &after.key, is_newer) {
        return wrong(after, format!("generation {observed} is observed after {before}"));
    }
    let count = |field| after.status(field);
    let [all, ready, available] = ["replicas", "readyReplicas", "availableReplicas"].map(count);
    if !(0..=all).contains(&ready) || !(0..=ready).contains(&available) {
        return wrong(after, format!("{all} there, {ready} ready, {available} available"));
    }
    let parts = ["fullyLabeledReplicas", "updatedReplicas"].map(count);
    if parts.iter().any(|part| *part > all) {
        return wrong(after, format!("{parts:?} of {all} are labelled or updated"));
    }
    Ok(())
}

fn wrong(object: &Facts, detail: String) -> Verdict {
    Err((PROPERTY, format!("{}/{}: {detail}", object.plural, object.key)))
}
