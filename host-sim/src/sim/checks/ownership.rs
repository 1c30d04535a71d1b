//! Who adopts what, and lets go of what: only orphans that are selected, only what no longer is.

use super::Verdict;
use super::model::{Change, Facts, Model};

pub(super) const ADOPTION: &str = "only matching orphans are adopted";
pub(super) const BIRTH: &str = "what is created has its owner from the beginning";
pub(super) const RELEASE: &str = "only what no longer matches is released";

pub(super) fn check(model: &Model, change: &Change) -> Verdict {
    let (before, after) = match (&change.before, &change.after) {
        (Some(before), Some(after)) => (before, after),
        (None, Some(born)) if born.controller.is_none() => {
            return wrong(BIRTH, born, "it belongs to nobody");
        }
        _ => return Ok(()),
    };
    match (&before.controller, &after.controller) {
        (before, after) if before == after => Ok(()),
        (Some(_), Some(_)) => wrong(ADOPTION, after, "it had another controller"),
        (None, Some(owner)) => match model.objects.get(owner) {
            // It may have gone while the request was under way.
            None if model.gone.contains_key(owner) => Ok(()),
            None => wrong(ADOPTION, after, "its new owner has never been there"),
            Some(owner) if !owner.selects(before) => {
                wrong(ADOPTION, after, "its new owner does not select it")
            }
            Some(_) => Ok(()),
        },
        (Some(owner), None) => match model.objects.get(owner) {
            Some(owner) if owner.selects(before) && !owner.deleting => {
                wrong(RELEASE, after, "its owner still selects it")
            }
            _ => Ok(()),
        },
        (None, None) => Ok(()),
    }
}

fn wrong(property: &'static str, object: &Facts, detail: &str) -> Verdict {
    Err((property, format!("{}/{}: {detail}", object.plural, object.key)))
}
