//! What a device needs to get at an API server: where it is, whom to trust, and as whom to come.
//!
//! It comes from a kubeconfig or from files ([`AccessArguments`]), is checked as the device would check it,
//! and goes onto the device's configuration page ([`Access::apply`]). What the device could not use is
//! refused here, with a sentence that says what to do: nobody reads the log of a device in a cupboard.
//! [`Access::try_out`] goes to the server as the device would. [`ElectionArguments`] are about several
//! devices of one cluster.
#![forbid(unsafe_code)]

mod access;
mod attempt;
mod election;
mod identity;
mod material;
mod place;
mod token;

pub use access::{Access, AccessArguments, Tls};
pub use election::ElectionArguments;
pub use identity::Identity;
