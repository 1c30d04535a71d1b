//! The firmware, in QEMU, against the real server.

mod capacity;
mod configuration;
mod faults;
mod self_test;
mod status;
mod trouble;
mod workflow;
