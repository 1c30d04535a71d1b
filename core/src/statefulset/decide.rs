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
