//! Whole scenarios: the manager against a double of the API server, real bytes in between.

mod cluster;
mod kubelet;
mod rolling;
mod server;
mod user;
