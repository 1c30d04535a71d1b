//! A Kubernetes cluster in one process.

pub mod api;
pub mod http;
pub mod time;
