//! The firmware, in QEMU, against the real server.

mod configuration;
mod self_test;
mod workflow;
