//! What a controller may do to the pods, claims and revisions of StatefulSets.
//!
//! Judged at every change that a controller makes, on the server's objects, by plain code of its
//! own: how names are read and what a template says is not asked of the controllers. What their
//! delay excuses is said in [`past`](super::past).

mod claims;
pub(in crate::sim) mod names;
mod pods;
mod revisions;

use std::collections::{BTreeMap, BTreeSet};

use picokube_core::manager::{Body, Make};

use super::super::device::Told;
use super::super::operation::{Operation, Verb};
use super::super::plan::Plan;
use super::model::{Change, Facts, Model};
use super::past::{Basis, Past, View};
use super::{Instant, Issued, Verdict};
use names::member;

/// What the checks of StatefulSets know.
pub(super) struct Sets {
    syncs: BTreeMap<(usize, String), Sync>,
    rules: Rules,
}

/// What depends on the plan.
#[derive(Clone, Copy)]
struct Rules {
    honours_max_unavailable: bool,
}

/// The steps of one controller for one StatefulSet since it decided on them. What lies between two
/// syncs that ask for nothing else is not seen: they are taken for one.
struct Sync {
    /// How far the controller had been told at the first of them.
    told: Told,
    /// Each with how far it had been told then.
    steps: Vec<(Step, Told)>,
    /// How far it had been told when it looked at the set, if no step has followed.
    looked: Option<Told>,
    /// How far it had been told at the last request for the set.
    last: Told,
    /// Since then a request may have had to wait that was decided on.
    held_up: bool,
}

/// A write to a pod or a claim.
#[derive(PartialEq, Eq)]
struct Step {
    verb: Verb,
    is_pod: bool,
    name: String,
}

impl Sync {
    /// No sync takes a step twice: what is repeated is of a later one, which has begun after the first time
    /// at the earliest.
    fn begin_anew_with(&mut self, step: &Step) {
        let Some(before) = self.steps.iter().position(|(it, _)| it == step) else { return };
        self.steps.drain(..=before);
        if let Some((_, told)) = self.steps.first() {
            self.told = *told;
        }
    }
}

impl Sets {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            syncs: BTreeMap::new(),
            rules: Rules { honours_max_unavailable: plan.shape.max_unavailable_stateful_set },
        }
    }

    /// A controller has forgotten everything.
    pub(super) fn forget(&mut self, device: usize) {
        self.syncs.retain(|(of, _), _| *of != device);
    }

    /// A request of a controller waits to be sent again: others that were decided on may find no
    /// room meanwhile.
    pub(super) fn hold_up(&mut self, device: usize) {
        let of_device = self.syncs.iter_mut().filter(|((of, _), _)| *of == device);
        of_device.for_each(|(_, sync)| sync.held_up = true);
    }

    /// A request leaves a controller: what may it have been decided on?
    pub(super) fn issued(
        &mut self,
        model: &Model,
        issued: &Issued<'_, '_>,
        told: &Told,
        at: Instant,
        is_again: bool,
        is_held_up: bool,
    ) -> Option<Basis> {
        let (key, step) = subject(&model.past, issued)?;
        let mut basis = Basis {
            told: *told,
            until: at.version,
            wall: at.wall,
            deleted: Vec::new(),
            there_again: BTreeSet::new(),
            answered: 0,
            lately: *told,
        };
        let fresh = || Sync {
            told: *told,
            steps: Vec::new(),
            looked: None,
            last: *told,
            held_up: is_held_up,
        };
        let sync = self.syncs.entry((issued.device, key)).or_insert_with(fresh);
        // A look at the set may come after the decision and before its first step.
        let is_look = step.is_none() && issued.operation.verb == Verb::Get;
        if is_look && sync.steps.is_empty() && !is_again {
            sync.looked = Some(*told);
        }
        match step {
            None if is_look => {}
            // Something before the decision, or after its last step.
            None if !is_again => sync.steps.clear(),
            Some(step) => {
                if !is_again {
                    sync.begin_anew_with(&step);
                }
                if sync.steps.is_empty() && !is_again {
                    let looked = sync.looked.take();
                    sync.told = looked.unwrap_or(if sync.held_up { sync.last } else { *told });
                }
                basis.told = sync.told;
                let is_deletion =
                    |(step, _): &&(Step, Told)| step.is_pod && step.verb == Verb::Delete;
                // What is sent again does not come before itself.
                let itself = sync.steps.iter().position(|(it, _)| is_again && *it == step);
                let before = &sync.steps[..itself.unwrap_or(sync.steps.len())];
                let deleted = before.iter().rev().take_while(is_deletion);
                basis.deleted = deleted.map(|(step, _)| step.name.clone()).collect();
                if !is_again {
                    sync.steps.push((step, *told));
                }
            }
            None => {}
        }
        sync.last = *told;
        sync.held_up = is_held_up;
        Some(basis)
    }

    /// Judges a change that a controller has made.
    pub(super) fn check(&self, view: View<'_>, model: &Model, change: &Change) -> Verdict {
        let Some(plural) = change.after.as_ref().or(change.before.as_ref()).map(|it| it.plural)
        else {
            return Ok(());
        };
        match plural {
            "pods" => pods::check(view, self.rules, model, change),
            "persistentvolumeclaims" => claims::check(view, change),
            "controllerrevisions" => revisions::check(view, model, change),
            "statefulsets" => unchanged(change),
            _ => Ok(()),
        }
    }
}

