//! Helpers shared by the end-to-end tests.

pub mod cargo;
pub mod firmware;
pub mod following;
pub mod http;
pub mod kubectl;
pub mod lab;
pub mod peer;
pub mod picokube;
pub mod stateful_set;
pub mod upstream;
pub mod workflow;

pub use picokube_golden as golden;
