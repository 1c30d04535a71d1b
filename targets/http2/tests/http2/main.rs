//! The codec against the RFCs' examples and rules, against servers that break them, against models, and
//! against the server of the `h2` crate.

mod client;
mod corpus;
mod flow_control;
mod hostile;
mod hpack;
mod interop;
mod memory;
mod pace;
mod reference;
mod rules;
mod splits;
mod streams;
mod wire;