/// Controllers write the status of a StatefulSet, and nothing else.
fn unchanged(change: &Change) -> Verdict {
    const PROPERTY: &str = "of a StatefulSet, only its status is written";
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        return Err((PROPERTY, "it comes or goes".to_owned()));
    };
    if before.object["spec"] != after.object["spec"] || before.deleting != after.deleting {
        return Err((PROPERTY, before.key.clone()));
    }
    Ok(())
}

/// The StatefulSet that a request is for, by namespace and name; and what is done, if that is a step
/// that was decided on.
fn subject(past: &Past, issued: &Issued<'_, '_>) -> Option<(String, Option<Step>)> {
    let Operation { verb, resource, namespace, name, .. } = issued.operation;
    let key = |set: &str| format!("{namespace}/{set}");
    let step = |is_pod, name: &str| Some(Step { verb: *verb, is_pod, name: name.to_owned() });
    let make = match &issued.request.body {
        Body::Splice(splice) => Some(&splice.make),
        _ => None,
    };
    match (resource.as_str(), make) {
        ("statefulsets", _) => Some((key(name), None)),
        ("controllerrevisions", Some(Make::ControllerRevision { owner, .. })) => {
            Some((key(owner), None))
        }
        ("controllerrevisions", _) => Some((key(name.rsplit_once('-')?.0), None)),
        ("pods", Some(Make::StatefulSetPod { owner, ordinal, .. })) => {
            Some((key(owner), step(true, &format!("{owner}-{ordinal}"))))
        }
        ("pods", _) => {
            let set = key(member(name)?.0);
            let is_claim = *verb == Verb::Patch && issued.document.contains("ownerReferences");
            let step = if is_claim { None } else { step(true, name) };
            past.has_been("statefulsets", &set).then_some((set, step))
        }
        ("persistentvolumeclaims", make) => {
            let name = match make {
                Some(Make::Claim { name, .. }) => name.as_str(),
                _ => name.as_str(),
            };
            let mut sets = past.keys("statefulsets", namespace);
            let set = sets.find(|set| {
                let stem = set.split('/').nth(1).unwrap_or_default();
                member(name).is_some_and(|(claim, _)| claim.ends_with(&format!("-{stem}")))
            })?;
            Some((set.to_owned(), step(false, name)))
        }
        _ => None,
    }
}

/// The versions of a StatefulSet that a controller may have acted for: it is not being deleted.
fn sets<'v>(view: View<'v>, key: &str, uid: &str) -> Vec<&'v Facts> {
    let versions = view.versions("statefulsets", key).flatten();
    let mut sets: Vec<&Facts> = versions.filter(|set| set.uid == uid && !set.deleting).collect();
    // Most versions differ in their status alone.
    sets.dedup_by(|later, earlier| {
        let same = |field: &str| later.object[field] == earlier.object[field];
        let revision = |set: &Facts| set.object["status"]["currentRevision"].clone();
        same("spec")
            && revision(later) == revision(earlier)
            && later.object["metadata"]["annotations"] == earlier.object["metadata"]["annotations"]
    });
    sets
}

fn wrong(property: &'static str, object: &Facts, detail: &str) -> Verdict {
    Err((property, format!("{}/{}: {detail}", object.plural, object.key)))
}
