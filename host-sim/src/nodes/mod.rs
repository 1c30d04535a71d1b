//! Simulated nodes: a scheduler, a binder of claims, one kubelet per node, and what watches over them.
//!
//! [`Nodes::poll`] looks at what has changed, does what is due, and says when it wants to be
//! called again. It uses the server like any client would, so everything it does shows up in
//! watches. Given the same server, clock and seed it does the same.
//!
//! How pods behave is described in [`behaviour`] and, for users, in `docs/simulated-nodes.md`.

pub mod behaviour;
mod binder;
mod client;
mod kubelet;
mod lifecycle;
mod node;
mod scheduler;
mod status;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::server::Server;
use crate::store::{ChangeKind, Entry};
use crate::time::Timestamp;

use behaviour::MANUAL;
use binder::Binder;
use client::{Client, Ids};
use kubelet::Pod;
use node::Node;

/// Work done in one call of [`Nodes::poll`] before others get their turn.
const ACTIONS_PER_POLL: usize = 64;

/// All simulated nodes of a cluster.
#[derive(Debug)]
pub struct Nodes {
    ids: Ids,
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<Arc<str>, Pod>,
    /// Pods that have something to do, by when.
    timers: BTreeSet<(Timestamp, Arc<str>)>,
    binder: Binder,
    /// Pods that no node takes at the moment, with the keys of their claims.
    unschedulable: BTreeMap<Arc<str>, Vec<String>>,
    /// Pods have left their nodes: others may fit now.
    has_room_again: bool,
    /// Everything up to this revision has been looked at.
    cursor: u64,
    next_heartbeat: Timestamp,
}

impl Nodes {
    /// `count` nodes, named `node-1` and so on. With none, nothing in the cluster moves by itself.
    pub fn new(server: &Server, count: usize) -> Self {
        let nodes = (1..=count).map(|index| {
            let node = Node::new(index);
            (node.name.clone(), node)
        });
        Self {
            ids: Ids::of(server),
            nodes: nodes.collect(),
            pods: BTreeMap::new(),
            timers: BTreeSet::new(),
            binder: Binder::default(),
            unschedulable: BTreeMap::new(),
            has_room_again: false,
            cursor: 0,
            next_heartbeat: Timestamp::default(),
        }
    }

    /// Does what is due; says whether there may be more to do at once.
    pub fn poll(&mut self, now: Timestamp, server: &mut Server) -> bool {
        if self.nodes.is_empty() {
            return false;
        }
        if now >= self.next_heartbeat {
            self.heartbeat(now, server);
        }
        self.observe(now, server);
        self.bind_claims(now, server);
        let mut actions = 0;
        while let Some((at, key)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            if actions == ACTIONS_PER_POLL {
                return true;
            }
            self.timers.remove(&(at, key.clone()));
            self.act(now, server, &key);
            actions += 1;
        }
        // What was just written has to be looked at too.
        server.store().revision() != self.cursor
    }

    /// The kubelet of a pod looks at it anew, and tells of it as if it had just started.
    pub fn look_again(&mut self, now: Timestamp, key: &str) {
        let Some((key, _)) = self.pods.get_key_value(key) else { return };
        let key = key.clone();
        if let Some(pod) = self.pods.get_mut(&key) {
            pod.recover(now);
        }
        self.plan(&key, now);
    }

    /// When to call [`Nodes::poll`] although nothing has changed; `None` for never.
    pub fn poll_at(&self) -> Option<Timestamp> {
        if self.nodes.is_empty() {
            return None;
        }
        let timer = self.timers.first().map(|(at, _)| *at);
        timer.into_iter().chain(self.binder.next()).chain([self.next_heartbeat]).min()
    }

