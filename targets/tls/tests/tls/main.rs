//! The client against servers: honest ones of other people's, and hostile ones of ours.

mod support;

mod interop;
mod tickets;
