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
        .filter(|pod| i64::from(pod.ordinal) >= set.first_updated())
        .filter(|pod| pod.is_created() && pod.is_outdated() && !pod.is_ready())
        .take(most)
        .for_each(|pod| {
            plan.delete(pod, DeleteReason::Broken, pod.is_current());
        });
    plan.steps.is_empty()
}
