//! The RollingUpdate strategy: outdated pods go, the highest ordinal first.

use crate::planted::{Bug, planted};
use crate::wire::IntOrPercent;

use super::plan::Plan;
use super::view::{Facts, PodFacts, UpdateStrategy, View};

/// Plans which pods are replaced.
pub(super) fn update(view: &View<'_>, plan: &mut Plan) {
    if !view.set.honours_max_unavailable {
        update_one(view, plan);
    } else if view.set.is_monotonic() {
        delete(plan, outdated(view), budget(view));
    } else {
        // Behaviour of Kubernetes 1.37: those that are unavailable cost no availability. Before, they counted
        // against the budget, and enough of them held up their own replacement.
        let [unavailable, available] =
            [true, false].map(|is| outdated(view).filter(move |pod| pod.is_unavailable() == is));
        if delete(plan, unavailable, usize::MAX) {
            delete(plan, available, budget(view));
        }
    }
}

/// The one with the highest ordinal that is outdated, if all above it are available.
fn update_one(view: &View<'_>, plan: &mut Plan) {
    let mut end = i64::from(view.set.start) + i64::from(view.set.replicas);
    for pod in targets(view) {
        end -= 1;
        let is_one_missing = i64::from(pod.ordinal()) != end;
        if is_one_missing {
            return;
        }
        if pod.is_outdated() {
            plan.delete_outdated(pod);
            return;
        }
        if pod.is_unavailable() && !planted(Bug::UpdateImpatient) {
            return;
        }
    }
}

/// Deletes so many of these. Whether they fit into the plan.
fn delete<'a>(plan: &mut Plan, pods: impl Iterator<Item = &'a PodFacts>, most: usize) -> bool {
    pods.take(most).all(|pod| plan.delete_outdated(pod))
}

/// What an update may replace, the highest ordinal first.
fn targets<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a PodFacts> {
    let first = view.set.first_updated() - i64::from(planted(Bug::PartitionOffByOne));
    view.replicas().rev().filter(move |pod| i64::from(pod.ordinal()) >= first)
}

fn outdated<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a PodFacts> {
    targets(view).filter(|pod| pod.is_outdated())
}

/// How many available pods may go. Replicas that are not there are unavailable.
fn budget(view: &View<'_>) -> usize {
    let available = view.replicas().filter(|pod| !pod.is_unavailable()).count() as i64;
    let unavailable = i64::from(view.set.replicas) - available;
    usize::try_from(i64::from(view.set.max_unavailable()) - unavailable).unwrap_or(0)
}

impl Facts {
    /// Replicas that an update may make unavailable: a share is rounded down, and one is always allowed.
    pub fn max_unavailable(&self) -> i32 {
        let UpdateStrategy::RollingUpdate { max_unavailable, .. } = self.strategy else { return 1 };
        let pods = match max_unavailable {
            None => 1,
            Some(IntOrPercent::Int(pods)) => pods,
            Some(IntOrPercent::Percent(percent)) => {
                let pods = i64::from(percent) * i64::from(self.replicas) / 100;
                pods.clamp(1, i64::from(i32::MAX)) as i32
            }
        };
        pods.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, ordered, parallel, partition, with_max_unavailable};
    use super::*;
    use IntOrPercent::{Int, Percent};

    /// Upstream's RollingUpdate.
    #[test]
    fn one_outdated_pod_after_the_other_goes_from_the_top() {
        for set in [ordered(3), parallel(3)] {
            check(&[
                (set, "c c c", "delete outdated 2-"),
                (set, "c c ct", ""),
                (set, "c c ub", ""),
                (set, "c c ur", ""),
                (set, "c c u", "delete outdated 1-"),
                (set, "n c u", "delete outdated 1-"),
                (set, "n u u", "delete outdated 0-"),
                (set, "u u u", ""),
            ]);
        }
        check(&[
            (ordered(3), "c c cb", ""),
            (parallel(3), "c c cb", "delete outdated 2-"),
            (parallel(3), "c c", "create 2u"),
            (parallel(3), "c . u", "create 1u"),
            // Deleted once, for two reasons.
            (parallel(2), "c ce", "delete ended 1-"),
        ]);
    }

