//! What the cache keeps of a pod.

use crate::text::{Interner, LabelSet, Text};
use crate::wire;
use crate::wire::PodPhase;

use super::change::RefusalReason;
use super::packed::Seconds;
use super::{Condense, Record, Stored};

/// A cached pod: what the ReplicaSet controller counts, ranks and deletes by.
#[derive(Clone, Copy, Debug)]
pub struct Pod {
    /// When the server created it.
    pub created: Seconds,
    /// When its `Ready` condition last changed.
    pub ready_transition: Seconds,
    /// `controller.kubernetes.io/pod-deletion-cost`
    pub deletion_cost: i32,
    /// The largest restart count of its containers, or the most that fits.
    pub restarts: u16,
    /// The largest restart count of its sidecars, or the most that fits.
    pub sidecar_restarts: u8,
    /// The node it is bound to; empty while unscheduled.
    pub node: Text,
    /// Its labels.
    pub labels: LabelSet,
    /// The phase, and bits of [`flag`].
    bits: u8,
}

/// Bits of [`Pod::bits`], above those of the phase.
mod flag {
    pub(super) const READY: u8 = 1 << 6;
    pub(super) const DELETING: u8 = 1 << 7;
}

const fn bits(phase: PodPhase, ready: bool, deleting: bool) -> u8 {
    let ready = if ready { flag::READY } else { 0 };
    let deleting = if deleting { flag::DELETING } else { 0 };
    phase as u8 | ready | deleting
}

impl Pod {
    fn of(pod: &wire::Pod, texts: &mut Interner) -> Result<Self, RefusalReason> {
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
            restarts: pod.restarts.try_into().unwrap_or(u16::MAX),
            sidecar_restarts: pod.sidecar_restarts.try_into().unwrap_or(u8::MAX),
            node,
            labels,
            bits: bits(pod.phase, pod.is_ready(), pod.meta.deletion.is_some()),
        })
    }

    /// `status.phase`
    pub const fn phase(&self) -> PodPhase {
        PodPhase::from_number(self.bits & !(flag::READY | flag::DELETING))
    }

    /// The condition `Ready` is true.
    pub const fn is_ready(&self) -> bool {
        self.bits & flag::READY != 0
    }

    const fn is_deleting(&self) -> bool {
        self.bits & flag::DELETING != 0
    }

    /// Neither terminal nor being deleted: the pods a ReplicaSet counts as its replicas.
    pub const fn is_active(&self) -> bool {
        !self.phase().is_terminal() && !self.is_deleting()
    }

    /// Being deleted and not terminal: what `terminatingReplicas` counts.
    pub const fn is_terminating(&self) -> bool {
        !self.phase().is_terminal() && self.is_deleting()
    }
}

impl Condense for wire::Pod {
    type Record = Pod;

    fn condense(&self, texts: &mut Interner) -> Result<Pod, RefusalReason> {
        Pod::of(self, texts)
    }
}

impl Stored for Pod {
    const EMPTY: Self = Self {
        created: Seconds::NONE,
        ready_transition: Seconds::NONE,
        deletion_cost: 0,
        restarts: 0,
        sidecar_restarts: 0,
        node: Text::EMPTY,
        labels: LabelSet::EMPTY,
        bits: 0,
    };
    /// Nobody looks for all pods of a namespace.
    type InNamespace = ();
}

impl Record for Pod {
    fn labels(&self) -> LabelSet {
        self.labels
    }

    fn is_deleting(&self) -> bool {
        self.is_deleting()
    }

    fn is_ready(&self) -> bool {
        self.is_ready()
    }

    fn is_active(&self) -> bool {
        self.is_active()
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
        Self { bits: bits(PodPhase::Running, ready, false), ..Self::EMPTY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_pod_is_it_is_told_again() {
        for phase in ["", "Pending", "Running", "Succeeded", "Failed", "Unknown", "Later"] {
            let phase = PodPhase::parse(phase);
            for (ready, deleting) in [(false, false), (false, true), (true, false), (true, true)] {
                let pod = Pod { bits: bits(phase, ready, deleting), ..Pod::EMPTY };
                assert_eq!(
                    (pod.phase(), pod.is_ready(), pod.is_deleting()),
                    (phase, ready, deleting)
                );
            }
        }
    }
}
