//! What a cluster does by itself, as a queue of small steps.
//!
//! Every write is observed and may leave work behind. [`Server::step`] does one piece of it. The
//! order depends on nothing but the order of the writes, so a simulation repeats exactly.

mod claims;
mod garbage;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use http::Method;

use crate::store::{Change, ChangeKind, ResourceId};
use crate::time::Timestamp;

use super::request::Request;
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
    /// Namespaces that need their default service account.
    accounts: BTreeSet<Box<str>>,
    /// Namespaces with a claim that waits for its pods.
    claims: BTreeSet<Box<str>>,
    /// Events in the order of their expiry: when, key, revision.
    expiries: VecDeque<(Timestamp, Arc<str>, u64)>,
}

impl Housekeeping {
    /// Takes note of a write.
    pub(super) fn observe(
        &mut self,
        resources: &Resources,
        now: Timestamp,
        id: ResourceId,
        change: &Change,
    ) {
        let entry = &change.entry;
        let deleted = change.kind == ChangeKind::Deleted;
        self.garbage.observe(id, change);
        if id == resources.namespaces {
            if !deleted && entry.deletion.is_some() {
                self.terminating.insert(entry.name().into());
            } else if change.kind == ChangeKind::Added {
                self.accounts.insert(entry.name().into());
            }
        } else if id == resources.events && !deleted {
            let expiry = now.plus_seconds(EVENT_LIFETIME_SECONDS);
            self.expiries.push_back((expiry, entry.key.clone(), entry.revision));
        } else if id == resources.quotas || id == resources.pods {
            self.quotas.insert(entry.namespace().into());
        }
        if id == resources.claims && entry.deletion.is_some() && !deleted
            || id == resources.pods && (deleted || entry.deletion.is_some())
        {
            self.claims.insert(entry.namespace().into());
        }
        if deleted && !entry.namespace().is_empty() {
            // Whether the namespace is really going is looked up when its turn comes.
            self.terminating.insert(entry.namespace().into());
        }
    }
}

impl Server {
    /// Does one piece of the cluster's own work; says whether there was any to do.
    pub fn step(&mut self, now: Timestamp) -> bool {
        if let Some(namespace) = self.housekeeping.accounts.pop_first() {
            self.create_default_account(now, &namespace);
            return true;
        }
        if let Some(item) = self.housekeeping.garbage.next() {
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

    /// Does all of the cluster's own work.
    pub fn settle(&mut self, now: Timestamp) {
        while self.step(now) {}
    }

    /// When there will be something to do although nobody has written; `None` for never.
    pub fn step_at(&self) -> Option<Timestamp> {
        let housekeeping = &self.housekeeping;
        let busy = !housekeeping.garbage.is_empty()
            || [
                &housekeeping.terminating,
                &housekeeping.quotas,
                &housekeeping.accounts,
                &housekeeping.claims,
            ]
            .iter()
            .any(|set| !set.is_empty());
        if busy {
            return Some(Timestamp::default());
        }
        housekeeping.expiries.front().map(|(expiry, ..)| *expiry)
    }

    fn create_default_account(&mut self, now: Timestamp, namespace: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let body = r#"{"metadata":{"name":"default"}}"#;
        let mut request = Request::new(Method::POST, &path).with_body("application/json", body);
        request.user_agent = "picokube".to_owned();
        // It may be there already, or the namespace may be on its way out.
        let _ = self.handle(now, &request);
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
