//! Helpers shared by the end-to-end tests.

pub mod cargo;
pub mod census;
pub mod document;
pub mod firmware;
pub mod following;
pub mod http;
pub mod impostors;
pub mod kubectl;
pub mod lab;
pub mod lease;
pub mod meter;
pub mod peer;
pub mod picokube;
pub mod port;
pub mod rollouts;
pub mod secure_front;
pub mod secure_peer;
pub mod sockets;
pub mod stateful_set;
pub mod tunnel;
pub mod upstream;
pub mod workflow;

pub use picokube_golden as golden;
