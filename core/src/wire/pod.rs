//! `v1` Pod: what the controllers count, rank and delete.

use super::{ConditionStatus, Meta};
use crate::limits;
use crate::time::Timestamp;
use heapless::String;

/// A pod as it passes from the wire to the store.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// Its metadata.
    pub meta: Meta,
    /// `controller.kubernetes.io/pod-deletion-cost`; 0 when absent or invalid.
    pub deletion_cost: i32,
    /// The node it is bound to; empty while unscheduled.
    pub node: String<{ limits::NAME }>,
    /// `status.phase`
    pub phase: Phase,
    /// Status of the `Ready` condition; `None` without that condition.
    pub ready: Option<ConditionStatus>,
    /// When the `Ready` condition last changed.
    pub ready_transition: Option<Timestamp>,
    /// The largest restart count of its containers.
    pub restarts: u32,
    /// The largest restart count of its restartable init containers (sidecars).
    pub sidecar_restarts: u32,
}

impl Pod {
    /// Whether the condition `Ready` exists with status `True`.
    pub fn is_ready(&self) -> bool {
        self.ready == Some(ConditionStatus::True)
    }
}

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// No phase: the pod is not created yet, or the server sets none.
    #[default]
    Empty,
    /// `Pending`
    Pending,
    /// `Running`
    Running,
    /// `Succeeded`
    Succeeded,
    /// `Failed`
    Failed,
    /// `Unknown`
    Unknown,
    /// A phase of a later Kubernetes.
    Other,
}

impl Phase {
    /// The phase of this name.
    pub fn parse(text: &str) -> Self {
        match text {
            "" => Self::Empty,
            "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            "Unknown" => Self::Unknown,
            _ => Self::Other,
        }
    }

    /// Whether the pod has run to its end: `Failed` or `Succeeded`.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Failed | Self::Succeeded)
    }
}
