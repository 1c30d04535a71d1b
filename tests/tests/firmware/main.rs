//! The firmware, in QEMU, against the real server.

mod capacity;
mod clock;
mod configuration;
mod faults;
mod outages;
mod self_test;
mod stateful_sets;
mod status;
mod token;
mod trouble;
mod up;
mod workflow;
