//! Annotations: those that controllers read by name, and the rest as fingerprints.

use crate::json::Digest;
use crate::limits;
use crate::text::Fingerprint;
use heapless::{String, Vec};

/// An annotation that holds a whole number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum IntAnnotation {
    /// The object does not have it.
    #[default]
    Absent,
    /// It is there but no number.
    Invalid,
    /// Its value.
    Value(i64),
}

impl IntAnnotation {
    /// The number, if there is one.
    pub const fn value(self) -> Option<i64> {
        match self {
            Self::Value(number) => Some(number),
            Self::Absent | Self::Invalid => None,
        }
    }

    /// The number if it is there and fits 32 bits, as Kubernetes reads replica annotations.
    pub fn as_i32(self) -> Option<i32> {
        self.value().and_then(|number| i32::try_from(number).ok())
    }
}

/// The annotations that a Deployment and its ReplicaSets share: all but
/// `kubectl.kubernetes.io/last-applied-configuration`, those of `deployment.kubernetes.io` and
/// `deprecated.deployment.rollback.to`.
#[derive(Clone, Debug, Default)]
pub struct SharedAnnotations {
    /// Over all of them, whatever their order.
    pub digest: Digest,
    /// One fingerprint per annotation, of key and value together.
    pub prints: Vec<Fingerprint, { limits::ANNOTATIONS }>,
    /// There were more than [`limits::ANNOTATIONS`]; only the digest covers them all.
    pub overflowed: bool,
}

/// `deployment.kubernetes.io/revision-history`: revisions a ReplicaSet served before.
#[derive(Clone, Debug, Default)]
pub struct RevisionHistory {
    /// The annotation as far as it fits.
    pub text: String<{ limits::REVISION_HISTORY }>,
    /// Length of the annotation on the server.
    pub len: u32,
}

impl RevisionHistory {
    /// Whether [`text`](Self::text) is all of it.
    pub fn is_complete(&self) -> bool {
        self.text.len() == self.len as usize
    }
}
