//! `metadata`: what every kind has.

use super::{ResourceVersion, Uid};
use crate::limits;
use crate::text::Labels;
use crate::time::Timestamp;
use heapless::String;

/// The metadata of one object.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// Empty for objects without a namespace.
    pub namespace: String<{ limits::NAMESPACE }>,
    /// The name, unique in the namespace at a time.
    pub name: String<{ limits::NAME }>,
    /// The uid, unique for all time.
    pub uid: Uid,
    /// The version that was read.
    pub resource_version: ResourceVersion,
    /// Counts the changes of the desired state; 0 for kinds without it.
    pub generation: i64,
    /// When the server created it.
    pub creation: Option<Timestamp>,
    /// When its deletion was or will be due, if it is being deleted.
    pub deletion: Option<Timestamp>,
    /// The labels, as fingerprints.
    pub labels: Labels,
    /// The first owner with `controller: true`.
    pub controller: Option<ControllerRef>,
    /// Whether any finalizer is set.
    pub has_finalizers: bool,
}

/// The owner reference with `controller: true`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerRef {
    /// The kind of the owner.
    pub kind: OwnerKind,
    /// Its name, in the same namespace.
    pub name: String<{ limits::NAME }>,
    /// Its uid.
    pub uid: Uid,
}

/// The kinds of owner that matter here. As in Kubernetes, only the kind is compared, not the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum OwnerKind {
    /// Some other controller's business.
    #[default]
    Other,
    /// `Deployment`
    Deployment,
    /// `ReplicaSet`
    ReplicaSet,
    /// `StatefulSet`
    StatefulSet,
}

impl OwnerKind {
    /// The owner kind of this name.
    pub fn parse(text: &str) -> Self {
        match text {
            "Deployment" => Self::Deployment,
            "ReplicaSet" => Self::ReplicaSet,
            "StatefulSet" => Self::StatefulSet,
            _ => Self::Other,
        }
    }
}
