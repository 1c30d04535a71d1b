//! Replacing broken pods.
//!
//! In Kubernetes, a pod that never becomes Ready holds up everything with `OrderedReady`, also the update
//! that would mend it: somebody has to delete it by hand (kubernetes/kubernetes#67250). Where that is asked
//! for, it is done here: a pod that is not Ready and not of the update revision anyway is deleted.

use super::plan::{DeleteReason, Plan};
use super::view::{PodFacts, UpdateStrategy, View};

/// Deletes broken pods within reach of the update, with `OrderedReady` one at a time and none while another
/// is going. Whether the sync goes on: not beside such a deletion.
pub(super) fn heal(view: &View<'_>, plan: &mut Plan) -> bool {
    let set = &view.set;
    let is_rolling = matches!(set.strategy, UpdateStrategy::RollingUpdate { .. });
    if !set.replaces_broken_pods || !is_rolling {
        return true;
    }
    let most = match set.is_monotonic() {
        true if view.pods.iter().any(PodFacts::is_terminating) => 0,
        true => 1,
        false => usize::MAX,
    };
    view.replicas()
        .rev()
        .filter(|pod| i64::from(pod.ordinal()) >= set.first_updated())
        .filter(|pod| pod.is_created() && pod.is_outdated() && !pod.is_ready())
        .take(most)
        .for_each(|pod| {
            plan.delete(pod, DeleteReason::Broken, pod.is_current());
        });
    plan.steps.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, ordered, parallel, partition};
    use super::*;
    use crate::statefulset::Facts;

    #[test]
    fn only_where_it_is_asked_for() {
        let asked = Facts { replaces_broken_pods: true, ..ordered(3) };
        check(&[
            (ordered(3), "c c cb", ""),
            (asked, "c c cb", "delete broken 2-"),
            (Facts { strategy: UpdateStrategy::OnDelete, ..asked }, "c c cb", ""),
            (Facts { deleting: true, ..asked }, "c c cb", ""),
        ]);
    }

    #[test]
    fn what_is_ready_or_updated_or_out_of_reach_stays() {
        let set = Facts { replaces_broken_pods: true, strategy: partition(1), ..ordered(3) };
        check(&[
            (set, "cb c c", ""),
            (set, "c cb c", "delete broken 1-"),
            (set, "c np c", "delete broken 1"),
            (set, "c ub c", ""),
            (set, "c cr c", ""),
            (set, "c c0 c", "create 1u"),
            // Condemned ones are none of its business.
            (set, "c u u cb", "delete condemned 3"),
        ]);
    }

    #[test]
    fn one_at_a_time_where_order_is_asked_for() {
        let set = Facts { replaces_broken_pods: true, ..ordered(3) };
        let all = Facts { replaces_broken_pods: true, ..parallel(3) };
        check(&[
            (set, "cb cb cb", "delete broken 2-"),
            (set, "cb cb cbt", ""),
            (set, "cb cb .", "delete broken 1-"),
            (set, "u cb u ut", ""),
            (all, "cb ce cbt", "delete broken 1-, delete broken 0-"),
            (all, "cb c .", "delete broken 0-"),
        ]);
    }
}
