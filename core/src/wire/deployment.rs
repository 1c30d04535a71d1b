//! `apps/v1` Deployment.

use super::{Condition, IntAnnotation, Meta, SharedAnnotations};
use crate::json::Digest;
use crate::text::Selector;

/// A Deployment as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct Deployment {
    /// Its metadata.
    pub meta: Meta,
    /// `deployment.kubernetes.io/revision`
    pub revision: IntAnnotation,
    /// `deprecated.deployment.rollback.to`
    pub rollback_to: IntAnnotation,
    /// The annotations to be copied to its ReplicaSets.
    pub annotations: SharedAnnotations,
    /// `spec.replicas`; absent counts as 1, Kubernetes' default.
    pub replicas: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    /// `spec.paused`
    pub paused: bool,
    /// `spec.progressDeadlineSeconds`; absent or 2147483647 means no deadline.
    pub progress_deadline_seconds: Option<i32>,
    /// `spec.revisionHistoryLimit`; absent or 2147483647 means no limit.
    pub revision_history_limit: Option<i32>,
    /// `spec.strategy.type`
    pub strategy: Strategy,
    /// `spec.strategy.rollingUpdate.maxSurge`
    pub max_surge: Option<IntOrPercent>,
    /// `spec.strategy.rollingUpdate.maxUnavailable`
    pub max_unavailable: Option<IntOrPercent>,
    /// `spec.selector`
    pub selector: Selector,
    /// The pod template, the `pod-template-hash` label left out.
    pub template: Digest,
    /// What was last observed.
    pub status: DeploymentStatus,
}

/// `status` of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentStatus {
    /// `observedGeneration`
    pub observed_generation: i64,
    /// `replicas`
    pub replicas: i32,
    /// `updatedReplicas`
    pub updated_replicas: i32,
    /// `readyReplicas`
    pub ready_replicas: i32,
    /// `availableReplicas`
    pub available_replicas: i32,
    /// `unavailableReplicas`
    pub unavailable_replicas: i32,
    /// `terminatingReplicas`; servers before 1.33 do not keep it.
    pub terminating_replicas: Option<i32>,
    /// `collisionCount`; absent and 0 lead to different hashes.
    pub collision_count: Option<i32>,
    /// The `Available` condition.
    pub available: Option<Condition>,
    /// The `Progressing` condition.
    pub progressing: Option<Condition>,
    /// The `ReplicaFailure` condition.
    pub replica_failure: Option<Condition>,
    /// Whether there are conditions of other types.
    pub has_other_conditions: bool,
}

/// How a Deployment replaces old pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Strategy {
    /// `RollingUpdate`, also when the field is absent: Kubernetes' default.
    #[default]
    RollingUpdate,
    /// `Recreate`
    Recreate,
    /// A strategy of a later Kubernetes.
    Other,
}

impl Strategy {
    /// The strategy of this name.
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "RollingUpdate" => Self::RollingUpdate,
            "Recreate" => Self::Recreate,
            _ => Self::Other,
        }
    }
}

/// A number of pods, or a share of the desired number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum IntOrPercent {
    /// So many pods.
    Int(i32),
    /// So many percent.
    Percent(i32),
}

impl IntOrPercent {
    /// Parses `25%`.
    pub fn parse_percent(text: &str) -> Option<Self> {
        text.strip_suffix('%')?.parse().ok().map(Self::Percent)
    }
}
