//! Claims stay while a pod on a node uses them.

use serde_json::Value;

use crate::store::Entry;
use crate::time::Timestamp;

use super::super::Server;
use super::super::admission::CLAIM_PROTECTION;

impl Server {
    /// Lets go of the terminating claims of a namespace that no pod uses any more.
    pub(super) fn release_claims(&mut self, now: Timestamp, namespace: &str) {
        let prefix = format!("{namespace}/");
        let waiting = |claim: &&std::sync::Arc<Entry>| {
            claim.deletion.is_some() && claim.has_finalizer(CLAIM_PROTECTION)
        };
        let claims = self.store.resource(self.resources.claims).range(&prefix, None);
        let claims: Vec<_> = claims.filter(waiting).cloned().collect();
        if claims.is_empty() {
            return;
        }
        let pods = self.store.resource(self.resources.pods).range(&prefix, None);
        let pods: Vec<Value> = pods.map(|pod| pod.parse()).collect();
        for claim in claims {
            if pods.iter().any(|pod| uses(pod, claim.name())) {
                continue;
            }
            self.amend(now, self.resources.claims, &claim, |object| {
                let metadata = &mut object["metadata"];
                if let Some(finalizers) = metadata["finalizers"].as_array_mut() {
                    finalizers.retain(|name| name != CLAIM_PROTECTION);
                }
            });
        }
    }
}

/// A pod uses a claim from when it is on a node until it is gone. One that waits for a node does
/// not: it will get none while the claim is on its way out.
fn uses(pod: &Value, claim: &str) -> bool {
    let on_a_node = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    on_a_node && volumes.into_iter().any(|v| v["persistentVolumeClaim"]["claimName"] == claim)
}
