//! A Kubernetes cluster in one process.

pub mod api;
pub mod cli;
pub mod controllers;
pub mod disk;
pub mod http;
pub mod nodes;
pub mod private;
pub mod random;
pub mod server;
pub mod sim;
pub mod store;
pub mod time;
