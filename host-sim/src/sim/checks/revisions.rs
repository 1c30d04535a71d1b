//! The revision that a ReplicaSet gets is above those of all its siblings that are known.

use picokube_core::kind::Kind;
use picokube_core::manager::{Body, Make};
use serde_json::Value;

use super::super::operation::Verb;
use super::model::Change;
use super::{Issued, Verdict};

pub(super) const PROPERTY: &str = "revisions grow";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const MOST_HISTORY: usize = 2000;

/// Looks at a request that gives a ReplicaSet its revision.
pub(super) fn check(issued: &Issued<'_, '_>) -> Verdict {
    let cache = issued.cache;
    let operation = issued.operation;
    let (deployment, own, revision) = match &issued.request.body {
        Body::Splice(splice) if operation.is(Verb::Create, "replicasets") => {
            let Make::ReplicaSet { revision, .. } = splice.make else { return Ok(()) };
            (cache.deployments.find_uid(splice.uid), None, Some(revision))
        }
        _ if operation.is(Verb::Patch, "replicasets") => {
            let set = cache.replica_sets.find(cache.texts, &operation.namespace, &operation.name);
            let owner =
                set.and_then(|set| cache.owner_of(Kind::ReplicaSet, set).of(Kind::Deployment));
            let document: Value = serde_json::from_str(issued.document).unwrap_or_default();
            let revision = document["metadata"]["annotations"][REVISION].as_str();
            (owner, set, revision.and_then(|revision| revision.parse().ok()))
        }
        _ => return Ok(()),
    };
    let (Some(deployment), Some(revision)) = (deployment, revision) else { return Ok(()) };
    let siblings = cache.replica_sets_of(deployment).filter(|(slot, _)| Some(*slot) != own);
    let most = siblings.filter_map(|(_, set)| set.record.revision().value()).max();
    match most {
        Some(most) if revision <= most => {
            Err((PROPERTY, format!("it gets {revision}, another has {most}")))
        }
        _ => Ok(()),
    }
}

/// Looks at what has become of the history.
pub(super) fn check_history(change: &Change) -> Verdict {
    let history = change.after.as_ref().and_then(|set| set.annotation(HISTORY)).map_or(0, str::len);
    if history > MOST_HISTORY {
        return Err((PROPERTY, format!("a history of {history} characters")));
    }
    Ok(())
}
