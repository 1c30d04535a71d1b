//! A Kubernetes cluster in one process.

pub mod http;
