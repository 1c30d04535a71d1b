//! The ReplicaSet controller.

mod body;
pub(crate) mod controller;
mod manage;
mod status;
mod sync;
mod worker;

pub use controller::{INFO, Memory, Parts};
pub(crate) use controller::{ReplicaSetController, WorkerParts, Workers, start};
pub use manage::{BURST, Manage, manage};
pub use status::{Counts, FailureWrite, StoredStatus, needs_write};
