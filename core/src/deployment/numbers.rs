//! The numbers that follow from a Deployment's strategy.

use crate::planted::{Bug, planted};
use crate::wire::{IntOrPercent, Strategy};

use super::view::{Counts, Facts, View};

impl Facts {
    /// Kubernetes' fenceposts: surge and unavailable as numbers of pods. A share of surge is
    /// rounded up, one of unavailable down; if both come to nothing, one pod may be unavailable,
    /// so that a rollout moves.
    pub fn fenceposts(&self) -> (i32, i32) {
        let surge = resolve(self.max_surge, self.replicas, 99);
        let unavailable = resolve(self.max_unavailable, self.replicas, 0);
        if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
    }

    /// Pods beyond `spec.replicas` that a rollout may have.
    pub fn max_surge(&self) -> i32 {
        if self.is_rolling() { self.fenceposts().0 } else { 0 }
    }

    /// Pods below `spec.replicas` that a rollout may fall to.
    pub fn max_unavailable(&self) -> i32 {
        if !self.is_rolling() || self.replicas == 0 {
            return 0;
        }
        self.fenceposts().1.min(self.replicas)
    }

    /// Pods that must stay available.
    pub fn min_available(&self) -> i32 {
        self.replicas.saturating_sub(self.max_unavailable())
    }

    /// `deployment.kubernetes.io/max-replicas` of its ReplicaSets.
    pub fn max_replicas(&self) -> i32 {
        self.replicas.saturating_add(self.max_surge())
    }

    /// Whether the strategy is RollingUpdate.
    pub fn is_rolling(&self) -> bool {
        self.strategy == Strategy::RollingUpdate
    }

    /// Complete: all pods are of the new template and available, and the status tells of the
    /// latest spec.
    pub fn is_complete(&self, status: &Counts) -> bool {
        status.updated == self.replicas
            && status.replicas == self.replicas
            && status.available == self.replicas
            && status.observed_generation >= self.generation
    }
}

/// `share` of `replicas`; of a percentage, `round` hundredths are added before cutting off.
fn resolve(share: Option<IntOrPercent>, replicas: i32, round: i64) -> i32 {
    match share {
        None => 0,
        Some(IntOrPercent::Int(number)) => number.max(0),
        Some(IntOrPercent::Percent(percent)) => {
            let hundredths = i64::from(percent) * i64::from(replicas);
            let pods = (hundredths + round).div_euclid(100);
            i32::try_from(pods.max(0)).unwrap_or(i32::MAX)
        }
    }
}

impl View {
    /// The size a new ReplicaSet of `current` replicas is to have: as many as surge allows, with
    /// the others at `spec.replicas` in sum.
    pub fn new_size(&self, current: i32) -> i32 {
        let d = &self.deployment;
        if !d.is_rolling() {
            return d.replicas;
        }
        let most = d.max_replicas().saturating_add(planted(Bug::SurgeOffByOne).into());
        let room = most.saturating_sub(self.total_replicas());
        if room <= 0 {
            return current;
        }
        current.saturating_add(room.min(d.replicas.saturating_sub(current)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(surge: IntOrPercent, unavailable: IntOrPercent, replicas: i32) -> Facts {
        Facts {
            replicas,
            max_surge: Some(surge),
            max_unavailable: Some(unavailable),
            ..Facts::EMPTY
        }
    }

    #[test]
    fn fenceposts_of_known_vectors() {
        use IntOrPercent::{Int, Percent};
        for (surge, unavailable, replicas, expected, clamped) in [
            (Percent(25), Percent(25), 0, (0, 1), 0),
            (Percent(25), Percent(25), 1, (1, 0), 0),
            (Percent(25), Percent(25), 3, (1, 0), 0),
            (Percent(25), Percent(25), 4, (1, 1), 1),
            (Percent(25), Percent(25), 10, (3, 2), 2),
            (Int(0), Percent(1), 2, (0, 1), 1),
            (Percent(0), Percent(10), 5, (0, 1), 1),
            (Percent(1), Percent(0), 1, (1, 0), 0),
            (Int(5), Int(20), 10, (5, 20), 10),
        ] {
            let facts = facts(surge, unavailable, replicas);
            assert_eq!(facts.fenceposts(), expected, "{surge:?} {unavailable:?} of {replicas}");
            assert_eq!(facts.max_unavailable(), clamped, "{unavailable:?} of {replicas}");
        }
    }

    #[test]
    fn other_strategies_neither_surge_nor_lack() {
        let recreate = Facts {
            strategy: Strategy::Recreate,
            ..facts(IntOrPercent::Int(5), IntOrPercent::Int(5), 10)
        };
        assert_eq!((recreate.max_surge(), recreate.max_unavailable()), (0, 0));
        assert_eq!(recreate.max_replicas(), 10);
    }
}
