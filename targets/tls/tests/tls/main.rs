//! The client against servers: honest ones of other people's, and hostile ones of ours.

mod puppet;
mod rustls_server;
#[path = "../support/mod.rs"]
mod support;

mod certificates;
mod facts;
mod floods;
mod hostile;
mod interop;
mod tickets;
mod wire;
