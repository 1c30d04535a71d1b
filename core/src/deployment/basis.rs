//! What a plan was made from, as far as its later steps depend on it.
//!
//! A plan is carried out one request at a time, and each may take a while. Where Kubernetes would
//! act by what it knew when it began, a plan whose ground has gone is made anew.

use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::store::{Cache, Record};
use crate::wire::{IntAnnotation, Strategy};

use super::plan::{Plan, Step};

/// What is left of the ground that a step was decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// All of it.
    Holds,
    /// Something else would be decided now.
    Gone,
    /// Something has happened that Kubernetes would run into a conflict by: the step fails.
    Conflict,
}

/// What a plan was made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basis {
    /// The Deployment's.
    generation: i64,
    /// The highest that a ReplicaSet has.
    highest_revision: i64,
    /// Where the Deployment was asked to be rolled back to.
    rollback_to: IntAnnotation,
    /// Pods that are available, as the ReplicaSets tell.
    available: i32,
    /// Pods that the ReplicaSets are to have.
    wanted: i32,
    /// ReplicaSets of other templates than the Deployment's that are not being deleted.
    others: u16,
}

impl Basis {
    /// Nothing has been planned.
    pub(crate) const NONE: Self = Self {
        generation: 0,
        highest_revision: 0,
        rollback_to: IntAnnotation::Absent,
        available: 0,
        wanted: 0,
        others: 0,
    };

    /// What a plan that is made now is made from.
    pub(crate) fn of(cache: &Cache<'_>, key: Slot) -> Self {
        let d = cache.deployments.get(key);
        let sets = || cache.replica_sets_of(key).map(|(_, set)| set.record);
        let template = d.map(|d| d.record.template());
        let others = sets().filter(|set| !set.is_deleting() && Some(set.template()) != template);
        Self {
            generation: d.map_or(0, |d| d.record.generation()),
            highest_revision: sets().filter_map(|set| set.revision().value()).max().unwrap_or(0),
            rollback_to: d.map_or(IntAnnotation::Absent, |d| d.record.rollback_to()),
            available: sum(sets().map(|set| set.available_replicas.get())),
            wanted: sum(sets().map(|set| set.replicas)),
            others: u16::try_from(others.count()).unwrap_or(u16::MAX),
        }
    }

    /// The one answer to whether a step of the plan still is what it was meant to be.
    pub(super) fn of_step(&self, step: &Step, plan: &Plan, cache: &Cache<'_>, key: Slot) -> Ground {
        if would_conflict(step, plan, cache, key) {
            return Ground::Conflict;
        }
        let holds: fn(&Self, &Self) -> bool = match *step {
            Step::Create { .. } => |then, now| {
                now.highest_revision <= then.highest_revision && now.wanted <= then.wanted
            },
            Step::Update { revision: Some(_), .. } => {
                |then, now| now.highest_revision <= then.highest_revision
            }
            // With fewer pods available, fewer can be spared.
            Step::Scale { available: Some(_), .. } => |then, now| now.available >= then.available,
            // What somebody else has let grow meanwhile takes of the room that there was.
            Step::Scale { from, to, .. } if to > from => |then, now| now.wanted <= then.wanted,
            Step::Scale { .. } | Step::Update { .. } => |_, _| true,
            // Kubernetes looks at what there was when it began: it deletes what it has given pods in the
            // same sync, and what is not too much any more because somebody else has deleted some.
            Step::Delete { set } if !is_idle(cache, key, set) => return Ground::Gone,
            Step::Delete { .. } => |then, now| now.others >= then.others,
            Step::Rollback { .. } | Step::ClearRollback => {
                |then, now| now.rollback_to == then.rollback_to
            }
            Step::Status | Step::Warn(_) => return Ground::Holds,
        };
        let mut now = Self::of(cache, key);
        now.others = now.others.saturating_add(deletions_before(plan, step));
        now.wanted = now.wanted.saturating_sub(growth_before(plan, step));
        let holds = now.generation == self.generation && holds(self, &now);
        if holds { Ground::Holds } else { Ground::Gone }
    }
}

/// Whether Kubernetes would run into a conflict with this step, or has to.
fn would_conflict(step: &Step, plan: &Plan, cache: &Cache<'_>, key: Slot) -> bool {
    match *step {
        // Somebody else has scaled it, or a pod that was to go because it was not available is by now.
        Step::Scale { set, from, available, .. } => {
            !is_size(cache, key, set, from)
                || available.is_some_and(|then| available_of(cache, set) > then)
        }
        // An old pod has turned up.
        Step::Create { replicas: 1.., .. } => old_pod_runs(cache, key),
        // Somebody else has told of a newer generation.
        Step::Status => {
            let told = cache.deployments.get(key).map_or(0, |d| d.record.observed_generation());
            plan.status.counts.get().is_some_and(|counts| counts.observed_generation < told)
        }
        _ => false,
    }
}

/// Whether a ReplicaSet still is the Deployment's and of this size.
fn is_size(cache: &Cache<'_>, key: Slot, set: Slot, size: i32) -> bool {
    cache.owner_of(Kind::ReplicaSet, set).of(Kind::Deployment) == Some(key)
        && cache.replica_sets.get(set).is_some_and(|set| set.record.replicas == size)
}

/// Whether a ReplicaSet still is the Deployment's, has no pods and is to have none.
fn is_idle(cache: &Cache<'_>, key: Slot, set: Slot) -> bool {
    is_size(cache, key, set, 0)
        && cache.replica_sets.get(set).is_some_and(|set| {
            let rs = set.record;
            rs.status_replicas.get() == 0 && rs.generation() <= rs.observed_generation()
        })
}

/// How many ReplicaSets a plan deletes before it takes a step.
fn deletions_before(plan: &Plan, step: &Step) -> u16 {
    let before = plan.steps.iter().take_while(|it| *it != step);
    before.filter(|it| matches!(it, Step::Delete { .. })).count() as u16
}

/// By how much a plan lets all sizes together grow before it takes a step.
fn growth_before(plan: &Plan, step: &Step) -> i32 {
    let before = plan.steps.iter().take_while(|it| *it != step);
    sum(before.map(|it| match it {
        Step::Create { replicas, .. } => *replicas,
        Step::Scale { from, to, .. } => to.saturating_sub(*from),
        _ => 0,
    }))
}

fn sum(numbers: impl Iterator<Item = i32>) -> i32 {
    numbers.fold(0, i32::saturating_add)
}

/// How many pods of a ReplicaSet are available, as it tells.
fn available_of(cache: &Cache<'_>, set: Slot) -> i32 {
    cache.replica_sets.get(set).map_or(0, |set| set.record.available_replicas.get())
}

/// Whether a Deployment that recreates has a pod of an old template. A rollback does not ask.
fn old_pod_runs(cache: &Cache<'_>, key: Slot) -> bool {
    let Some(d) = cache.deployments.get(key) else { return false };
    let template = d.record.template();
    d.record.strategy() == Strategy::Recreate
        && !planted(Bug::RecreateImpatient)
        && d.record.rollback_to().value().is_none()
        && cache
            .replica_sets_of(key)
            .any(|(slot, set)| set.record.template() != template && may_have_pods(cache, slot))
}

/// Whether a ReplicaSet has a pod that has not come to its end, or may have one that did not fit.
pub(super) fn may_have_pods(cache: &Cache<'_>, set: Slot) -> bool {
    let mut pods = cache.pods_of(Kind::ReplicaSet, set);
    pods.any(|(_, pod)| !pod.record.phase().is_terminal()) || cache.is_blind(Kind::ReplicaSet, set)
}
