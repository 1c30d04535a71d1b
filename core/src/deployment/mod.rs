//! The Deployment controller.
//!
//! [`decide()`] is the controller: a pure function from a [`View`] to a [`Plan`]. The files beside
//! it hold one rule each, under its Kubernetes name.

mod basis;
mod body;
mod cleanup;
mod controller;
mod decide;
mod names;
mod new_replica_set;
mod numbers;
mod plan;
mod progress;
mod recreate;
mod rollback;
mod rolling;
mod scale;
mod status;
mod sync;
mod view;
mod worker;

pub(crate) use controller::{DeploymentController, WorkerParts, Workers, start};
pub use controller::{INFO, Memory, Parts};
pub use decide::{Impossible, decide};
pub use plan::{ConditionWrite, End, NewSet, Plan, STEPS, StatusWrite, Step, Warning};
pub use view::{Counts, Facts, SETS, Set, View};
