//! Rollback on request of the annotation `deprecated.deployment.rollback.to`.

use crate::time::Timestamp;
use crate::wire::IntAnnotation;

use super::new_replica_set;
use super::plan::{End, Plan, Step, Warning};
use super::view::{Set, View};

/// Plans a rollback to `revision`; 0 is the one before the latest.
pub(super) fn rollback(view: &mut View, plan: &mut Plan, now: Timestamp, revision: i64) {
    let goes_on = match view.new {
        Some(_) => new_replica_set::sync_existing_once(view, plan, now),
        None => new_replica_set::create(view, plan, now),
    };
    if !goes_on {
        return;
    }
    if plan.steps.contains(&Step::Status) {
        // The Deployment has just been written; what follows wants its new version.
        plan.end = End::Again;
        return;
    }
    let wanted = if revision == 0 { view.second_revision } else { revision };
    if wanted == 0 {
        return refuse(plan, Warning::NoLastRevision);
    }
    match view.sets.iter().find(|set| set.revision == IntAnnotation::Value(wanted)) {
        None => refuse(plan, Warning::NoSuchRevision),
        Some(Set { slot: Some(set), same_template: false, .. }) => {
            plan.push(Step::Rollback { set: *set, revision: wanted });
        }
        Some(_) => refuse(plan, Warning::TemplateUnchanged),
    }
}

fn refuse(plan: &mut Plan, warning: Warning) {
    if plan.push(Step::Warn(warning)) {
        plan.push(Step::ClearRollback);
    }
}
