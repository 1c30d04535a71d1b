//! What the workload controllers have in common: claiming, owner references, judging and ranking
//! pods, slow start, conditions.

mod claim;
mod condition;
mod owner;
mod pods;
mod rank;
mod slow_start;

pub use claim::{Candidate, Claim, Claimer, MayAdopt, claim};
pub use condition::{NewCondition, set_condition};
pub use owner::{write_adoption, write_release};
pub use pods::{is_available, next_availability};
pub use rank::{Rank, deletion_order};
pub use slow_start::SlowStart;
