//! Who leads writes, and nobody else.
//!
//! What is judged is when a request leaves, from what the network and the server know: what a manager
//! believes of itself does not count.

use std::collections::BTreeMap;

use picokube_core::leader_election::LeaderElection;
use picokube_core::time::Instant;
use serde_json::Value;

use super::super::clock::Moment;
use super::Verdict;

const IN_TIME: &str = "no write leaves a manager after its lease has run out by its own clock";
const TOLD: &str = "whoever has been told that somebody else leads does not write";
const ALONE: &str = "writes of two managers do not interleave";
const QUIET: &str = "a Lease is given back when no write is under way";

/// Until so long after a user has touched the Lease, its holder may not know: it is told by its next
/// renewal, and its own lease ends a renew deadline after its last one, by a clock that may be slow.
const NOT_KNOWN_YET_MICROS: u64 = 10_000_000 * 1_000 / 900;

/// What is known of all managers.
#[derive(Debug, Default)]
pub(in crate::sim) struct Leadership {
    managers: BTreeMap<usize, Known>,
    /// When a user touched the Lease last.
    meddled_at: Option<Moment>,
}

/// What is known of one of them.
#[derive(Debug, Default)]
struct Known {
    /// When the last renewal left that it knows to have worked, by its own clock.
    renewed_at: Option<Instant>,
    /// Its last request about the Lease: when that left, and whether it takes or renews the Lease.
    request: Option<(Instant, bool)>,
    /// It has read that somebody else holds the Lease, or nobody.
    is_told_otherwise: bool,
}

/// A write that leaves a manager.
pub(in crate::sim) struct Leaving<'l> {
    pub(in crate::sim) device: usize,
    pub(in crate::sim) identity: &'l str,
    /// What its clock shows.
    pub(in crate::sim) local: Instant,
    pub(in crate::sim) now: Moment,
    /// Who holds the Lease that is stored.
    pub(in crate::sim) holder: &'l str,
}

impl Leadership {
    /// A manager has booted or died.
    pub(in crate::sim) fn forget(&mut self, device: usize) {
        self.managers.remove(&device);
    }

    /// A user has touched the Lease.
    pub(in crate::sim) fn meddled(&mut self, now: Moment) {
        self.meddled_at = Some(now);
    }

    /// A request about the Lease leaves. `others` of this manager are under way that change something.
    pub(in crate::sim) fn asks(
        &mut self,
        device: usize,
        local: Instant,
        body: &[u8],
        others: usize,
    ) -> Verdict {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let spec = body["spec"].as_object();
        let gives_back = spec.is_some_and(|it| it.get("holderIdentity") == Some(&Value::Null));
        let takes = spec.is_some() && !gives_back;
        let known = self.managers.entry(device).or_default();
        known.request = Some((local, takes));
        if gives_back && others > 0 {
            return Err((QUIET, format!("manager {device} has {others} under way")));
        }
        Ok(())
    }

    /// The answer to such a request has reached its manager.
    pub(in crate::sim) fn is_told(
        &mut self,
        device: usize,
        identity: &str,
        status: u16,
        body: &[u8],
    ) {
        let known = self.managers.entry(device).or_default();
        let Some((left_at, takes)) = known.request.take() else { return };
        match status {
            200 | 201 if takes => {
                known.renewed_at = Some(left_at);
                known.is_told_otherwise = false;
            }
            200 => {
                let lease: Value = serde_json::from_slice(body).unwrap_or_default();
                known.is_told_otherwise = lease["spec"]["holderIdentity"] != identity;
            }
            404 => known.is_told_otherwise = true,
            _ => {}
        }
    }

    /// A write of a controller leaves.
    pub(in crate::sim) fn check(&self, leaving: &Leaving<'_>) -> Verdict {
        let Leaving { device, identity, local, now, holder } = *leaving;
        let known = self.managers.get(&device);
        let renewed_at = known.and_then(|known| known.renewed_at);
        let ends_at = renewed_at.map(|at| at + LeaderElection::DEFAULT.renew_deadline);
        if ends_at.is_none_or(|ends_at| ends_at <= local) {
            let late = local.since(ends_at.unwrap_or_default()).as_millis();
            return Err((IN_TIME, format!("manager {device}, {late} ms late")));
        }
        if known.is_some_and(|known| known.is_told_otherwise) {
            return Err((TOLD, format!("manager {device}")));
        }
        let is_excused = self
            .meddled_at
            .is_some_and(|meddled_at| now.micros_since(meddled_at) <= NOT_KNOWN_YET_MICROS);
        if holder != identity && !is_excused {
            return Err((ALONE, format!("{identity} writes while \"{holder}\" holds the Lease")));
        }
        Ok(())
    }
}
