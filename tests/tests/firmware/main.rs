//! The firmware, in QEMU, against the real server.

mod capacity;
mod churn;
mod clock;
mod configuration;
mod expiry;
mod faults;
mod gateway;
mod outages;
mod renewals;
mod secrecy;
mod secure;
mod self_test;
mod stateful_sets;
mod status;
mod token;
mod trouble;
mod up;
mod workflow;
