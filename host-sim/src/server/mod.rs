//! The API server: Kubernetes' semantics as a synchronous state machine.
//!
//! [`Server::handle`] takes a request and the time and gives the answer. No sockets, threads,
//! clocks or entropy are involved, so the same code serves HTTP clients and the deterministic
//! simulation. Reads go through `&self` and may run side by side; [`Server::step`] does one piece
//! of the work that a cluster does by itself: garbage collection, emptying of namespaces, expiry
//! of events, quota usage.
//!
//! Read [`request`] and [`call`] for the way in, then `create`, `update`, `patch` and `delete`.

mod admission;
pub mod call;
mod continue_token;
mod create;
mod delete;
mod endpoints;
mod filter;
mod housekeeping;
mod list;
mod media;
mod namespaces;
pub mod options;
mod patch;
mod pods;
mod published;
mod quota;
mod read;
mod render;
pub mod request;
pub mod response;
mod reviews;
mod rules;
mod scale;
mod update;
pub mod url;
pub mod watch;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use serde_json::Value;

use crate::api::kind::{self, Kind};
use crate::api::status::Status;
use crate::random::Random;
use crate::store::{Change, Entry, HistoryLimits, ResourceId, Store};
use crate::time::Timestamp;

use call::Call;
use housekeeping::Housekeeping;
pub use published::Published;
use request::Request;
use response::Response;

/// An API server with its store.
#[derive(Debug)]
pub struct Server {
    store: Store,
    random: Random,
    housekeeping: Housekeeping,
    resources: Resources,
    managed_fields: bool,
    /// What is told about this server; nothing where nobody can reach it.
    published: Option<Published>,
}

/// The namespaces that every cluster has.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl Server {
    /// A server with an empty cluster.
    pub fn new(seed: u64, limits: HistoryLimits) -> Self {
        let resources = Resources::new();
        Self {
            store: Store::new(resources.by_storage.len(), limits),
            random: Random::from_seed(seed),
            housekeeping: Housekeeping::default(),
            resources,
            managed_fields: true,
            published: None,
        }
    }

    /// Does not record who set which field, except for server-side apply. Simulations that do not
    /// look at it save a good part of the work of a write.
    pub fn without_managed_fields(mut self) -> Self {
        self.managed_fields = false;
        self
    }

    /// Makes what every cluster has: its system namespaces.
    pub fn bootstrap(&mut self, now: Timestamp) {
        for name in SYSTEM_NAMESPACES {
            if self.store.get(self.resources.namespaces, name).is_none() {
                let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
                let request = Request::new(Method::POST, "/api/v1/namespaces")
                    .with_body("application/json", body);
                self.handle(now, &request);
            }
        }
    }

    /// Answers a request.
    pub fn handle(&mut self, now: Timestamp, request: &Request) -> Response {
        match Call::prepare(request) {
            Ok(call) => self.execute(now, call),
            Err(status) => status.into(),
        }
    }

    /// Answers a request that was parsed before, perhaps outside of a lock.
    pub fn execute(&mut self, now: Timestamp, call: Call) -> Response {
        if call.is_read() {
            return self.read(now, call);
        }
        let mut response = match self.write(now, call) {
            Ok(response) => response,
            Err(status) => status.into(),
        };
        response.revision = self.store.revision();
        response
    }

    /// Answers a request that changes nothing.
    pub fn read(&self, now: Timestamp, call: Call) -> Response {
        let mut response = match self.answer_read(now, call) {
            Ok(response) => response,
            Err(status) => status.into(),
        };
        response.revision = self.store.revision();
        response
    }

    /// The store, for watches and for whoever keeps it on disk.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The store, for whoever keeps it on disk.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The served kinds that are stored, in the order of their [`ResourceId`]s.
    pub fn stored_kinds(&self) -> &[&'static Kind] {
        &self.resources.by_storage
    }

    /// Looks at every object again, after the store was filled from disk.
    pub fn resume(&mut self, now: Timestamp) {
        let ids = (0..self.resources.by_storage.len()).map(|id| ResourceId(id as u16));
        for id in ids {
            let entries: Vec<_> = self.store.resource(id).range("", None).cloned().collect();
            for entry in entries {
                let kind = crate::store::ChangeKind::Added;
                let change = Change { kind, entry, previous: None };
                self.housekeeping.observe(&self.resources, &self.store, now, id, &change);
            }
        }
    }

    fn write(&mut self, now: Timestamp, call: Call) -> Result<Response, Status> {
        let target = call.target()?;
        match (target.subresource.as_str(), call.verb) {
            ("", "create") => self.create(now, call),
            ("" | "status", "update") => self.update(now, call),
            ("" | "status", "patch") => self.patch(now, call),
            ("", "delete") => self.delete(now, &call),
            ("", "deletecollection") => self.delete_collection(now, &call),
            ("scale", _) => self.write_scale(now, call),
            ("binding", "create") => self.bind(now, call),
            ("eviction", "create") => self.evict(now, call),
            ("finalize", "update") => self.finalize_namespace(now, call),
            _ => Err(Status::method_not_allowed()),
        }
    }

    /// Writes an object and lets the rest of the cluster know.
    fn commit(
        &mut self,
        now: Timestamp,
        id: ResourceId,
        key: &str,
        object: &mut Value,
    ) -> Arc<Entry> {
        let change = self.store.put(id, key, object);
        self.housekeeping.observe(&self.resources, &self.store, now, id, &change);
        change.entry
    }

    /// Removes an object in its final state and lets the rest of the cluster know.
    fn commit_removal(
        &mut self,
        now: Timestamp,
        id: ResourceId,
        key: &str,
        object: &mut Value,
    ) -> Option<Arc<Entry>> {
        let change = self.store.remove(id, key, object)?;
        self.housekeeping.observe(&self.resources, &self.store, now, id, &change);
        Some(change.entry)
    }
}

/// Where the kinds are stored, and the resources that the server itself works with.
#[derive(Debug)]
struct Resources {
    by_storage: Vec<&'static Kind>,
    ids: BTreeMap<(&'static str, &'static str, &'static str), ResourceId>,
    namespaces: ResourceId,
    pods: ResourceId,
    events: ResourceId,
    quotas: ResourceId,
    claims: ResourceId,
    config_maps: ResourceId,
    service_accounts: ResourceId,
    services: ResourceId,
}

impl Resources {
    fn new() -> Self {
        let by_storage: Vec<_> = kind::stored().collect();
        let ids: BTreeMap<_, _> = by_storage
            .iter()
            .enumerate()
            .map(|(id, kind)| ((kind.group, kind.version, kind.plural), ResourceId(id as u16)))
            .collect();
        // The table of kinds is part of this program; a test checks that these are in it.
        let core = |plural| ids.get(&("", "v1", plural)).copied().unwrap_or(ResourceId(0));
        Self {
            namespaces: core("namespaces"),
            pods: core("pods"),
            events: core("events"),
            quotas: core("resourcequotas"),
            claims: core("persistentvolumeclaims"),
            config_maps: core("configmaps"),
            service_accounts: core("serviceaccounts"),
            services: core("services"),
            by_storage,
            ids,
        }
    }

    /// Where the objects of a kind are stored.
    fn id_of(&self, kind: &'static Kind) -> Option<ResourceId> {
        let stored = kind.stored_as()?;
        self.ids.get(&(stored.group, stored.version, stored.plural)).copied()
    }

    /// The kind in whose form a resource is stored.
    fn kind_of(&self, id: ResourceId) -> &'static Kind {
        self.by_storage[usize::from(id.0)]
    }
}
