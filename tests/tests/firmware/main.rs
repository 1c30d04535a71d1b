//! The firmware, in QEMU, against the real server.

mod configuration;
mod self_test;
mod status;
mod trouble;
mod workflow;
