//! A Kubernetes cluster in one process.

pub mod api;
#[cfg(feature = "cluster")]
pub mod cli;
#[cfg(feature = "cluster")]
pub mod controllers;
#[cfg(feature = "cluster")]
pub mod disk;
#[cfg(feature = "cluster")]
pub mod http;
pub mod nodes;
#[cfg(feature = "cluster")]
pub mod private;
pub mod random;
pub mod server;
pub mod sim;
#[cfg(feature = "driver")]
mod speaking;
pub mod store;
pub mod time;
