//! What the API server knows about Kubernetes objects, as pure functions.
//!
//! Nothing here reads a clock, draws a random number or does I/O: `now`, uids and random name suffixes are
//! arguments. Objects are [`serde_json::Value`]s. Read [`kind`] first (what is served), then [`status`]
//! (how anything is refused).

pub mod apply;
pub mod body;
pub mod conform;
pub mod convert;
pub mod decode;
mod defaults;
pub mod discovery;
pub mod field;
mod field_labels;
pub mod kind;
mod kinds;
pub mod lifecycle;
pub mod names;
pub mod object;
pub mod openapi;
pub mod patch;
pub mod protobuf;
pub mod qos;
pub mod quantity;
pub mod quota;
pub mod rules;
pub mod schema;
pub mod selector;
pub mod service;
pub mod status;
mod strategy;
pub mod table;
#[cfg(test)]
mod testing;
mod validation;

pub use field::{FieldErrors, Path};
pub use kind::Kind;
pub use status::Status;
