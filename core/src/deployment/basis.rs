//! What a plan was made from, as far as its later steps depend on it.
//!
//! A plan is carried out one request at a time, and each may take a while. Where Kubernetes would
//! act by what it knew when it began, a plan whose ground has gone is made anew.

use crate::link::Slot;
use crate::store::Cache;

use super::plan::Step;

/// The ground of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basis {
    /// The Deployment's.
    generation: i64,
    /// Pods that are available, as the ReplicaSets tell.
    available: i64,
    /// The highest that a ReplicaSet has.
    highest_revision: i64,
}

impl Basis {
    /// Nothing has been planned.
    pub(crate) const NONE: Self = Self { generation: 0, available: 0, highest_revision: 0 };

    /// What a plan that is made now is made from.
    pub(crate) fn of(cache: &Cache<'_>, key: Slot) -> Self {
        let d = cache.deployments.get(key);
        let sets = || cache.replica_sets_of(key).map(|(_, set)| set.record);
        Self {
            generation: d.map_or(0, |d| d.record.generation()),
            available: sets().map(|set| i64::from(set.available_replicas.get())).sum(),
            highest_revision: sets().filter_map(|set| set.revision().value()).max().unwrap_or(0),
        }
    }

    /// Whether a step of the plan still is what it was meant to be.
    pub(crate) fn allows(&self, step: &Step, cache: &Cache<'_>, key: Slot) -> bool {
        let fits: fn(&Self, &Self) -> bool = match step {
            Step::Create { .. } | Step::Update { revision: Some(_), .. } => {
                |then, now| now.highest_revision <= then.highest_revision
            }
            // With fewer pods available, fewer can be spared.
            Step::Scale { tolerant: true, .. } => |then, now| now.available >= then.available,
            Step::Scale { .. } | Step::Update { .. } => |_, _| true,
            Step::Status
            | Step::Delete { .. }
            | Step::Rollback { .. }
            | Step::ClearRollback
            | Step::Warn(_) => return true,
        };
        let now = Self::of(cache, key);
        now.generation == self.generation && fits(self, &now)
    }
}
