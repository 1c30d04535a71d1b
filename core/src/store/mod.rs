//! The cache: what the informers know of the cluster, in fixed memory.
//!
//! Each kind has a [`Table`] of compact records, found by namespace and name. Objects are chained in
//! [`Groups`]: by controller, orphans by namespace, and those that control others, all of a namespace.
//! [`Cache`] puts the tables together, applies what a list or watch delivers, and says what
//! changed in the terms that event handlers ask for.
//!
//! A full table refuses the newcomer and marks its owner *blind*: see [`Cache::is_blind`].

mod annotations;
mod apply;
mod blind;
mod cache;
mod cached;
mod change;
mod condition;
#[cfg(feature = "statefulset")]
mod controller_revision;
mod deployment;
mod groups;
mod index;
mod packed;
#[cfg(feature = "statefulset")]
mod persistent_volume_claim;
mod pod;
mod queries;
mod relist;
mod replica_set;
#[cfg(feature = "statefulset")]
mod stateful_set;
mod table;

pub use crate::kind::Kind;
pub use annotations::Annotations;
pub use cache::Cache;
pub use cached::{Cached, Condense};
pub use change::{Applied, Change, ChangeType, Owner, Refusal, RefusalReason};
pub use condition::{Condition, ConditionReason};
#[cfg(feature = "statefulset")]
pub use controller_revision::ControllerRevision;
pub use deployment::Deployment;
pub use groups::{Group, Groups};
pub use index::{Head, Place};
pub use packed::{Count24, Seconds};
#[cfg(feature = "statefulset")]
pub use persistent_volume_claim::PersistentVolumeClaim;
pub use pod::Pod;
pub use relist::Sweep;
pub use replica_set::ReplicaSet;
#[cfg(feature = "statefulset")]
pub use stateful_set::StatefulSet;
pub use table::{Entry, InNamespace, Record, Stored, Table, TableMemory};

// The cost of an object in the tables, the same on every target; growing one is a decision. What
// an object costs with its names and labels is measured by `examples/bytes_per_object.rs`.
const _: () = assert!(TableMemory::<Pod, 1>::PER_OBJECT == 68);
const _: () = assert!(TableMemory::<ReplicaSet, 1>::PER_OBJECT == 146);
const _: () = assert!(TableMemory::<Deployment, 1>::PER_OBJECT == 190);
#[cfg(feature = "statefulset")]
const _: () = {
    assert!(TableMemory::<StatefulSet, 1>::PER_OBJECT == 142);
    assert!(TableMemory::<ControllerRevision, 1>::PER_OBJECT == 80);
    assert!(TableMemory::<PersistentVolumeClaim, 1>::PER_OBJECT == 76);
};
const _: () = assert!(size_of::<Group>() == 30);