    /// Takes note of everything that has changed since the last time.
    fn observe(&mut self, now: Timestamp, server: &mut Server) {
        let newest = server.store().revision();
        if newest == self.cursor {
            return;
        }
        let resource = server.store().resource(self.ids.pods);
        let seen: Vec<(Arc<Entry>, bool)> = match resource.changes_after(self.cursor) {
            Ok(changes) if self.cursor > 0 => changes
                .map(|change| (change.entry.clone(), change.kind == ChangeKind::Deleted))
                .collect(),
            // At the start, or after having been away for too long: look at everything.
            _ => {
                let gone: Vec<_> = self.pods.keys().cloned().collect();
                for key in gone.into_iter().filter(|key| resource.get(key).is_none()) {
                    self.forget(&key);
                }
                resource.range("", None).map(|entry| (entry.clone(), false)).collect()
            }
        };
        let nodes_changed = server.store().resource(self.ids.nodes).last_revision() > self.cursor;
        let claims = server.store().resource(self.ids.claims);
        let claims = if claims.last_revision() > self.cursor {
            self.binder.observe(now, claims, self.cursor)
        } else {
            BTreeSet::new()
        };
        self.cursor = newest;
        for (entry, deleted) in seen {
            if deleted {
                self.forget(&entry.key);
            } else {
                self.notice(now, server, &entry);
            }
        }
        if nodes_changed {
            self.look_at_nodes(now, server);
        }
        if std::mem::take(&mut self.has_room_again) {
            self.retry_unschedulable(now);
        }
        if !claims.is_empty() {
            self.retry_users(now, &claims);
        }
    }

    /// A pod has changed: whatever is planned for it is planned anew.
    fn notice(&mut self, now: Timestamp, server: &Server, entry: &Arc<Entry>) {
        if self.is_manual(server, entry.namespace()) {
            self.forget(&entry.key);
            return;
        }
        let known = self.pods.get(&entry.key).filter(|pod| pod.uid == entry.uid);
        if known.is_some_and(|pod| pod.revision >= entry.revision) {
            return;
        }
        if known.is_none() {
            self.forget(&entry.key);
        }
        let object = entry.parse();
        let pod = self.pods.entry(entry.key.clone()).or_insert_with(|| Pod::new(entry, &object));
        if let Some(planned) = pod.planned.take() {
            self.timers.remove(&(planned, entry.key.clone()));
        }
        pod.observe(now, entry, &object);
        if let Some(at) = pod.planned {
            self.timers.insert((at, entry.key.clone()));
        }
        if let Some(node) = pod.node.clone() {
            self.place(&entry.key, &node);
        }
    }

    fn forget(&mut self, key: &Arc<str>) {
        self.unschedulable.remove(key);
        let Some(pod) = self.pods.remove(key) else { return };
        if let Some(planned) = pod.planned {
            self.timers.remove(&(planned, key.clone()));
        }
        if let Some(node) = pod.node.and_then(|name| self.nodes.get_mut(&name)) {
            node.pods.remove(key);
            self.has_room_again = true;
        }
    }

    /// Plans the next look at a pod.
    fn plan(&mut self, key: &Arc<str>, at: Timestamp) {
        let Some(pod) = self.pods.get_mut(key) else { return };
        if let Some(planned) = pod.planned.replace(at) {
            self.timers.remove(&(planned, key.clone()));
        }
        self.timers.insert((at, key.clone()));
    }

    /// Something is due for a pod.
    fn act(&mut self, now: Timestamp, server: &mut Server, key: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(key) else { return };
        pod.planned = None;
        let Some(entry) = server.store().get(self.ids.pods, key).cloned() else { return };
        if pod.node.is_none() {
            self.schedule(now, server, &entry);
            return;
        }
        let node = pod.node.clone().unwrap_or_default();
        let Some(node) = self.nodes.get(&node) else { return };
        // An offline kubelet does nothing; `look_at_nodes` plans anew when it is back.
        if node.offline {
            return;
        }
        let address = node.pod_address(pod.number);
        let host = node.address();
        let mut client = Client { server, now, agent: "kubelet" };
        let next = pod.advance(&mut client, &entry, &host, &address);
        if let Some(at) = next {
            self.plan(key, at);
        }
    }

    fn is_manual(&self, server: &Server, namespace: &str) -> bool {
        let Some(entry) = server.store().get(self.ids.namespaces, namespace) else { return false };
        entry.json.windows(MANUAL.len()).any(|window| window == MANUAL.as_bytes())
            && entry.parse()["metadata"]["annotations"][MANUAL] == "true"
    }
}
