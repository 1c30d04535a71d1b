//! Bringing up the replicas, the lowest ordinal first.

use super::plan::{DeleteReason, End, NewRevision, Plan, Step};
use super::view::{Facts, PodFacts, UpdateStrategy, View};

/// Plans what the replicas need. Whether the sync goes on: with `OrderedReady` it ends at the first replica
/// that is not available.
pub(super) fn process(view: &View<'_>, plan: &mut Plan) -> bool {
    let mut pods = view.replicas().peekable();
    for ordinal in view.set.ordinals() {
        let goes_on = match pods.next_if(|pod| pod.ordinal == ordinal) {
            Some(pod) if pod.is_created() => keep(view, pod, plan),
            _ => create(view, ordinal, plan),
        };
        if plan.end == End::Again || (view.set.is_monotonic() && !goes_on) {
            return false;
        }
    }
    true
}

/// Creates a pod, unless a claim of it is about to go with the one that was. Never goes on: the next is
/// created once this one is available.
fn create(view: &View<'_>, ordinal: i32, plan: &mut Plan) -> bool {
    if !view.claims.is_stale(ordinal) {
        plan.push(Step::Create { ordinal, revision: view.set.revision_at(ordinal) });
    }
    false
}

/// Sees to a pod that is there. Whether the next one may be looked at.
fn keep(view: &View<'_>, pod: &PodFacts, plan: &mut Plan) -> bool {
    let PodFacts { ordinal, slot, .. } = *pod;
    if pod.has_ended() {
        if !pod.is_terminating() {
            plan.delete(pod, DeleteReason::Ended, false);
        }
        return false;
    }
    let mut claims_are_right = view.claims.are_right(ordinal, false);
    if pod.is_pending() && (!claims_are_right || view.claims.are_missing(ordinal)) {
        plan.push(Step::FixClaims { ordinal, pod: slot, is_condemned: false });
        claims_are_right = true;
    }
    if view.set.is_monotonic() && (!pod.is_ready() || pod.is_unavailable()) {
        return false;
    }
    if !pod.has_identity_and_storage() || !claims_are_right {
        plan.push(Step::Update { ordinal, pod: slot });
    }
    true
}

impl Facts {
    /// What a missing pod is made of: below the partition, of the current revision. Without a partition, as
    /// many as there were of the current revision stay that.
    fn revision_at(&self, ordinal: i32) -> NewRevision {
        let UpdateStrategy::RollingUpdate { partition, .. } = self.strategy else {
            return NewRevision::Update;
        };
        let of_current = i64::from(partition.unwrap_or(self.status.current));
        if i64::from(ordinal) < i64::from(self.start) + of_current {
            NewRevision::Current
        } else {
            NewRevision::Update
        }
    }
}
