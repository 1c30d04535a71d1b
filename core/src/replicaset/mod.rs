//! The ReplicaSet controller.

mod manage;
mod status;

pub use manage::{BURST, Manage, manage};
pub use status::{Count, FAILED_CREATE, FAILED_DELETE, FailureWrite, Stored, needs_write};