    /// Upstream's RollingUpdateWithPartition.
    #[test]
    fn what_is_below_the_partition_stays() {
        let set = Facts { strategy: partition(2), ..ordered(4) };
        let shifted = Facts { start: 1, strategy: partition(1), ..ordered(2) };
        check(&[
            (set, "c c c c", "delete outdated 3-"),
            (set, "c c c u", "delete outdated 2-"),
            (set, "c c u u", ""),
            (Facts { strategy: partition(4), ..set }, "c c c c", ""),
            (Facts { strategy: partition(i32::MAX), ..set }, "c c c c", ""),
            (shifted, ". c c", "delete outdated 2-"),
            (shifted, ". c u", ""),
        ]);
    }

    /// Upstream's OnDeleteUpdate.
    #[test]
    fn on_delete_waits_for_somebody_to_delete() {
        let set = Facts { strategy: UpdateStrategy::OnDelete, ..ordered(3) };
        check(&[(set, "c c c", ""), (set, "c c .", "create 2u"), (set, "c ct u", "")]);
    }

    /// Upstream's RollingUpdateWithMaxUnavailable and …InOrderedModeVerifyInvariant.
    #[test]
    fn as_many_as_may_be_unavailable_go_at_once() {
        let set = with_max_unavailable(ordered(4), Int(2));
        check(&[
            (set, "c c c c", "delete outdated 3-, delete outdated 2-"),
            (set, "c c u u", "delete outdated 1-, delete outdated 0-"),
            (set, "c u u u", "delete outdated 0-"),
            (set, "c c ct ct", ""),
            // One by one from below, whatever the budget allows.
            (set, "c c . .", "create 2u"),
            (set, "c c ub .", ""),
            (set, "c c u .", "create 3u"),
        ]);
        let set = with_max_unavailable(parallel(4), Int(2));
        check(&[
            (set, "c c c c", "delete outdated 3-, delete outdated 2-"),
            (set, "c c ct c", "delete outdated 3-"),
            (set, "c c u ub", "delete outdated 1-"),
            (set, "c c ub ub", ""),
            (set, "c c . .", "create 2u, create 3u"),
            (set, "c c u .", "create 3u, delete outdated 1-"),
        ]);
    }

    /// Upstream's MaxUnavailable…AndUnavailableStalePod.
    #[test]
    fn what_is_unavailable_and_outdated_goes_beside_the_budget() {
        let set = with_max_unavailable(parallel(5), Int(2));
        check(&[
            (set, "cb cb cb c c", "delete outdated 2-, delete outdated 1-, delete outdated 0-"),
            (set, "cb c c c c", "delete outdated 0-, delete outdated 4-"),
            (set, "cr c c c ub", "delete outdated 0-"),
            (set, "cb ct ub c c", "delete outdated 0-"),
            (set, "c ct ub c c", ""),
            (set, "cp c c c u", "delete outdated 0-, delete outdated 3-"),
            (with_max_unavailable(ordered(5), Int(2)), "cb c c c c", ""),
        ]);
        let reaches_two =
            UpdateStrategy::RollingUpdate { partition: Some(3), max_unavailable: Some(Int(2)) };
        let set = Facts { strategy: reaches_two, ..set };
        check(&[
            (set, "cb c c c c", "delete outdated 4-"),
            (set, "cb cb c c c", ""),
            (set, "cb cb c cb c", "delete outdated 3-"),
        ]);
    }

    /// Upstream's GetStatefulSetMaxUnavailable.
    #[test]
    fn max_unavailable_is_at_least_one() {
        for (max_unavailable, replicas, expected) in [
            (None, 10, 1),
            (Some(Int(3)), 10, 3),
            (Some(Int(3)), 0, 3),
            (Some(Int(0)), 0, 1),
            (Some(Percent(10)), 25, 2),
            (Some(Percent(100)), 5, 5),
            (Some(Percent(50)), 5, 2),
            (Some(Percent(10)), 5, 1),
            (Some(Percent(10)), 0, 1),
            (Some(Percent(i32::MAX)), i32::MAX, i32::MAX),
            (Some(Percent(i32::MIN)), i32::MAX, 1),
        ] {
            let strategy = UpdateStrategy::RollingUpdate { partition: Some(0), max_unavailable };
            let set = Facts { strategy, ..ordered(replicas) };
            assert_eq!(set.max_unavailable(), expected, "{max_unavailable:?} of {replicas}");
        }
        let set = Facts { strategy: UpdateStrategy::OnDelete, ..ordered(3) };
        assert_eq!(set.max_unavailable(), 1);
    }
}
