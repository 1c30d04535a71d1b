//! ResourceQuota: how much of each sort of thing a namespace may have.
//!
//! Usage is counted from the store at the moment of the decision, so two creations can never
//! both take the last place.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::api::kind::Kind;
use crate::api::quantity::Quantity;
use crate::api::quota;
use crate::api::status::Status;
use crate::store::{Entry, ResourceId};
use crate::time::Timestamp;

use super::{Server, rules};

impl Server {
    /// Refuses an object that would exceed a quota of its namespace.
    pub(super) fn admit_quota(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<(), Status> {
        let quotas = self.store.resource(self.resources.quotas);
        if namespace.is_empty() || quotas.is_empty() {
            return Ok(());
        }
        let prefix = format!("{namespace}/");
        for entry in quotas.range(&prefix, None) {
            let quota = entry.parse();
            if !quota::covers(&quota, kind, object) {
                continue;
            }
            let used = |resource: &str| self.used(&quota, resource, &prefix);
            if let Some(why) = quota::refusal(&quota, kind, object, used) {
                return Err(Status::forbidden(kind, name, &why));
            }
        }
        Ok(())
    }

    /// Brings the status of a namespace's quotas up to date. Says whether something was done.
    pub(super) fn refresh_quotas(&mut self, now: Timestamp, namespace: &str) -> bool {
        let prefix = format!("{namespace}/");
        let quotas: Vec<_> =
            self.store.resource(self.resources.quotas).range(&prefix, None).cloned().collect();
        let mut done = false;
        for entry in quotas {
            let quota = entry.parse();
            let Some(hard) = quota["spec"]["hard"].as_object().cloned() else { continue };
            let is_known = |resource: &str| {
                self.resources.by_storage.iter().any(|kind| quota::concerns(resource, kind))
            };
            let used: Map<String, Value> = hard
                .keys()
                .filter(|resource| is_known(resource))
                .map(|resource| {
                    let used = self.used(&quota, resource, &prefix);
                    (resource.clone(), Value::String(used.to_string()))
                })
                .collect();
            let id = self.resources.quotas;
            done |= self
                .amend(now, id, &entry, |object| {
                    object["status"]["hard"] = Value::Object(hard);
                    object["status"]["used"] = Value::Object(used);
                })
                .is_some();
        }
        done
    }

    /// How much of a resource is used by the objects that a quota covers.
    fn used(&self, quota: &Value, resource: &str, prefix: &str) -> Quantity {
        let mut kinds = self.resources.by_storage.iter().enumerate();
        let Some((id, kind)) = kinds.find(|(_, kind)| quota::concerns(resource, kind)) else {
            return Quantity::ZERO;
        };
        let entries = self.store.resource(ResourceId(id as u16)).range(prefix, None);
        let all_count = resource.starts_with("count/");
        // Mostly it is about numbers, and those need no look into the objects.
        if (all_count || resource == kind.plural) && quota["spec"]["scopes"].is_null() {
            let counts = |entry: &&Arc<Entry>| all_count || kind.kind != "Pod" || !has_ended(entry);
            let count = entries.filter(counts).count();
            return Quantity::whole(i64::try_from(count).unwrap_or(i64::MAX));
        }
        entries
            .map(|entry| entry.parse())
            .filter(|object| quota::covers(quota, kind, object))
            .filter_map(|object| quota::usage(kind, &object).get(resource).copied())
            .fold(Quantity::ZERO, Quantity::plus)
    }
}

fn has_ended(pod: &Entry) -> bool {
    matches!(rules::field(pod, "status.phase"), Some("Failed" | "Succeeded"))
}
