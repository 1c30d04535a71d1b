//! Kubernetes' workload controllers as a state machine: no I/O, no clock, no allocator.
#![no_std]
#![forbid(unsafe_code)]
// Input reaches everything here, so nothing here may stop the firmware.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing
    )
)]

#[cfg(test)]
extern crate std;

pub mod backoff;
pub mod control;
pub mod deployment;
pub mod event;
pub mod expect;
pub mod json;
pub mod kind;
pub mod limits;
pub mod link;
pub mod manager;
pub mod metrics;
pub mod planted;
pub mod queue;
pub mod registry;
pub mod replicaset;
#[cfg(feature = "replication-controller")]
pub mod replication_controller;
pub mod request;
pub mod resources;
mod sort;
pub mod splice;
pub mod store;
pub mod text;
pub mod time;
pub mod watch;
pub mod wire;
pub mod zero;
