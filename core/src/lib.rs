//! Kubernetes' workload controllers as a state machine: no I/O, no clock, no allocator.
//!
//! Read these two first: [`manager::Manager`], which an embedder drives, and [`request::Request`], which it
//! hands out. [`resources!`] names the memory for a cluster of some size.
//!
//! From the outside in: [`manager`] runs the controllers, each of which is a folder (`deployment`,
//! `replicaset`) and a line of the [`registry`]; `control` is what they have in common. They decide on
//! what the `store` keeps of the cluster, which has a table for each [`kind`] and is filled by [`watch`].
//! `wire` says which fields of an object are looked at while its `json` streams by, `text` keeps names
//! and labels in little memory. What goes out is written on demand, or made of an object that streams by
//! once more ([`splice`]). `queue`, `expect`, [`backoff`], `event`, [`leader_election`] and [`time`] are
//! what they are called in Kubernetes. Rooms without a link are not for embedders, and may change at any
//! time.
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

// What an embedder works with.
pub mod backoff;
pub mod kind;
pub mod leader_election;
pub mod limits;
pub mod manager;
pub mod metrics;
pub mod random;
pub mod registry;
pub mod request;
pub mod resources;
pub mod splice;
pub mod time;
pub mod watch;

// The rooms behind: open to this project's tests, benches and simulation, and without any promise to others.
#[doc(hidden)]
pub mod control;
#[doc(hidden)]
pub mod deployment;
#[doc(hidden)]
pub mod event;
#[doc(hidden)]
pub mod expect;
#[doc(hidden)]
pub mod json;
#[doc(hidden)]
pub mod link;
#[doc(hidden)]
pub mod planted;
#[doc(hidden)]
pub mod queue;
#[doc(hidden)]
pub mod replicaset;
#[cfg(feature = "replication-controller")]
#[doc(hidden)]
pub mod replication_controller;
mod sort;
#[cfg(feature = "statefulset")]
#[doc(hidden)]
pub mod statefulset;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod text;
#[doc(hidden)]
pub mod wire;
#[doc(hidden)]
pub mod zero;
