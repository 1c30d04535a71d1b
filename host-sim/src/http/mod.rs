//! The shell around the API server: sockets, TLS, tokens, the clock, and the disk.
//!
//! One lock guards the server. Requests are parsed before and rendered after they hold it; reads
//! share it. Nothing that a client can be slow at happens under the lock.

mod access;
mod audit;
mod authority;
mod body;
mod client_certificates;
mod cluster;
mod connection;
mod connections;
mod goaway;
mod hosts;
mod inflight;
pub mod kubeconfig;
mod log;
mod metrics;
pub mod names;
mod record;
mod speaking;
mod stall;
pub mod tls;
mod upload;

pub use access::Access;
pub use client_certificates::ClientAuthorities;
pub use cluster::{Cluster, MetricsSource, SharedServer};
pub use connection::{Limits, serve};
pub use hosts::{AcceptedHosts, DEFAULT_ACCEPT_HOSTS};
pub use inflight::InFlightLimits;
pub use log::LogTarget;
pub use metrics::Subject;
pub use record::Logs;
