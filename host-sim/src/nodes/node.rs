//! One simulated node: its Node object, its lease, its addresses.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::time::Timestamp;

use super::client::Client;

/// How often a kubelet renews its lease.
pub(super) const HEARTBEAT_SECONDS: i64 = 10;
/// Pods that fit on a node.
pub(super) const CAPACITY: usize = 110;
const LEASE_SECONDS: i64 = 40;

/// What the simulation knows about a node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    index: usize,
    /// Whether its Node object has been made.
    pub(super) registered: bool,
    /// Whether its user has taken it offline.
    pub(super) offline: bool,
    /// Whether new pods may come: it is there, ready and not cordoned.
    pub(super) schedulable: bool,
    pub(super) labels: Value,
    pub(super) taints: Vec<Value>,
    pub(super) pods: BTreeSet<Arc<str>>,
    next_address: u32,
    pub(super) judged: Judged,
}

/// What those who watch over the nodes have last seen of a Node object.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) revision: u64,
    pub(super) ready: bool,
    /// Some taint drives pods away.
    pub(super) evicts: bool,
}

impl Node {
    pub(super) fn new(index: usize) -> Self {
        Self {
            name: format!("node-{index}"),
            index,
            registered: false,
            offline: false,
            schedulable: false,
            labels: Value::Null,
            taints: Vec::new(),
            pods: BTreeSet::new(),
            next_address: 0,
            judged: Judged::default(),
        }
    }

    /// The node's own address.
    pub(super) fn address(&self) -> String {
        format!("10.0.{}.{}", self.index / 250, self.index % 250 + 1)
    }

    /// The address of the pod with that number on this node.
    pub(super) fn pod_address(&self, number: u32) -> String {
        format!("10.{}.{}.{}", 64 + self.index % 128, number / 250 % 250, number % 250 + 2)
    }

    /// A number for a new pod on this node, from which its address is made.
    pub(super) fn next_pod_number(&mut self) -> u32 {
        self.next_address = self.next_address.wrapping_add(1);
        self.next_address
    }

    /// Makes the Node object, unless it is there.
    pub(super) fn register(&mut self, client: &mut Client<'_>) {
        self.registered = true;
        let labels = json!({
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": format!("zone-{}", (self.index - 1) % 3 + 1),
        });
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"providerID": format!("picokube://{}", self.name)},
        });
        client.post("/api/v1/nodes", &node);
        self.report_ready(client);
    }

    /// Renews the lease by which others see that the node is alive.
    pub(super) fn renew_lease(&self, client: &mut Client<'_>) {
        let collection = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let renewed = client.now.to_rfc3339_micros();
        let renew = json!({"spec": {"renewTime": renewed}});
        if client.merge(&format!("{collection}/{}", self.name), &renew) {
            return;
        }
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": "kube-node-lease"},
            "spec": {
                "holderIdentity": self.name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": renewed,
            },
        });
        client.post(collection, &lease);
    }

    /// Says in the Node's status that all is well.
    pub(super) fn report_ready(&self, client: &mut Client<'_>) {
        let now = client.now;
        let resources = json!({
            "cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi",
            "pods": CAPACITY.to_string(),
        });
        let status = json!({
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", now),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", now),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", now),
                condition("Ready", "True", "KubeletReady", now),
            ],
            "addresses": [
                {"type": "InternalIP", "address": self.address()},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "bootID": "", "machineID": "",
                "systemUUID": "", "kernelVersion": "", "osImage": "simulated",
                "containerRuntimeVersion": "picokube://0", "kubeletVersion": "v1.34.0+picokube",
                "kubeProxyVersion": "v1.34.0+picokube",
            },
        });
        client.merge(&format!("/api/v1/nodes/{}/status", self.name), &json!({"status": status}));
    }
}

/// One condition of a node.
pub(super) fn condition(kind: &str, status: &str, reason: &str, now: Timestamp) -> Value {
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message(reason),
        "lastHeartbeatTime": now.to_rfc3339(),
        "lastTransitionTime": now.to_rfc3339(),
    })
}

fn message(reason: &str) -> &'static str {
    match reason {
        "KubeletReady" => "kubelet is posting ready status",
        "KubeletHasSufficientMemory" => "kubelet has sufficient memory available",
        "KubeletHasNoDiskPressure" => "kubelet has no disk pressure",
        "KubeletHasSufficientPID" => "kubelet has sufficient PID available",
        _ => "Kubelet stopped posting node status.",
    }
}
