//! The revision that a ReplicaSet gets is above those of all its siblings.

use super::Verdict;
use super::model::{Change, Facts, Model};

pub(super) const PROPERTY: &str = "revisions grow";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";

pub(super) fn check(model: &Model, change: &Change) -> Verdict {
    let Some(set) = change.after.as_ref().filter(|set| set.plural == "replicasets") else {
        return Ok(());
    };
    let history = set.annotation(HISTORY).map_or(0, str::len);
    if history > 2000 {
        return Err((PROPERTY, format!("{}: a history of {history} characters", set.key)));
    }
    let new = revision(set);
    let old = change.before.as_ref().and_then(revision);
    let (Some(new), true, Some(owner)) = (new, new != old, &set.controller) else {
        return Ok(());
    };
    let siblings = model.controlled_by(owner).filter(|sibling| sibling.uid != set.uid);
    match siblings.filter_map(revision).max() {
        Some(most) if new <= most => {
            Err((PROPERTY, format!("{} gets {new}, another has {most}", set.key)))
        }
        _ => Ok(()),
    }
}

fn revision(set: &Facts) -> Option<i64> {
    set.annotation(REVISION)?.parse().ok()
}
