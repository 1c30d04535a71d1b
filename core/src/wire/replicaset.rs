//! `apps/v1` ReplicaSet.

use super::{Condition, IntAnnotation, Meta, RevisionHistory, SharedAnnotations};
use crate::json::Digest;
use crate::text::{Labels, Selector};

/// A ReplicaSet as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct ReplicaSet {
    /// Its metadata.
    pub meta: Meta,
    /// `deployment.kubernetes.io/revision`
    pub revision: IntAnnotation,
    /// `deployment.kubernetes.io/revision-history`
    pub revision_history: Option<RevisionHistory>,
    /// `deployment.kubernetes.io/desired-replicas`
    pub desired_replicas: IntAnnotation,
    /// `deployment.kubernetes.io/max-replicas`
    pub max_replicas: IntAnnotation,
    /// The annotations its Deployment may have copied to it.
    pub annotations: SharedAnnotations,
    /// `spec.replicas`; absent counts as 1, Kubernetes' default.
    pub replicas: i32,
    /// `spec.minReadySeconds`
    pub min_ready_seconds: i32,
    /// `spec.selector`
    pub selector: Selector,
    /// The pod template, the `pod-template-hash` label left out.
    pub template: Digest,
    /// The labels of the pod template, the hash label included.
    pub template_labels: Labels,
    /// What was last observed.
    pub status: ReplicaSetStatus,
}

/// `status` of a ReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSetStatus {
    /// `replicas`
    pub replicas: i32,
    /// `fullyLabeledReplicas`
    pub fully_labeled_replicas: i32,
    /// `readyReplicas`
    pub ready_replicas: i32,
    /// `availableReplicas`
    pub available_replicas: i32,
    /// `terminatingReplicas`; servers before 1.33 do not keep it.
    pub terminating_replicas: Option<i32>,
    /// `observedGeneration`
    pub observed_generation: i64,
    /// The `ReplicaFailure` condition.
    pub replica_failure: Option<Condition>,
    /// Whether there are conditions of other types.
    pub has_other_conditions: bool,
}
