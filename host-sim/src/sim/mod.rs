//! The deterministic simulation: break it a million times before anyone else does.
//!
//! The real controllers ([`picokube_core`]'s manager, exactly as shipped), the real API server's
//! rules and store, simulated nodes, a network that loses and delays, clocks that are wrong: all
//! in one thread, in virtual time, from one seed. The same [`Plan`] gives the same run, byte for
//! byte; [`Outcome::trace`] has a hash that says so.
//!
//! [`run`] has users of its own; on a [`stage()`] somebody else acts.
//!
//! Read [`Plan`] first (what users do and what breaks), then `world` (what follows from it), then
//! `checks` (what must hold all the time) and `converge` (what must hold in the end).

mod agenda;
mod boards;
mod checks;
mod clock;
mod controllers;
mod converge;
mod converge_deployments;
mod converge_sets;
mod deaths;
mod device;
mod election;
mod exchange;
mod fault;
mod kept;
mod leading;
mod link;
mod memory;
mod mischief;
mod operation;
mod picture;
mod plan;
#[cfg(feature = "driver")]
mod shipped;
mod shrink;
mod stage;
mod stream;
mod strike;
mod tally;
mod templates;
mod trace;
mod users_of_sets;
mod workload;
mod world;

#[cfg(test)]
mod tests;

pub use checks::Violation;
pub use clock::Moment;
pub use controllers::ControllerAction;
pub use deaths::{Deaths, Leftover};
pub use election::{Election, LeaseEdit};
pub use fault::{Break, Fault};
pub use memory::Room;
pub use mischief::Lie;
pub use picture::picture;
pub use plan::{Plan, Protocol, Selectors, Shape, Shipping, Timed, When, Workload};
#[cfg(feature = "driver")]
pub use shipped::{Lab, LabListener, LabSocket};
pub use shrink::{Shrunk, shrink};
pub use stage::{Spectator, Stage, stage};
pub use tally::{Failure, Tally};
pub use trace::{Actor, Line, Trace};
pub use users_of_sets::SetAction;
pub use workload::Action;
pub use world::{Counts, Outcome, run};
