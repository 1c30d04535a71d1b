//! What the workload controllers have in common: what a controller is, its keys and its writes;
//! claiming, owner references, judging and ranking pods, slow start, conditions.

mod claim;
mod claiming;
mod condition;
mod controller;
mod keys;
mod owner;
mod pods;
mod rank;
mod rate;
mod reply;
mod run;
mod runner;
mod slow_start;
mod world;
mod write;

pub use claim::{Candidate, Claim, Claimer, claim};
pub(crate) use claiming::ClaimRule;
pub use condition::{NewCondition, set_condition};
pub use controller::ControllerInfo;
pub(crate) use controller::{Activity, Controller};
pub use keys::{Keys, KeysMemory};
pub use owner::{write_adoption, write_release};
pub use pods::{OrderedPod, is_available, next_availability};
pub use rank::{Rank, deletion_order};
pub use rate::Rate;
pub(crate) use reply::{Reply, Verdict};
pub(crate) use run::{NextClaim, Outcome, Run};
pub(crate) use runner::{Look, Runner, Sync, Worker, WorkerMemory, WorkerSlots};
pub use slow_start::SlowStart;
pub(crate) use world::{Peers, World, record};
pub(crate) use write::{BodySource, Purpose, Write, object_target, write_terminating};
