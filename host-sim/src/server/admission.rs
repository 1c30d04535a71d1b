//! What upstream's built-in admission plug-ins add to objects on their way in.

use serde_json::{Value, json};

use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::store::object_key;

use super::Server;

/// The finalizer that keeps a claim while a pod uses it.
pub(super) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

impl Server {
    /// Completes a new object, or refuses it.
    pub(super) fn admit_create(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        object: &mut Value,
    ) -> Result<(), Status> {
        match kind.kind {
            "Namespace" => {
                let name = object["metadata"]["name"].clone();
                object["metadata"]["labels"][NAME_LABEL] = name;
            }
            "Pod" => self.admit_pod(kind, namespace, object)?,
            "PersistentVolumeClaim" => {
                let finalizers = &mut object["metadata"]["finalizers"];
                match finalizers.as_array_mut() {
                    Some(list) if list.iter().any(|name| name == CLAIM_PROTECTION) => {}
                    Some(list) => list.push(json!(CLAIM_PROTECTION)),
                    None => *finalizers = json!([CLAIM_PROTECTION]),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts back what an update may not take away.
    pub(super) fn admit_update(&self, kind: &'static Kind, new: &mut Value, _old: &Value) {
        if kind.kind == "Namespace" {
            let name = new["metadata"]["name"].clone();
            new["metadata"]["labels"][NAME_LABEL] = name;
        }
    }

    /// Tolerations for a while without a node, priority, and the service account.
    fn admit_pod(
        &self,
        kind: &'static Kind,
        namespace: &str,
        pod: &mut Value,
    ) -> Result<(), Status> {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            tolerate(&mut pod["spec"]["tolerations"], key);
        }
        let spec = &mut pod["spec"];
        if spec["priority"].is_null() && spec["priorityClassName"].is_null() {
            spec["priority"] = json!(0);
            spec["preemptionPolicy"] = json!("PreemptLowerPriority");
        }
        let account = spec["serviceAccountName"]
            .as_str()
            .or_else(|| spec["serviceAccount"].as_str())
            .filter(|account| !account.is_empty())
            .unwrap_or("default")
            .to_owned();
        let accounts = self.resources.service_accounts;
        // `default` is made a moment after its namespace; nobody has to wait for that.
        let known = account == "default"
            || self.store.get(accounts, &object_key(namespace, &account)).is_some();
        if !known {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let why = format!(
                "error looking up service account {namespace}/{account}: \
                 serviceaccount \"{account}\" not found"
            );
            return Err(Status::forbidden(kind, name, &why));
        }
        let spec = &mut pod["spec"];
        spec["serviceAccountName"] = json!(account);
        spec["serviceAccount"] = json!(account);
        Ok(())
    }
}

fn tolerate(tolerations: &mut Value, key: &str) {
    let tolerated = |toleration: &Value| {
        let keyless = toleration["key"].as_str().unwrap_or_default().is_empty();
        let effect = toleration["effect"].as_str().unwrap_or_default();
        (keyless || toleration["key"] == key) && matches!(effect, "" | "NoExecute")
    };
    let toleration = json!({
        "key": key,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    });
    match tolerations.as_array_mut() {
        Some(list) if list.iter().any(tolerated) => {}
        Some(list) => list.push(toleration),
        None => *tolerations = json!([toleration]),
    }
}
