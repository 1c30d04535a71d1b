//! The firmware, in QEMU, against the real server.

mod capacity;
mod configuration;
mod faults;
mod golden;
mod self_test;
mod status;
mod trouble;
mod workflow;
