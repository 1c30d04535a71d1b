//! Whole scenarios: the manager against a double of the API server, real bytes in between.

mod cluster;
mod decoder;
mod economy;
mod faults;
mod hostile;
mod kubelet;
mod replicasets;
mod rolling;
mod server;
mod user;
