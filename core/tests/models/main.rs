//! The data structures of the core against plain models on std collections, by random operations
//! from printed seeds.

mod cluster;
mod expectations;
mod interner;
mod queue;
mod selectors;
#[cfg(feature = "statefulset")]
mod stateful_set;
#[cfg(feature = "statefulset")]
mod stateful_set_model;
#[cfg(feature = "statefulset")]
mod stateful_set_simulation;
mod store;
mod store_full;
mod support;
mod watch_bench;
mod watch_rules;
mod watch_simulation;
