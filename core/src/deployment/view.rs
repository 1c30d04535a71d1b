//! What a decision about one Deployment looks at: a copy of the facts, taken when its sync begins.
//!
//! Nothing that happens while the sync's writes are under way changes the view, so the status
//! written at the end tells of the ReplicaSets as they were before, as in Kubernetes.

use heapless::Vec;

use crate::link::Slot;
use crate::store::{Condition, Seconds};
use crate::wire::{IntAnnotation, IntOrPercent, Strategy};

/// ReplicaSets of one Deployment that are looked at together. Idle ones of the history beyond
/// that are only counted.
pub const SETS: usize = 40;

/// The facts about one Deployment and its ReplicaSets.
#[derive(Clone, Debug)]
pub struct View {
    /// The Deployment.
    pub deployment: Facts,
    /// Its ReplicaSets, oldest first.
    pub sets: Vec<Set, SETS>,
    /// Which of them has the Deployment's template: the oldest, if several do.
    pub new: Option<usize>,
    /// Old ReplicaSets that are not being deleted, those that did not fit into `sets` included.
    pub old_count: usize,
    /// The highest revision of the old ReplicaSets.
    pub max_old_revision: i64,
    /// The second highest revision of all: where a rollback to 0 leads.
    pub second_revision: i64,
    /// More ReplicaSets with replicas than can be looked at together: no decision is safe.
    pub overflowed: bool,
    /// A pod of an old ReplicaSet has not come to its end. Only looked at for `Recreate`.
    pub old_pods_running: bool,
    /// The feature gate `DeploymentReplicaSetTerminatingReplicas`.
    pub keep_terminating: bool,
}

/// The facts about a Deployment.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// `metadata.generation`
    pub generation: i64,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// `spec.replicas`
    pub replicas: i32,
    /// `spec.paused`
    pub paused: bool,
    /// `spec.strategy.type`
    pub strategy: Strategy,
    /// `spec.strategy.rollingUpdate.maxSurge`
    pub max_surge: Option<IntOrPercent>,
    /// `spec.strategy.rollingUpdate.maxUnavailable`
    pub max_unavailable: Option<IntOrPercent>,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    /// `spec.progressDeadlineSeconds`; `None` is no deadline.
    pub progress_deadline_seconds: Option<i32>,
    /// `spec.revisionHistoryLimit`; `None` is no limit.
    pub revision_history_limit: Option<i32>,
    /// `deployment.kubernetes.io/revision`
    pub revision: IntAnnotation,
    /// `deprecated.deployment.rollback.to`
    pub rollback_to: IntAnnotation,
    /// `status`, as last written.
    pub status: Counts,
    /// The `Available` condition.
    pub available: Condition,
    /// The `Progressing` condition.
    pub progressing: Condition,
    /// The `ReplicaFailure` condition.
    pub replica_failure: Condition,
}

/// The numbers in a Deployment's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `observedGeneration`
    pub observed_generation: i64,
    /// `replicas`
    pub replicas: i32,
    /// `updatedReplicas`
    pub updated: i32,
    /// `readyReplicas`
    pub ready: i32,
    /// `availableReplicas`
    pub available: i32,
    /// `unavailableReplicas`
    pub unavailable: i32,
    /// `terminatingReplicas`
    pub terminating: Option<i32>,
}

/// The facts about a ReplicaSet.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// Where it is cached; `None` for one that this very sync creates.
    pub slot: Option<Slot>,
    /// When it was created.
    pub created: Seconds,
    /// `spec.replicas`
    pub replicas: i32,
    /// `spec.replicas` once the writes planned so far are done.
    pub planned: i32,
    /// `status.replicas`
    pub status_replicas: i32,
    /// `status.readyReplicas`
    pub ready: i32,
    /// `status.availableReplicas`
    pub available: i32,
    /// `status.terminatingReplicas`
    pub terminating: Option<i32>,
    /// Its controller has written a status before.
    pub observed: bool,
    /// Its controller has seen its latest generation.
    pub up_to_date: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// `deployment.kubernetes.io/desired-replicas`
    pub desired: Option<i32>,
    /// `deployment.kubernetes.io/max-replicas`
    pub max: Option<i32>,
    /// `deployment.kubernetes.io/revision`
    pub revision: IntAnnotation,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    /// Its template is the Deployment's. The oldest such is the new ReplicaSet.
    pub same_template: bool,
    /// It has every annotation it should have from its Deployment.
    pub has_annotations: bool,
    /// The `ReplicaFailure` condition.
    pub failure: Condition,
}

impl View {
    /// A view of nothing, to be filled.
    pub const EMPTY: Self = Self {
        deployment: Facts::EMPTY,
        sets: Vec::new(),
        new: None,
        old_count: 0,
        max_old_revision: 0,
        second_revision: 0,
        overflowed: false,
        old_pods_running: false,
        keep_terminating: false,
    };

    /// The ReplicaSet with the Deployment's template.
    pub fn new_set(&self) -> Option<&Set> {
        self.sets.get(self.new?)
    }

    /// All other ReplicaSets, oldest first, with their places in `sets`.
    pub fn old_sets(&self) -> impl DoubleEndedIterator<Item = (usize, &Set)> {
        let new = self.new;
        self.sets.iter().enumerate().filter(move |(at, _)| Some(*at) != new)
    }

    /// Σ `spec.replicas` of all ReplicaSets.
    pub fn total_replicas(&self) -> i32 {
        sum(self.sets.iter().map(|set| set.replicas))
    }

    /// Σ `status.availableReplicas` of all ReplicaSets.
    pub fn total_available(&self) -> i32 {
        sum(self.sets.iter().map(|set| set.available))
    }
}

/// A sum that stays at the ends of its range.
pub(super) fn sum(numbers: impl Iterator<Item = i32>) -> i32 {
    numbers.fold(0, i32::saturating_add)
}

impl Facts {
    /// No Deployment.
    pub const EMPTY: Self = Self {
        generation: 0,
        deleting: false,
        replicas: 0,
        paused: false,
        strategy: Strategy::RollingUpdate,
        max_surge: None,
        max_unavailable: None,
        min_ready_seconds: 0,
        progress_deadline_seconds: None,
        revision_history_limit: None,
        revision: IntAnnotation::Absent,
        rollback_to: IntAnnotation::Absent,
        status: Counts {
            observed_generation: 0,
            replicas: 0,
            updated: 0,
            ready: 0,
            available: 0,
            unavailable: 0,
            terminating: None,
        },
        available: Condition::ABSENT,
        progressing: Condition::ABSENT,
        replica_failure: Condition::ABSENT,
    };
}

impl Set {
    /// A ReplicaSet that is about to be created with so many replicas.
    pub const fn unborn(replicas: i32, min_ready_seconds: i32) -> Self {
        Self {
            slot: None,
            created: Seconds::NONE,
            replicas,
            planned: replicas,
            status_replicas: 0,
            ready: 0,
            available: 0,
            terminating: None,
            observed: false,
            up_to_date: true,
            deleting: false,
            desired: None,
            max: None,
            revision: IntAnnotation::Absent,
            min_ready_seconds,
            same_template: true,
            has_annotations: true,
            failure: Condition::ABSENT,
        }
    }

    /// Active: `spec.replicas` is not 0.
    pub const fn is_active(&self) -> bool {
        self.replicas > 0
    }

    /// Neither has pods nor is to have any: history.
    pub const fn is_idle(&self) -> bool {
        self.replicas == 0 && self.status_replicas == 0
    }
}
