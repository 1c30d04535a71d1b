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

pub(crate) use controller::{DeploymentController, start};
pub use controller::{INFO, Memory, Parts, WorkerParts, Workers};
pub use decide::{Impossible, decide};
pub use new_replica_set::{
    FOUND_NEW_REPLICA_SET, NEW_REPLICA_SET_CREATED, REPLICA_SET_CREATE_ERROR,
};
pub use plan::{ConditionWrite, End, NewSet, Plan, STEPS, StatusWrite, Step, Warning};
pub use progress::{NEW_REPLICA_SET_AVAILABLE, PROGRESS_DEADLINE_EXCEEDED, REPLICA_SET_UPDATED};
pub use status::{
    DEPLOYMENT_PAUSED, DEPLOYMENT_RESUMED, MINIMUM_REPLICAS_AVAILABLE, MINIMUM_REPLICAS_UNAVAILABLE,
};
pub use view::{Counts, Facts, SETS, Set, View};
