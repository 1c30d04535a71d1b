//! Whole scenarios: the manager against a double of the API server, real bytes in between.

mod cluster;
mod decoder;
mod economy;
mod faults;
#[cfg(all(feature = "statefulset", feature = "replication-controller"))]
mod hostile;
#[cfg(all(feature = "statefulset", feature = "replication-controller"))]
mod hostile_objects;
mod kubelet;
mod leading;
mod replicasets;
mod rolling;
mod server;
#[cfg(feature = "statefulset")]
mod stateful;
#[cfg(feature = "statefulset")]
mod stateful_faults;
#[cfg(feature = "statefulset")]
mod stateful_races;
#[cfg(feature = "statefulset")]
mod stateful_set;
mod user;
