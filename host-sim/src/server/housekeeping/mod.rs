//! What a cluster does by itself, as a queue of small steps.
//!
//! Every write is observed and may leave work behind. [`Server::step`] does one piece of it. The
//! order depends on nothing but the order of the writes, so a simulation repeats exactly.

mod claims;
mod emptying;
mod furnishing;
mod garbage;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::store::{Change, ChangeKind, Entry, ResourceId, Store};
use crate::time::Timestamp;

use super::{Resources, Server};

use garbage::Garbage;

/// Events are kept for an hour after they were last written.
const EVENT_LIFETIME_SECONDS: i64 = 3600;

/// Work that writes have left behind.
#[derive(Debug, Default)]
pub(super) struct Housekeeping {
    garbage: Garbage,
    /// Namespaces that have to be emptied.
    terminating: BTreeSet<Box<str>>,
    /// Namespaces whose quota status may be out of date.
    quotas: BTreeSet<Box<str>>,
    /// Namespaces that may lack something that every one has.
    unfurnished: BTreeSet<Box<str>>,
    /// Namespaces with a claim that waits for its pods.
    claims: BTreeSet<Box<str>>,
    /// Events in the order of their expiry: when, key, revision.
    expiries: VecDeque<(Timestamp, Arc<str>, u64)>,
}

impl Housekeeping {
    /// Takes note of a write. What nobody could have work with is left out right here: most
    /// writes leave none.
    pub(super) fn observe(
        &mut self,
        resources: &Resources,
        store: &Store,
        now: Timestamp,
        id: ResourceId,
        change: &Change,
    ) {
        let entry = &change.entry;
        let deleted = change.kind == ChangeKind::Deleted;
        self.garbage.observe(store, now, id, change);
        if id == resources.namespaces {
            if !deleted && entry.deletion.is_some() {
                self.terminating.insert(entry.name().into());
            } else if change.kind == ChangeKind::Added {
                self.unfurnished.insert(entry.name().into());
            }
            return;
        }
        if id == resources.events && !deleted {
            let expiry = now.plus_seconds(EVENT_LIFETIME_SECONDS);
            self.expiries.push_back((expiry, entry.key.clone(), entry.revision));
        }
        let namespace = entry.namespace();
        if !store.resource(resources.quotas).is_empty() {
            self.quotas.insert(namespace.into());
        }
        if furnishing::unfurnishes(resources, id, change) {
            self.unfurnished.insert(namespace.into());
        }
        let claim_goes = id == resources.claims && entry.deletion.is_some() && !deleted;
        let pod_gone = id == resources.pods && deleted;
        if claim_goes || pod_gone && !store.resource(resources.claims).is_empty() {
            self.claims.insert(namespace.into());
        }
        let ending = |namespace: &Arc<Entry>| namespace.deletion.is_some();
        let goes = deleted || entry.deletion.is_some();
        if goes && store.get(resources.namespaces, namespace).is_some_and(ending) {
            self.terminating.insert(namespace.into());
        }
    }
}

impl Server {
    /// Lets the garbage collector take that long to hear that an owner has gone, and from one write
    /// about an owner to the next. In Kubernetes it follows watches like all others, so that a
    /// controller hears of an owner's end before it hears of the dependents'. A simulation has its
    /// own delays.
    pub fn delay_garbage_collection(&mut self, millis: i64) {
        self.housekeeping.garbage.reaction_millis = millis;
        self.housekeeping.garbage.turn_millis = millis;
    }

    /// Does one piece of the cluster's own work; says whether there was any to do.
    pub fn step(&mut self, now: Timestamp) -> bool {
        if let Some(namespace) = self.housekeeping.unfurnished.pop_first() {
            self.furnish(now, &namespace);
            return true;
        }
        if let Some(item) = self.housekeeping.garbage.next(now) {
            self.collect(now, item);
            return true;
        }
        if let Some(namespace) = self.housekeeping.claims.pop_first() {
            self.release_claims(now, &namespace);
            return true;
        }
        if let Some(namespace) = self.housekeeping.terminating.pop_first() {
            self.empty_namespace(now, &namespace);
            return true;
        }
        if let Some(namespace) = self.housekeeping.quotas.pop_first() {
            self.refresh_quotas(now, &namespace);
            return true;
        }
        self.expire_event(now)
    }

    /// Does all of the cluster's own work that is due.
    pub fn settle(&mut self, now: Timestamp) {
        while self.step(now) {}
    }

    /// Whether [`Server::step`] has something to do right now.
    pub fn has_work(&self) -> bool {
        let housekeeping = &self.housekeeping;
        !housekeeping.garbage.is_empty()
            || [
                &housekeeping.terminating,
                &housekeeping.quotas,
                &housekeeping.unfurnished,
                &housekeeping.claims,
            ]
            .iter()
            .any(|set| !set.is_empty())
    }

    /// When there will be something to do although nobody has written; `None` for never.
    pub fn step_at(&self) -> Option<Timestamp> {
        if self.has_work() {
            return Some(Timestamp::default());
        }
        let expiry = self.housekeeping.expiries.front().map(|(expiry, ..)| *expiry);
        expiry.into_iter().chain(self.housekeeping.garbage.turn_at()).min()
    }

    fn expire_event(&mut self, now: Timestamp) -> bool {
        match self.housekeeping.expiries.front() {
            Some((expiry, ..)) if *expiry <= now => {}
            _ => return false,
        }
        let Some((_, key, revision)) = self.housekeeping.expiries.pop_front() else {
            return false;
        };
        let id = self.resources.events;
        // A later write has given the event a new hour.
        if let Some(event) = self.store.get(id, &key).filter(|e| e.revision == revision).cloned() {
            self.commit_removal(now, id, &key, &mut event.parse());
        }
        true
    }
}
