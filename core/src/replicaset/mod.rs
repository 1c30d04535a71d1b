//! The ReplicaSet controller.

mod manage;
mod status;
mod sync;
mod worker;

pub use manage::{BURST, Manage, manage};
pub use status::{Count, FAILED_CREATE, FAILED_DELETE, FailureWrite, Stored, needs_write};
pub use sync::Ranked;
pub(crate) use sync::failure_reason;
pub use worker::Worker;
pub(crate) use worker::{Outcome, Phase, Want, push_cut};
