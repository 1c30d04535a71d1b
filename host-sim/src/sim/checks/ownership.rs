//! Who adopts what, and lets go of what: only orphans that are selected, only what no longer is.
//!
//! Whether something is selected is judged by what the controller knew when it decided: labels may
//! change while its request is under way, and Kubernetes does not prevent that either.

use picokube_core::wire::Uid;
use serde_json::Value;

use super::super::operation::Verb;
use super::model::{Change, Facts, Model};
use super::{Issued, Tables, Verdict};

pub(super) const ADOPTION: &str = "only matching orphans are adopted";
pub(super) const BIRTH: &str = "what is created has its owner from the beginning";
pub(super) const RELEASE: &str = "only what no longer matches is released";

/// Judges a request that changes the owner of an object.
pub(super) fn check_claim(issued: &Issued<'_, '_>) -> Verdict {
    let operation = issued.operation;
    if operation.verb != Verb::Patch || operation.status {
        return Ok(());
    }
    let document: Value = serde_json::from_str(issued.document).unwrap_or_default();
    let owner = &document["metadata"]["ownerReferences"][0];
    let Some(uid) = owner["uid"].as_str().and_then(Uid::parse) else {
        return Ok(());
    };
    let releases = owner["$patch"] == "delete";
    match (is_selected(issued, uid), releases) {
        (Some(false), false) => Err((ADOPTION, "its new owner does not select it".to_owned())),
        (Some(true), true) => Err((RELEASE, "its owner still selects it".to_owned())),
        _ => Ok(()),
    }
}

/// Whether the owner of that uid selects the object of a request, as the controller knows both.
fn is_selected(issued: &Issued<'_, '_>, owner: Uid) -> Option<bool> {
    let (cache, operation) = (issued.cache, issued.operation);
    let texts = &*cache.texts;
    let (namespace, name) = (operation.namespace.as_str(), operation.name.as_str());
    if operation.resource == "pods" {
        let pod = cache.pods.get(cache.pods.find(texts, namespace, name)?)?;
        let (kind, set) = issued.keeper(owner)?;
        let rs = cache.table_of(kind).get(set)?;
        return Some(rs.record.selector.matches(texts, pod.record.labels));
    }
    let rs = cache.replica_sets.get(cache.replica_sets.find(texts, namespace, name)?)?;
    let d = cache.deployments.get(cache.deployments.find_uid(owner)?)?;
    Some(d.record.selector.matches(texts, rs.record.labels))
}

/// Judges a change of an object's owner.
pub(super) fn check(model: &Model, change: &Change) -> Verdict {
    let (before, after) = match (&change.before, &change.after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(born)) if born.controller.is_none() && !is_claim(born) => {
            return wrong(BIRTH, born, "it belongs to nobody");
        }
        _ => return Ok(()),
    };
    match (&before.controller, &after.controller) {
        (before, after) if before == after => Ok(()),
        _ if is_claim(after) => Ok(()),
        (Some(_), Some(_)) => wrong(ADOPTION, after, "it had another controller"),
        // It may have gone while the request was under way.
        (None, Some(owner))
            if !model.objects.contains_key(owner) && !model.gone.contains_key(owner) =>
        {
            wrong(ADOPTION, after, "its new owner has never been there")
        }
        (None | Some(_), _) => Ok(()),
    }
}

/// Claims belong to nobody, or to whom their StatefulSet says: that is looked at elsewhere.
fn is_claim(object: &Facts) -> bool {
    object.plural == "persistentvolumeclaims"
}

fn wrong(property: &'static str, object: &Facts, detail: &str) -> Verdict {
    Err((property, format!("{}/{}: {detail}", object.plural, object.key)))
}
