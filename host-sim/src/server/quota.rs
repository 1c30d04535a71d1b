//! ResourceQuota: how many objects of a kind a namespace may have.
//!
//! Usage is counted from the store at the moment of the decision, so two creations can never
//! both take the last place. Limits on CPU and memory are stored but not enforced: simulated
//! nodes have plenty of both.

use serde_json::{Map, Value};

use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::store::{Entry, ResourceId};
use crate::time::Timestamp;

use super::{Server, rules};

impl Server {
    /// Refuses an object that would exceed a quota of its namespace.
    pub(super) fn admit_quota(
        &self,
        kind: &'static Kind,
        id: ResourceId,
        namespace: &str,
        name: &str,
    ) -> Result<(), Status> {
        if namespace.is_empty() {
            return Ok(());
        }
        let prefix = format!("{namespace}/");
        for quota in self.store.resource(self.resources.quotas).range(&prefix, None) {
            let object = quota.parse();
            let Some(hard) = object["spec"]["hard"].as_object() else { continue };
            let mut exceeded = Vec::new();
            for (resource, limit) in hard {
                if !counts(resource, kind) {
                    continue;
                }
                let used = self.count(id, &prefix);
                let limit = limit_of(limit);
                if used + 1 > limit {
                    exceeded.push((resource, used, limit));
                }
            }
            if !exceeded.is_empty() {
                let join = |value: fn(&(&String, i64, i64)) -> i64| {
                    let parts = exceeded.iter().map(|item| format!("{}={}", item.0, value(item)));
                    parts.collect::<Vec<_>>().join(",")
                };
                let why = format!(
                    "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                    quota.name(),
                    join(|_| 1),
                    join(|item| item.1),
                    join(|item| item.2)
                );
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
        for quota in quotas {
            let object = quota.parse();
            let Some(hard) = object["spec"]["hard"].as_object().cloned() else { continue };
            let mut used = Map::new();
            for resource in hard.keys() {
                let counted = self.resources.by_storage.iter().position(|k| counts(resource, k));
                if let Some(index) = counted {
                    let count = self.count(ResourceId(index as u16), &prefix);
                    used.insert(resource.clone(), Value::String(count.to_string()));
                }
            }
            let id = self.resources.quotas;
            done |= self
                .amend(now, id, &quota, |object| {
                    object["status"]["hard"] = Value::Object(hard);
                    object["status"]["used"] = Value::Object(used);
                })
                .is_some();
        }
        done
    }

    /// Objects that count: all of a kind, but only those pods that have not ended.
    fn count(&self, id: ResourceId, prefix: &str) -> i64 {
        let entries = self.store.resource(id).range(prefix, None);
        if id != self.resources.pods {
            return entries.count() as i64;
        }
        entries.filter(|pod| !has_ended(pod)).count() as i64
    }
}

fn has_ended(pod: &Entry) -> bool {
    matches!(rules::field(pod, "status.phase"), Some("Failed" | "Succeeded"))
}

/// Whether a line of a quota is about the number of objects of `kind`.
fn counts(resource: &str, kind: &Kind) -> bool {
    let plain = kind.group.is_empty()
        && matches!(
            kind.plural,
            "pods"
                | "services"
                | "configmaps"
                | "secrets"
                | "persistentvolumeclaims"
                | "resourcequotas"
                | "replicationcontrollers"
        );
    plain && resource == kind.plural
        || resource.strip_prefix("count/").is_some_and(|name| name == kind.qualified_resource())
}

fn limit_of(limit: &Value) -> i64 {
    match limit {
        Value::String(text) => rules::quantity(text).unwrap_or(i64::MAX),
        other => other.as_i64().unwrap_or(i64::MAX),
    }
}
