//! Kubernetes' workload controllers as a state machine: no I/O, no clock, no allocator.
#![no_std]
#![forbid(unsafe_code)]

pub mod backoff;
pub mod time;
