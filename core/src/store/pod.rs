//! What the cache keeps of a pod.

use crate::text::{Interner, LabelSet, Text};
use crate::wire;
use crate::wire::Phase;

use super::change::RefusalReason;
use super::packed::Seconds;
use super::table::Record;

/// A cached pod: what the ReplicaSet controller counts, ranks and deletes by.
#[derive(Clone, Copy, Debug)]
pub struct Pod {
    /// When the server created it.
    pub created: Seconds,
    /// When its `Ready` condition last changed.
    pub ready_transition: Seconds,
    /// `controller.kubernetes.io/pod-deletion-cost`
    pub deletion_cost: i32,
    /// The largest restart count of its containers.
    pub restarts: u32,
    /// The largest restart count of its sidecars.
    pub sidecar_restarts: u32,
    /// The node it is bound to; empty while unscheduled.
    pub node: Text,
    /// Its labels.
    pub labels: LabelSet,
    /// `status.phase`
    pub phase: Phase,
    ready: bool,
    deleting: bool,
    /// Whether any finalizer is set.
    pub has_finalizers: bool,
}

impl Pod {
    pub(super) fn intern(texts: &mut Interner, pod: &wire::Pod) -> Result<Self, RefusalReason> {
        let labels = LabelSet::intern(texts, pod.meta.labels.as_slice()?)?;
        let node = match texts.intern(pod.node.as_bytes()) {
            Ok(node) => node,
            Err(full) => {
                labels.release(texts);
                return Err(full.into());
            }
        };
        Ok(Self {
            created: Seconds::new(pod.meta.creation),
            ready_transition: Seconds::new(pod.ready_transition),
            deletion_cost: pod.deletion_cost,
            restarts: pod.restarts,
            sidecar_restarts: pod.sidecar_restarts,
            node,
            labels,
            phase: pod.phase,
            ready: pod.is_ready(),
            deleting: pod.meta.deletion.is_some(),
            has_finalizers: pod.meta.has_finalizers,
        })
    }

    /// The condition `Ready` is true.
    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Neither terminal nor being deleted: the pods a ReplicaSet counts as its replicas.
    pub const fn is_active(&self) -> bool {
        !self.phase.is_terminal() && !self.deleting
    }

    /// Being deleted and not terminal: what `terminatingReplicas` counts.
    pub const fn is_terminating(&self) -> bool {
        !self.phase.is_terminal() && self.deleting
    }
}

impl Record for Pod {
    const EMPTY: Self = Self {
        created: Seconds::NONE,
        ready_transition: Seconds::NONE,
        deletion_cost: 0,
        restarts: 0,
        sidecar_restarts: 0,
        node: Text::EMPTY,
        labels: LabelSet::EMPTY,
        phase: Phase::Empty,
        ready: false,
        deleting: false,
        has_finalizers: false,
    };
    const SPLIT_NAMES: bool = true;

    fn labels(&self) -> LabelSet {
        self.labels
    }

    fn is_deleting(&self) -> bool {
        self.deleting
    }

    fn is_ready(&self) -> bool {
        self.ready
    }

    fn release(&self, texts: &mut Interner) {
        self.labels.release(texts);
        texts.release(self.node);
    }
}

#[cfg(test)]
impl Pod {
    /// A running pod, for tests of what controllers make of it.
    pub(crate) fn test(ready: bool) -> Self {
        Self { phase: Phase::Running, ready, ..Self::EMPTY }
    }
}
