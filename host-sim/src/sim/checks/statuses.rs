//! A status that a controller writes makes sense, and never goes back to an older generation.

use super::Verdict;
use super::model::{Change, Facts};

pub(super) const PROPERTY: &str = "statuses are consistent";

/// `crossing`: two controllers write the same status, or one has given up a write and sent another:
/// the older may arrive later. Of two controllers, Kubernetes' own would write it over the newer
/// one, too; of one, the version in its write would prevent it. Here it is put right when the watch
/// tells of it.
pub(super) fn check(change: &Change, crossing: bool) -> Verdict {
    let Some(after) = change.after.as_ref().filter(|after| after.plural != "pods") else {
        return Ok(());
    };
    let observed = after.status("observedGeneration");
    let generation = after.object["metadata"]["generation"].as_i64().unwrap_or_default();
    if observed > generation {
        return wrong(after, format!("generation {observed} is observed of {generation}"));
    }
    let before = change.before.as_ref().map_or(0, |before| before.status("observedGeneration"));
    if observed < before && !crossing {
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
