//! Finding, creating and keeping up to date the ReplicaSet of a Deployment's template.

use crate::control::set_condition;
use crate::planted::{Bug, planted};
use crate::store::ConditionReason;
use crate::time::Timestamp;
use crate::wire::{ConditionStatus, IntAnnotation};

use super::plan::{ConditionWrite, End, NewSet, Plan, StatusWrite, Step};
use super::view::{Set, View};

/// Brings the new ReplicaSet up to date, if there is one. Returns whether the sync goes on.
///
/// Kubernetes looks twice in one sync; when there was something to write, its second look
/// collides with the first, and the sync is done over.
pub(super) fn sync_existing(view: &mut View, plan: &mut Plan, now: Timestamp) -> bool {
    let before = plan.steps.len();
    let goes_on = sync_existing_once(view, plan, now);
    let wrote_set = plan.steps.iter().skip(before).any(|step| matches!(step, Step::Update { .. }));
    if wrote_set {
        plan.end = End::Again;
    }
    goes_on && !wrote_set
}

/// As [`sync_existing`], for a sync that looks only once.
pub(super) fn sync_existing_once(view: &mut View, plan: &mut Plan, now: Timestamp) -> bool {
    let Some(new) = view.new_set().copied() else { return true };
    let Some(slot) = new.slot else { return true };
    let revision = next_revision(view, &new);
    if revision.is_some()
        || !new.has_annotations
        || new.min_ready_seconds != view.deployment.min_ready_seconds
    {
        let annotations = !new.has_annotations;
        if let (Some(revision), Some(at)) = (revision, view.new) {
            view.second_revision = view.max_old_revision;
            if let Some(new) = view.sets.get_mut(at) {
                new.revision = IntAnnotation::Value(revision);
            }
        }
        return plan.push(Step::Update { set: slot, revision, annotations });
    }
    publish_revision(view, plan, now, &new)
}

/// The revision the new ReplicaSet has to get, if it has not got it: one more than all old ones.
/// One that is no number stays as it is.
fn next_revision(view: &View, new: &Set) -> Option<i64> {
    let next = view.max_old_revision.saturating_add(1);
    let current = match new.revision {
        IntAnnotation::Absent => 0,
        IntAnnotation::Invalid => return None,
        IntAnnotation::Value(revision) => revision,
    };
    (current < next).then_some(next)
}

/// The Deployment shows the revision of its new ReplicaSet, and that it has one.
fn publish_revision(view: &mut View, plan: &mut Plan, now: Timestamp, new: &Set) -> bool {
    let d = &mut view.deployment;
    let mut write = StatusWrite { new_set: NewSet::of(new), ..StatusWrite::EMPTY };
    if let Some(revision) = new.revision.value().filter(|_| new.revision != d.revision) {
        write.revision = Some(revision);
        d.revision = new.revision;
    }
    if d.progress_deadline_seconds.is_some() && d.progressing.status().is_none() {
        let found = ConditionReason::FoundNewReplicaSet;
        if let Some(set) = set_condition(&d.progressing, ConditionStatus::True, found, now) {
            d.progressing = set.stored();
            write.progressing = ConditionWrite::Set(set);
        }
    }
    !write.changes_something() || plan.push_status(write)
}

/// Plans the creation of the new ReplicaSet. Returns whether the sync goes on.
pub(super) fn create(view: &mut View, plan: &mut Plan, now: Timestamp) -> bool {
    let replicas = view.new_size(0);
    let step = if planted(Bug::RevisionReused) { 0 } else { 1 };
    let revision = view.max_old_revision.saturating_add(step);
    if !plan.push(Step::Create { replicas, revision }) {
        return false;
    }
    let mut set = Set::unborn(replicas, view.deployment.min_ready_seconds);
    set.revision = IntAnnotation::Value(revision);
    if view.sets.push(set).is_err() {
        plan.end = End::Again;
        return false;
    }
    view.new = view.sets.len().checked_sub(1);
    view.second_revision = view.max_old_revision;
    let d = &mut view.deployment;
    let mut write = StatusWrite { new_set: NewSet::Unborn, ..StatusWrite::EMPTY };
    if d.revision != IntAnnotation::Value(revision) {
        write.revision = Some(revision);
        d.revision = IntAnnotation::Value(revision);
    }
    if d.progress_deadline_seconds.is_some() {
        let created = ConditionReason::NewReplicaSetCreated;
        if let Some(set) = set_condition(&d.progressing, ConditionStatus::True, created, now) {
            d.progressing = set.stored();
            write.progressing = ConditionWrite::Set(set);
        }
    }
    !write.changes_something() || plan.push_status(write)
}

impl NewSet {
    pub(super) fn of(set: &Set) -> Self {
        set.slot.map_or(Self::Unborn, Self::Cached)
    }
}
