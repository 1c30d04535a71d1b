//! What upstream's built-in admission plug-ins add to objects on their way in.

use serde_json::{Value, json};

use crate::api::kind::Kind;
use crate::api::status::Status;
use crate::store::object_key;

use super::Server;

/// The finalizer that keeps a claim while a pod uses it.
pub(super) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The range from which services get their node ports.
const NODE_PORTS: std::ops::Range<u64> = 30_000..32_768;
const NODE_PORT_COUNT: u64 = NODE_PORTS.end - NODE_PORTS.start;
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
            "Service" => self.allocate_addresses(object),
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

    /// Gives a service its cluster address and node ports, where it wants some.
    fn allocate_addresses(&mut self, service: &mut Value) {
        let services: Vec<Value> = self
            .store
            .resource(self.resources.services)
            .range("", None)
            .map(|s| s.parse())
            .collect();
        let spec = &mut service["spec"];
        let kind = spec["type"].as_str().unwrap_or("ClusterIP").to_owned();
        if kind == "ExternalName" {
            return;
        }
        if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
            let address = loop {
                let number = 2 + self.random.below(0xf_fff0);
                let bytes = (0x0a60_0000 + number as u32).to_be_bytes();
                let address = std::net::Ipv4Addr::from(bytes).to_string();
                if !services.iter().any(|other| other["spec"]["clusterIP"] == address) {
                    break address;
                }
            };
            spec["clusterIPs"] = json!([address]);
            spec["clusterIP"] = json!(address);
        }
        for (field, value) in
            [("ipFamilies", json!(["IPv4"])), ("ipFamilyPolicy", json!("SingleStack"))]
        {
            if spec[field].is_null() {
                spec[field] = value;
            }
        }
        if !matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
            return;
        }
        let taken = |port: u64| {
            let ports = services.iter().flat_map(|s| s["spec"]["ports"].as_array()).flatten();
            ports.into_iter().any(|other| other["nodePort"] == port)
        };
        for port in spec["ports"].as_array_mut().into_iter().flatten() {
            if port["nodePort"].as_u64().unwrap_or(0) == 0 {
                // The range holds far more ports than anybody simulates.
                let mut candidate = NODE_PORTS.start + self.random.below(NODE_PORT_COUNT);
                for _ in 0..NODE_PORT_COUNT {
                    if !taken(candidate) {
                        break;
                    }
                    candidate =
                        NODE_PORTS.start + (candidate + 1 - NODE_PORTS.start) % NODE_PORT_COUNT;
                }
                port["nodePort"] = json!(candidate);
            }
        }
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
