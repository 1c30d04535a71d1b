//! Kubernetes' workload controllers as a state machine: no I/O, no clock, no allocator.
//!
//! Read these two first: [`manager::Manager`], which an embedder drives, and [`request::Request`], which it
//! hands out. [`resources!`] names the memory for a cluster of some size.
//!
//! From the outside in: [`manager`] runs the controllers, each of which is a folder ([`deployment`],
//! [`replicaset`]) and a line of the [`registry`]; [`control`] is what they have in common. They decide on
//! what the [`store`] keeps of the cluster, which has a table for each [`kind`] and is filled by [`watch`].
//! [`wire`] says which fields of an object are looked at while its [`json`] streams by, [`text`] keeps names
//! and labels in little memory. What goes out is written on demand, or made of an object that streams by
//! once more ([`splice`]). [`queue`], [`expect`], [`backoff`], [`event`] and [`time`] are what they are
//! called in Kubernetes.
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
pub mod statefulset;
pub mod store;
pub mod text;
pub mod time;
pub mod watch;
pub mod wire;
pub mod zero;
