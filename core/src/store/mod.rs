//! The cache: what the informers know of the cluster, in fixed memory.
//!
//! Each kind has a [`Table`] of compact records, found by namespace and name. Objects are chained in
//! [`Groups`]: by controller, orphans by namespace, and, but for pods, all of a namespace.
//! [`Cache`] puts the tables together, applies what a list or watch delivers, and says what
//! changed in the terms that event handlers ask for.
//!
//! A full table refuses the newcomer and marks its owner *blind*: see [`Cache::is_blind`].

mod annotations;
mod apply;
mod blind;
mod cache;
mod change;
mod deployment;
mod groups;
mod packed;
mod pod;
mod queries;
mod relist;
mod replica_set;
mod table;

pub use annotations::Annotations;
pub use cache::{Cache, CacheState, Kind};
pub use change::{Applied, Change, Event, Owner, Refusal, RefusalReason};
pub use deployment::Deployment;
pub use groups::{Group, Groups};
pub use packed::{Annotation, Condition, Seconds, Share};
pub use pod::Pod;
pub use relist::Sweep;
pub use replica_set::ReplicaSet;
pub use table::{Entry, InNamespace, Place, Record, Table};

// The cost of an object in the tables, the same on every target; growing one is a decision. What
// an object costs with its names and labels is measured by `examples/bytes_per_object.rs`.
const _: () = assert!(size_of::<Entry<Pod>>() == 68);
const _: () = assert!(size_of::<Entry<ReplicaSet>>() == 164);
const _: () = assert!(size_of::<Entry<Deployment>>() == 260);
const _: () = assert!(size_of::<Group>() == 32);
