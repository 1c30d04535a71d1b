//! `picokube bench`: what it takes, on this machine.

mod cluster;
mod controllers;
mod latency;
mod process;
mod server;
mod transport;

pub(super) use controllers::controllers;
pub(super) use latency::latency;
pub(super) use server::server;
pub(super) use transport::transport;
