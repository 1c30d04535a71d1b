//! Revisions of StatefulSets: one per template, numbered upwards, and kept while they are in use.

use super::super::Verdict;
use super::super::model::{Change, Facts, Model};
use super::super::past::View;
use super::names::{REVISION, member};
use super::{sets, wrong};

pub(super) const TEMPLATE: &str = "one revision per template of a StatefulSet";
pub(super) const NUMBER: &str = "revisions of a StatefulSet grow";
pub(super) const IN_USE: &str = "revisions that are in use stay";

/// Judges what a controller has done to a revision.
pub(super) fn check(view: View<'_>, model: &Model, change: &Change) -> Verdict {
    match (&change.before, &change.after) {
        (None, Some(revision)) => created(view, model, revision),
        (Some(before), Some(after)) if before.deleting == after.deleting => {
            changed(view, model, before, after)
        }
        (Some(revision), _) => deleted(view, revision),
        (None, None) => Ok(()),
    }
}

/// The StatefulSet of a revision, by namespace and name.
fn owner_key(revision: &Facts) -> String {
    let owners = revision.object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    let owner = owners.find(|owner| owner["kind"] == "StatefulSet");
    let name = owner.and_then(|owner| owner["name"].as_str()).unwrap_or_default();
    format!("{}/{name}", revision.namespace())
}

/// The other revisions of the same StatefulSet that the controller knew for sure.
fn others<'m>(
    view: View<'m>,
    model: &'m Model,
    revision: &'m Facts,
) -> impl Iterator<Item = &'m Facts> {
    let uid = revision.controller.as_deref().unwrap_or_default();
    let all = model.controlled_by(uid).filter(|it| it.plural == "controllerrevisions");
    all.filter(move |it| {
        it.uid != revision.uid && view.must_be("controllerrevisions", &it.key, |it| it.is_of(uid))
    })
}

fn created(view: View<'_>, model: &Model, revision: &Facts) -> Verdict {
    let uid = revision.controller.as_deref().unwrap_or_default();
    let template = revision.revised_template();
    // One that is on its way out gets its revision, too, as in Kubernetes.
    let is_it = |set: &Facts| set.uid == uid && *set.template() == template;
    if !view.may_be("statefulsets", &owner_key(revision), is_it) {
        return wrong(TEMPLATE, revision, "its template is not that of the StatefulSet");
    }
    if let Some(twin) = others(view, model, revision).find(|it| it.revised_template() == template) {
        return wrong(TEMPLATE, revision, &format!("{} is the same", twin.key));
    }
    numbered(view, model, revision)
}

fn numbered(view: View<'_>, model: &Model, revision: &Facts) -> Verdict {
    let number = |it: &Facts| it.object["revision"].as_i64().unwrap_or_default();
    let known = |it: &Facts| {
        let versions = view.versions("controllerrevisions", &it.key).flatten();
        versions.map(number).min().unwrap_or(0)
    };
    let most = others(view, model, revision).map(known).max().unwrap_or(0);
    if number(revision) <= most {
        let detail = format!("it gets {}, another has {most}", number(revision));
        return wrong(NUMBER, revision, &detail);
    }
    Ok(())
}

fn changed(view: View<'_>, model: &Model, before: &Facts, after: &Facts) -> Verdict {
    if before.object["data"] != after.object["data"] {
        return wrong(TEMPLATE, after, "its template has changed");
    }
    if before.controller != after.controller {
        let uid = after.controller.as_deref().unwrap_or_default();
        let labels = &after.object["metadata"]["labels"];
        let sets = sets(view, &owner_key(after), uid);
        if before.controller.is_some() || !sets.iter().any(|set| set.selects(labels)) {
            return wrong(TEMPLATE, after, "it is adopted by somebody who does not select it");
        }
        return Ok(());
    }
    numbered(view, model, after)
}

fn deleted(view: View<'_>, revision: &Facts) -> Verdict {
    let uid = revision.controller.as_deref().unwrap_or_default();
    let set = owner_key(revision);
    let name = revision.name();
    let is_used = |key: &str| {
        let is_member = |key: &str| {
            let pod = key.split('/').nth(1).and_then(member);
            pod.is_some_and(|(of, _)| format!("{}/{of}", revision.namespace()) == set)
        };
        let has = |pod: &Facts| pod.is_of(uid) && pod.label(REVISION) == Some(name);
        is_member(key) && view.must_be("pods", key, has)
    };
    if view.past.keys("pods", revision.namespace()).any(is_used) {
        return wrong(IN_USE, revision, "a pod is of it");
    }
    let is_named = |it: &Facts| {
        let names = |field: &str| it.object["status"][field] == name;
        it.uid == uid && (names("currentRevision") || names("updateRevision"))
    };
    if view.must_be("statefulsets", &set, is_named) {
        return wrong(IN_USE, revision, "the status names it");
    }
    Ok(())
}
