//! Golden scenarios: recordings of the real controllers, and a player that repeats them.
//!
//! Each directory in `tests/golden` has the steps of a scenario and what happened when the real
//! API server and controllers went through them. `run_all` goes through the same steps with any API
//! server and whatever controllers act on it, and compares. Neither server nor controllers are
//! started here: the same scenarios serve a simulator, a board, and a [simulation](direct) in
//! virtual time.
//!
//! A [`Scenario`] is read from its directory; the player does its [steps](step) over HTTP while a
//! [recorder] watches and a fake [kubelet] moves the pods. What was seen becomes a [trace] of
//! [projections](project) with [names](alias) that are the same in every run. A [`Report`] holds
//! its [facets] against those of the recording.

pub mod alias;
pub mod client;
pub mod conditions;
pub mod diff;
pub mod direct;
pub mod facets;
pub mod invariants;
pub mod kubelet;
pub mod namespace;
pub mod node;
pub mod normalise;
pub mod object;
#[cfg(feature = "over-http")]
mod over_http;
mod placeholders;
mod player;
pub mod probe;
pub mod project;
pub mod recorder;
mod refusals;
pub mod report;
mod requests;
pub mod resource;
#[cfg(feature = "over-http")]
mod run_all;
pub mod scenario;
pub mod step;
#[cfg(feature = "over-http")]
pub mod suite;
pub mod trace;
mod twins;
pub mod whole;

#[cfg(test)]
mod recordings;

use std::path::PathBuf;

pub use client::{Client, Server};
pub use player::{Detail, play_in};
pub use report::Report;
#[cfg(feature = "over-http")]
pub use run_all::run_all;
pub use scenario::Scenario;

/// Facets that were the same in all recorded runs although a race decides: scenario and facet.
///
/// `d-rollover`: whether the new ReplicaSet has reported its first two pods before it is scaled
/// again. It has in `d-pause-resume`, where the same happens; ours always lets it report first.
///
/// `s-partition`: somebody deletes a pod without grace. In etcd that is two transactions, and Kubernetes
/// writes a status between them; here it is one, whose two events come at once.
pub const RACES: [(&str, &str); 2] =
    [("d-rollover", "strict-ReplicaSet"), ("s-partition", "strict-StatefulSet")];

/// Where the scenarios are.
pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../golden")
}
