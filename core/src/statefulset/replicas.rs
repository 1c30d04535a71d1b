//! Bringing up the replicas, the lowest ordinal first.

use crate::planted::{Bug, planted};

use super::plan::{DeleteReason, End, NewRevision, Plan, Step};
use super::view::{Facts, PodFacts, UpdateStrategy, View};

/// Plans what the replicas need. Whether the sync goes on: with `OrderedReady` it ends at the first replica
/// that is not available.
pub(super) fn process(view: &View<'_>, plan: &mut Plan) -> bool {
    let mut pods = view.replicas().peekable();
    for ordinal in view.set.ordinals() {
        let goes_on = match pods.next_if(|pod| pod.ordinal() == ordinal) {
            Some(pod) if pod.is_created() => keep(view, pod, plan),
            _ => create(view, ordinal, plan),
        };
        let waits = view.set.is_monotonic() && !planted(Bug::OrderIgnored);
        if plan.end == End::Again || (waits && !goes_on) {
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
    let (ordinal, slot) = (pod.ordinal(), pod.slot());
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
    let is_out = match planted(Bug::MinReadyIgnored) {
        true => pod.is_terminating(),
        false => pod.is_unavailable(),
    };
    if view.set.is_monotonic() && (!pod.is_ready() || is_out) {
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
        let is_below = i64::from(ordinal) < i64::from(self.start) + of_current;
        if is_below && !planted(Bug::PartitionForgotten) {
            NewRevision::Current
        } else {
            NewRevision::Update
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ClaimTable, check, ordered, parallel, partition, plan, steps};
    use super::*;
    use crate::statefulset::Counts;

    /// Upstream's CreatesPods, ReplacesPods, RecreatesFailedPod, RecreatesSucceededPod.
    #[test]
    fn pods_come_one_after_the_other_or_all_at_once() {
        check(&[
            (ordered(3), "", "create 0u"),
            (ordered(3), "u", "create 1u"),
            (ordered(3), "u u u", ""),
            (ordered(3), ". u u", "create 0u"),
            (ordered(3), "u . .", "create 1u"),
            (ordered(3), "up", ""),
            (ordered(3), "ub", ""),
            (ordered(3), "ur", ""),
            (ordered(3), "ut", ""),
            (ordered(3), "ue", "delete ended 0"),
            (ordered(3), "uet", ""),
            (ordered(3), "u0", "create 0u"),
            (ordered(0), "", ""),
            (parallel(3), "", "create 0u, create 1u, create 2u"),
            (parallel(3), "up ur", "create 2u"),
            (parallel(4), "ue . uet", "delete ended 0, create 1u, create 3u"),
            (parallel(-1), "", ""),
        ]);
    }

    #[test]
    fn ordinals_begin_anywhere() {
        let from_two = Facts { start: 2, ..ordered(2) };
        check(&[
            (from_two, "", "create 2u"),
            (from_two, ". . u", "create 3u"),
            (Facts { strategy: partition(1), ..from_two }, "", "create 2c"),
            (Facts { strategy: partition(1), ..from_two }, ". . c", "create 3u"),
            (Facts { start: i32::MAX, ..parallel(3) }, "", "create 2147483647u"),
        ]);
    }

    /// Upstream's newVersionedStatefulSetPod.
    #[test]
    fn below_the_partition_pods_are_made_of_the_current_revision() {
        let nil = UpdateStrategy::RollingUpdate { partition: None, max_unavailable: None };
        let status = Counts { current: 2, observed_generation: 1, ..Counts::default() };
        check(&[
            (
                Facts { strategy: partition(2), ..parallel(4) },
                "",
                "create 0c, create 1c, create 2u, create 3u",
            ),
            (Facts { strategy: partition(9), ..parallel(2) }, "", "create 0c, create 1c"),
            (Facts { strategy: nil, status, ..parallel(3) }, "", "create 0c, create 1c, create 2u"),
            (
                Facts { strategy: UpdateStrategy::OnDelete, status, ..parallel(2) },
                "",
                "create 0u, create 1u",
            ),
        ]);
    }

    #[test]
    fn identity_storage_and_claims_are_put_in_order() {
        check(&[
            (ordered(2), "ui us", "update 0, update 1"),
            (ordered(2), "uip us", ""),
            (parallel(2), "uip ust", "update 0, update 1"),
        ]);
        let wrong = ClaimTable { wrong: &[0], ..ClaimTable::default() };
        let missing = ClaimTable { missing: &[0], ..ClaimTable::default() };
        for (set, words, claims, expected) in [
            (ordered(2), "u u", wrong, "update 0"),
            (ordered(2), "u u", missing, ""),
            (ordered(2), "up", wrong, "claims 0"),
            (ordered(2), "upt", missing, "claims 0"),
            (parallel(2), "upi u", wrong, "claims 0, update 0"),
            (parallel(2), "up", missing, "claims 0, create 1u"),
        ] {
            assert_eq!(steps(&plan(set, words, claims)), expected, "{words}");
        }
    }

    #[test]
    fn a_stale_claim_is_waited_for() {
        let stale = ClaimTable { stale: &[1], ..ClaimTable::default() };
        assert_eq!(steps(&plan(ordered(3), "u", stale)), "");
        assert_eq!(steps(&plan(parallel(3), "u", stale)), "create 2u");
    }

    #[test]
    fn what_does_not_fit_comes_with_the_next_sync() {
        let plan = plan(parallel(i32::MAX), "", ClaimTable::default());
        assert_eq!(plan.steps.len(), super::super::STEPS);
        assert_eq!(plan.end, End::Again);
        let exact = Facts { replicas: super::super::STEPS as i32, ..parallel(0) };
        let plan = super::super::testing::plan(exact, "", ClaimTable::default());
        assert_eq!(plan.end, End::Done);
    }
}
