//! Leader election: of several managers of one cluster, one leads and writes, the others stand by.
//!
//! The lock is a Lease, used exactly as client-go's `leaderelection` uses it, so that managers of other
//! make can share it. Nobody compares clocks: whoever sees the Lease change starts a timer of his own, and
//! may take over when that has run for as long as the Lease says. A leader that cannot renew in time does
//! not exit, as upstream's does: it writes nothing any more and goes on watching.
//!
//! [`LeaderElection`] is what can be chosen, [`Elector`] the machine, [`Lease`] what it reads.

mod elector;
mod lease;
mod settings;
mod write;

pub use elector::{Elector, Leadership, Step};
pub use lease::{Lease, LeaseReader, Record};
pub use settings::{InvalidLeaderElection, LeaderElection};
