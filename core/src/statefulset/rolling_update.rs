//! The RollingUpdate strategy: outdated pods go, the highest ordinal first.

use crate::wire::IntOrPercent;

use super::plan::Plan;
use super::view::{Facts, PodFacts, UpdateStrategy, View};

/// Plans which pods are replaced.
pub(super) fn update(view: &View<'_>, plan: &mut Plan) {
    match (view.set.honours_max_unavailable, view.set.is_monotonic()) {
        (false, _) => update_one(view, plan),
        (true, true) => delete(plan, outdated(view), budget(view)),
        (true, false) => {
            // Those that are unavailable cost no availability.
            delete(plan, outdated(view).filter(|pod| pod.is_unavailable()), usize::MAX);
            delete(plan, outdated(view).filter(|pod| !pod.is_unavailable()), budget(view));
        }
    }
}

/// The one with the highest ordinal that is outdated, if all above it are available.
fn update_one(view: &View<'_>, plan: &mut Plan) {
    let mut end = i64::from(view.set.start) + i64::from(view.set.replicas);
    for pod in targets(view) {
        end -= 1;
        let is_one_missing = i64::from(pod.ordinal) != end;
        if is_one_missing {
            return;
        }
        if pod.is_outdated() {
            plan.delete_outdated(pod);
            return;
        }
        if pod.is_unavailable() {
            return;
        }
    }
}

fn delete<'a>(plan: &mut Plan, pods: impl Iterator<Item = &'a PodFacts>, most: usize) {
    let _ = pods.take(most).all(|pod| plan.delete_outdated(pod));
}

/// What an update may replace, the highest ordinal first.
fn targets<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a PodFacts> {
    let first = view.set.first_updated();
    view.replicas().rev().filter(move |pod| i64::from(pod.ordinal) >= first)
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
                i32::try_from(pods).unwrap_or(i32::MAX)
            }
        };
        pods.max(1)
    }
}
