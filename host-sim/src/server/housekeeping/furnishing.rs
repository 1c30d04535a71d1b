//! What every namespace has: its service account, and what is published about the server.

use serde_json::json;

use crate::store::{Change, ChangeKind, ResourceId, object_key};
use crate::time::Timestamp;

use super::super::published::{ROOT_CA, SERVICE};
use super::super::{Resources, Server};

const DEFAULT_ACCOUNT: &str = "default";

/// Whether a write may have left its namespace without something that every one has.
pub(super) fn unfurnishes(resources: &Resources, id: ResourceId, change: &Change) -> bool {
    let gone = change.kind == ChangeKind::Deleted;
    let name = change.entry.name();
    // A quota that changes may let in what it refused before.
    id == resources.quotas
        || id == resources.config_maps && name == ROOT_CA
        || gone && id == resources.service_accounts && name == DEFAULT_ACCOUNT
        || gone && id == resources.services && name == SERVICE
}

impl Server {
    /// Gives a namespace what it lacks.
    pub(super) fn furnish(&mut self, now: Timestamp, namespace: &str) {
        let stays = self.store.get(self.resources.namespaces, namespace);
        if stays.is_none_or(|entry| entry.deletion.is_some()) {
            return;
        }
        let account = object_key(namespace, DEFAULT_ACCOUNT);
        if self.store.get(self.resources.service_accounts, &account).is_none() {
            let account = json!({"metadata": {"name": DEFAULT_ACCOUNT}});
            self.create_own(now, namespace, "serviceaccounts", &account);
        }
        self.keep_published(now, namespace);
    }

    /// Gives all namespaces what they lack: there is something new that each of them should have.
    pub(in crate::server) fn furnish_all(&mut self, now: Timestamp) {
        let namespaces = self.store.resource(self.resources.namespaces).range("", None);
        let names: Vec<String> = namespaces.map(|entry| entry.name().to_owned()).collect();
        for name in names {
            self.furnish(now, &name);
        }
    }
}
