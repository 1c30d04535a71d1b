//! The binder: gives claims their volumes, a moment after they were made.
//!
//! Simulated storage has no limits, so there are no volumes behind it: a claim is bound to a name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::server::Server;
use crate::store::{Entry, Resource};
use crate::time::Timestamp;

use super::Nodes;
use super::behaviour::{BOUND_AFTER, NEVER_BOUND, millis};
use super::client::Client;

const DEFAULT_BIND_MILLIS: i64 = 100;
/// Claims bound in one go, before others get their turn.
const CLAIMS_PER_POLL: usize = 16;

/// The claims that will be bound, by when.
#[derive(Debug, Default)]
pub(super) struct Binder {
    due: BTreeMap<Arc<str>, Timestamp>,
}

impl Binder {
    /// Takes note of what has become of claims since `cursor`, and says of which.
    pub(super) fn observe(
        &mut self,
        now: Timestamp,
        claims: &Resource,
        cursor: u64,
    ) -> BTreeSet<Arc<str>> {
        let changed: BTreeSet<Arc<str>> = match claims.changes_after(cursor) {
            Ok(changes) if cursor > 0 => changes.map(|change| change.entry.key.clone()).collect(),
            // At the start, or after having been away for too long: look at everything.
            _ => {
                let present = claims.range("", None).map(|entry| entry.key.clone());
                present.chain(self.due.keys().cloned()).collect()
            }
        };
        for key in &changed {
            match claims.get(key) {
                Some(entry) => self.notice(now, entry),
                None => drop(self.due.remove(key)),
            }
        }
        changed
    }

    /// When the next claim is bound.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.values().min().copied()
    }

    /// A claim that changes while it waits does not wait longer for that.
    fn notice(&mut self, now: Timestamp, entry: &Entry) {
        let claim = entry.parse();
        if is_due(entry, &claim) {
            let delay = claim["metadata"]["annotations"][BOUND_AFTER].as_str().and_then(millis);
            let at = now.plus_millis(delay.unwrap_or(DEFAULT_BIND_MILLIS));
            self.due.entry(entry.key.clone()).or_insert(at);
        } else {
            self.due.remove(&entry.key);
        }
    }

    fn take_due(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        let due = self.due.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone());
        let due: Vec<Arc<str>> = due.take(CLAIMS_PER_POLL).collect();
        for key in &due {
            self.due.remove(key);
        }
        due
    }
}

impl Nodes {
    /// Binds the claims whose time has come.
    pub(super) fn bind_claims(&mut self, now: Timestamp, server: &mut Server) {
        for key in self.binder.take_due(now) {
            let Some(entry) = server.store().get(self.ids.claims, &key).cloned() else { continue };
            let claim = entry.parse();
            if is_due(&entry, &claim) && !self.is_manual(server, entry.namespace()) {
                bind(&mut Client { server, now, agent: "volume-binder" }, &entry, &claim);
            }
        }
    }
}

/// Whether a claim lacks something that the binder can give: a volume, or a larger one.
fn is_due(entry: &Entry, claim: &Value) -> bool {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let satisfied =
        status["phase"] == "Bound" && status["capacity"] == spec["resources"]["requests"];
    entry.deletion.is_none() && !satisfied && spec["storageClassName"] != NEVER_BOUND
}

fn bind(client: &mut Client<'_>, entry: &Entry, claim: &Value) {
    let (namespace, name) = (entry.namespace(), entry.name());
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}");
    let spec = &claim["spec"];
    if spec["volumeName"].as_str().is_none_or(str::is_empty) {
        let volume = format!("pvc-{}", entry.uid);
        client.merge(&path, &json!({"spec": {"volumeName": volume}}));
    }
    let status = json!({
        "phase": "Bound",
        "accessModes": spec["accessModes"],
        "capacity": spec["resources"]["requests"],
    });
    client.merge(&format!("{path}/status"), &json!({"status": status}));
}
