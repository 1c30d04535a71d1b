//! One sync of a StatefulSet: replicas > condemned > update.

use super::plan::Plan;
use super::status::StatusWrite;
use super::view::{UpdateStrategy, View};
use super::{condemned, heal, replicas, rolling_update};

/// Why a sync can do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Impossible {
    /// The update strategy is not known.
    UnexpectedStrategy,
}

/// Plans one sync into `plan`.
///
/// The status tells of the pods as they were before, as in Kubernetes.
pub fn decide(view: &View<'_>, plan: &mut Plan) -> Result<(), Impossible> {
    plan.clear();
    let strategy = view.set.strategy;
    if strategy == UpdateStrategy::Other && !view.set.deleting {
        return Err(Impossible::UnexpectedStrategy);
    }
    plan.status = StatusWrite::of(view);
    if !view.set.deleting
        && heal::heal(view, plan)
        && replicas::process(view, plan)
        && condemned::process(view, plan)
        && strategy != UpdateStrategy::OnDelete
    {
        rolling_update::update(view, plan);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ClaimTable, check, ordered, parallel, pods};
    use super::*;
    use crate::statefulset::Facts;

    #[test]
    fn a_set_that_goes_only_tells_of_its_pods() {
        check(&[
            (Facts { deleting: true, ..ordered(3) }, "c u cb ue", ""),
            (Facts { deleting: true, ..parallel(3) }, "c u cb ue", ""),
        ]);
    }

    #[test]
    fn a_strategy_that_is_not_known_is_not_guessed() {
        let other = Facts { strategy: UpdateStrategy::Other, ..ordered(1) };
        let pods = pods("");
        let mut plan = Plan::EMPTY;
        let mut decide = |set| {
            super::decide(&View { set, pods: &pods, claims: &ClaimTable::default() }, &mut plan)
        };
        assert_eq!(decide(other), Err(Impossible::UnexpectedStrategy));
        assert_eq!(decide(Facts { deleting: true, ..other }), Ok(()));
        assert_eq!(decide(other), Err(Impossible::UnexpectedStrategy));
        assert!(plan.steps.is_empty() && !plan.status.is_needed());
    }

    /// The template is mended while a pod of the broken one is being started: Kubernetes waits for ever.
    #[test]
    fn a_broken_pod_holds_up_its_own_replacement() {
        let asked = Facts { replaces_broken_pods: true, ..ordered(3) };
        check(&[
            (ordered(3), "c c nb", ""),
            (asked, "c c nb", "delete broken 2"),
            (asked, "c c nbt", ""),
            (asked, "c c .", "create 2u"),
            (asked, "c c up", ""),
            (asked, "c c u", "delete outdated 1-"),
        ]);
    }
}
