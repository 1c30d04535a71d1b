//! `coordination.k8s.io/v1` Lease: the lock of leader election.

use super::Meta;
use crate::limits;
use crate::time::Timestamp;
use heapless::String;

/// A Lease.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    /// Its metadata.
    pub meta: Meta,
    /// `spec.holderIdentity`; empty when released.
    pub holder: String<{ limits::NAME }>,
    /// `spec.leaseDurationSeconds`
    pub duration_seconds: i32,
    /// `spec.acquireTime`
    pub acquire_time: Option<Timestamp>,
    /// `spec.renewTime`
    pub renew_time: Option<Timestamp>,
    /// `spec.leaseTransitions`
    pub transitions: i32,
    /// Whether `spec.preferredHolder` is set: coordinated election has ended this term.
    pub has_preferred_holder: bool,
}
