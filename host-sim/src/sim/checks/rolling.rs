//! A rolling update keeps its budget: not more pods than the surge allows, and not fewer
//! available ones than may be missing, by what the controller knows when it decides.

use std::collections::BTreeMap;

use picokube_core::link::Slot;
use picokube_core::store::{Cache, Deployment, Entry, Kind, ReplicaSet};
use picokube_core::wire::{IntOrPercent, Strategy, Uid};
use serde_json::Value;

use super::super::clock::Moment;
use super::super::operation::Verb;
use super::{Issued, Verdict};

pub(super) const SURGE: &str = "no more pods than the surge allows";
pub(super) const AVAILABILITY: &str = "no fewer pods available than may be missing";

/// A plan that was made before the Deployment changed may still be carried out for so long.
const CARRIED_OUT_WITHIN_SECS: u64 = 30;

/// What is available may change while a plan is carried out: what it was so long ago still counts.
const DECIDED_WITHIN_SECS: u64 = 5;

/// Since when controllers know the Deployments as they are, and what they knew of late of the
/// pods that are available.
#[derive(Debug, Default)]
pub(super) struct Rolling {
    known: BTreeMap<(usize, Uid), (i64, Moment)>,
    available: BTreeMap<(usize, Uid), Vec<(Moment, i32)>>,
}

/// A change of a ReplicaSet's size that a controller asks for.
pub(super) struct Scaling<'i, 'm> {
    pub(super) deployment: Slot,
    pub(super) set: Slot,
    pub(super) d: Entry<'i, Deployment>,
    pub(super) rs: Entry<'i, ReplicaSet>,
    pub(super) to: i32,
    pub(super) cache: &'i Cache<'m>,
}

impl Rolling {
    /// Remembers since when each Deployment is as it is.
    pub(super) fn note(&mut self, issued: &Issued<'_, '_>) {
        for (_, d) in issued.cache.deployments.iter() {
            let generation = d.record.generation();
            let known = (generation, issued.now);
            let entry = self.known.entry((issued.device, d.uid())).or_insert(known);
            if entry.0 != generation {
                *entry = known;
            }
        }
        for (_, rs) in issued.cache.replica_sets.iter() {
            let available = rs.record.available_replicas.get();
            let recent = self.available.entry((issued.device, rs.uid())).or_default();
            match recent.last_mut() {
                Some((at, last)) if *last == available => *at = issued.now,
                _ => recent.push((issued.now, available)),
            }
            recent.retain(|(at, _)| issued.now.micros_since(*at) < DECIDED_WITHIN_SECS * 1_000_000);
        }
    }

    pub(super) fn forget(&mut self, device: usize) {
        self.known.retain(|(of, _), _| *of != device);
        self.available.retain(|(of, _), _| *of != device);
    }

    /// The scaling that a request is, if its plan was made for the Deployment as it is.
    pub(super) fn scaling<'i, 'm>(&self, issued: &Issued<'i, 'm>) -> Option<Scaling<'i, 'm>> {
        let operation = issued.operation;
        if !operation.is(Verb::Patch, "replicasets") {
            return None;
        }
        let document: Value = serde_json::from_str(issued.document).ok()?;
        let to = document["spec"]["replicas"].as_i64()?;
        let cache = issued.cache;
        let set = cache.replica_sets.find(cache.texts, &operation.namespace, &operation.name)?;
        let deployment = cache.owner_of(Kind::ReplicaSet, set).of(Kind::Deployment)?;
        let (d, rs) = (cache.deployments.get(deployment)?, cache.replica_sets.get(set)?);
        let (_, since) = self.known.get(&(issued.device, d.uid()))?;
        let settled = issued.now.micros_since(*since) > CARRIED_OUT_WITHIN_SECS * 1_000_000;
        let is_observed = d.record.observed_generation() == d.record.generation();
        let to = i32::try_from(to).ok()?;
        (settled || is_observed).then_some(Scaling { deployment, set, d, rs, to, cache })
    }

    pub(super) fn check(&self, issued: &Issued<'_, '_>) -> Verdict {
        let Some(scaling) = self.scaling(issued) else { return Ok(()) };
        let d = &scaling.d.record;
        if d.strategy() != Strategy::RollingUpdate || scaling.is_resizing() {
            return Ok(());
        }
        let from = scaling.rs.record.replicas;
        let (surge, missing) = scaling.fenceposts();
        let sets = || scaling.cache.replica_sets_of(scaling.deployment);
        if scaling.to > from {
            let others = sets().filter(|(slot, _)| *slot != scaling.set);
            let all = scaling.to + others.map(|(_, rs)| rs.record.replicas).sum::<i32>();
            if all > d.replicas + surge {
                let detail = format!("{all} wanted of {} + {surge}", d.replicas);
                return Err((SURGE, detail));
            }
        } else if scaling.to < from {
            let all: i32 = sets().map(|(_, rs)| rs.record.available_replicas.get()).sum();
            let others = all - scaling.rs.record.available_replicas.get();
            let least = d.replicas - missing;
            let key = (issued.device, scaling.rs.uid());
            let mut known = self.available.get(&key).into_iter().flatten().map(|(_, it)| *it);
            // A ReplicaSet that is about to shrink anyway still tells of pods that it will lose.
            // Kubernetes counts on them: what it takes is measured by the statuses alone.
            let taken = from - scaling.to;
            let holds = |own: i32| {
                others + own.min(scaling.to) >= (others + own).min(least)
                    || others + own - taken >= least
            };
            if !known.any(holds) {
                let detail = format!("{all} available, {} wanted, {least} needed", scaling.to);
                return Err((AVAILABILITY, detail));
            }
        }
        Ok(())
    }
}

impl Scaling<'_, '_> {
    /// Whether the Deployment's size has changed, or it is paused: then its ReplicaSets follow in
    /// proportion, whatever is available.
    pub(super) fn is_resizing(&self) -> bool {
        let d = &self.d.record;
        d.is_paused()
            || self.cache.replica_sets_of(self.deployment).any(|(_, rs)| {
                let rs = &rs.record;
                rs.replicas > 0
                    && rs.desired_replicas().is_some_and(|desired| desired != d.replicas)
            })
    }

    /// maxSurge and maxUnavailable in pods, as Kubernetes resolves them.
    fn fenceposts(&self) -> (i32, i32) {
        let d = &self.d.record;
        let surge = resolve(d.max_surge(), d.replicas, 99);
        let missing = resolve(d.max_unavailable(), d.replicas, 0);
        let missing = if surge == 0 && missing == 0 { 1 } else { missing };
        (surge, missing.min(d.replicas))
    }
}

fn resolve(share: Option<IntOrPercent>, replicas: i32, round: i32) -> i32 {
    match share {
        None => 0,
        Some(IntOrPercent::Int(number)) => number,
        Some(IntOrPercent::Percent(percent)) => (replicas * percent + round) / 100,
    }
}
