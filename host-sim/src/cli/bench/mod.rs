//! `picokube bench`: what it takes, on this machine.

mod cluster;
mod controllers;
mod process;
mod server;

pub(super) use controllers::controllers;
pub(super) use server::server;
