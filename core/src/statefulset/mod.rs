//! The StatefulSet controller's decisions.
//!
//! [`decide()`] is the heart: a pure function from a [`View`] to a [`Plan`]. The files beside it hold one
//! rule each, under its Kubernetes name. Before it stands which ControllerRevisions there are to be
//! ([`revisions`]), beside it whom claims belong to ([`retention`]) and what everything is called
//! ([`identity`]).

mod answers;
mod body;
mod claims;
mod condemned;
mod controller;
mod decide;
mod facts;
mod heal;
pub mod identity;
mod plan;
mod replicas;
pub mod retention;
pub mod revisions;
mod rolling_update;
mod status;
mod sync;
#[cfg(test)]
mod testing;
mod view;
mod worker;

pub use controller::{INFO, Memory, Parts};
pub(crate) use controller::{StatefulSetController, WorkerParts, Workers, start};
pub use decide::{Impossible, decide};
pub use plan::{DeleteReason, End, NewRevision, Phase, Plan, STEPS, Step};
pub use status::StatusWrite;
pub use view::{
    Claims, Counts, Facts, PodFacts, PodManagementPolicy, PodState, UpdateStrategy, View,
};
