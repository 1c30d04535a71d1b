//! What watches over the nodes: heartbeats, and what follows when they stop.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::server::Server;
use crate::store::Entry;
use crate::time::Timestamp;

use super::Nodes;
use super::behaviour::OFFLINE;
use super::client::Client;
use super::node::{HEARTBEAT_SECONDS, Judged, condition};
use super::scheduler::toleration_for;
use super::status::set_condition;

/// How often leases are looked at.
const CHECK_SECONDS: i64 = 5;
/// A node whose lease is older than this is not there.
const GRACE_SECONDS: i64 = 50;
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

impl Nodes {
    /// Every few seconds: kubelets renew their leases, and silent nodes are noticed.
    pub(super) fn heartbeat(&mut self, now: Timestamp, server: &mut Server) {
        self.next_heartbeat = now.plus_seconds(CHECK_SECONDS);
        let mut registered = false;
        for node in self.nodes.values_mut() {
            let mut client = Client { server, now, agent: "kubelet" };
            if !node.registered {
                let known = client.store().get(self.ids.nodes, &node.name).is_some();
                if known {
                    node.registered = true;
                } else {
                    node.register(&mut client);
                }
                registered = true;
            }
            let lease = format!("kube-node-lease/{}", node.name);
            let renewed = renewal(client.store().get(self.ids.leases, &lease));
            let due = renewed.is_none_or(|at| now.millis_since(at) >= HEARTBEAT_SECONDS * 1000);
            if !node.offline && due {
                node.renew_lease(&mut client);
            }
        }
        if registered {
            self.look_at_nodes(now, server);
        }
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for name in names {
            self.check(now, server, &name);
        }
    }

    /// Node objects have changed: who can take pods, and who is back.
    pub(super) fn look_at_nodes(&mut self, now: Timestamp, server: &mut Server) {
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for name in names {
            let entry = server.store().get(self.ids.nodes, &name).cloned();
            let Some(node) = self.nodes.get_mut(&name) else { continue };
            let Some(entry) = entry else {
                node.schedulable = false;
                if node.registered {
                    self.abandon_pods(now, server, &name);
                }
                continue;
            };
            let object = entry.parse();
            let was_offline = node.offline;
            node.offline = object["metadata"]["annotations"][OFFLINE] == "true";
            node.labels = object["metadata"]["labels"].clone();
            node.taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
            node.schedulable = object["spec"]["unschedulable"] != true && is_ready(&object);
            let pods: Vec<Arc<str>> = node.pods.iter().cloned().collect();
            if was_offline && !node.offline {
                let node = &*node;
                let mut client = Client { server, now, agent: "kubelet" };
                node.renew_lease(&mut client);
                for key in pods {
                    if let Some(pod) = self.pods.get_mut(&key) {
                        pod.recover(now);
                    }
                    self.plan(&key, now);
                }
                self.check(now, server, &name);
            }
        }
        self.retry_unschedulable(now);
    }

    /// Compares a node's lease with what its Node object says.
    fn check(&mut self, now: Timestamp, server: &mut Server, name: &str) {
        let Some(entry) = server.store().get(self.ids.nodes, name).cloned() else { return };
        let lease = format!("kube-node-lease/{name}");
        let renewed = renewal(server.store().get(self.ids.leases, &lease));
        let silent = renewed.is_none_or(|at| now.millis_since(at) > GRACE_SECONDS * 1000);
        let Some(node) = self.nodes.get_mut(name) else { return };
        if node.judged.revision != entry.revision {
            node.judged = Judged::of(&entry);
        }
        let Judged { ready, evicts, .. } = node.judged;
        match (silent, ready) {
            (true, true) => self.declare_unreachable(now, server, &entry.parse(), name),
            (false, false) => self.declare_reachable(now, server, &entry.parse(), name),
            _ if !evicts => return,
            _ => {}
        }
        self.evict_by_taint(now, server, name);
    }

    fn declare_unreachable(
        &mut self,
        now: Timestamp,
        server: &mut Server,
        object: &Value,
        name: &str,
    ) {
        let mut client = Client { server, now, agent: "node-lifecycle-controller" };
        let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
        let conditions = kinds.map(|kind| condition(kind, "Unknown", "NodeStatusUnknown", now));
        let path = format!("/api/v1/nodes/{name}");
        client.merge(&format!("{path}/status"), &json!({"status": {"conditions": conditions}}));
        let mut taints = without_unreachable(object);
        let added = now.to_rfc3339();
        taints.push(json!({"key": UNREACHABLE, "effect": "NoSchedule", "timeAdded": added}));
        taints.push(json!({"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": added}));
        client.merge(&path, &json!({"spec": {"taints": taints}}));
        for entry in pods_on(client.store(), self.ids.pods, name) {
            let pod = entry.parse();
            let mut conditions = pod["status"]["conditions"].clone();
            let before = conditions.clone();
            set_condition(&mut conditions, "Ready", "False", None, now);
            if conditions != before {
                let status = json!({"status": {"conditions": conditions}});
                client.merge(&format!("{}/status", path_of(&entry)), &status);
                client.event(&pod, "Warning", "NodeNotReady", "Node is not ready");
            }
        }
    }

    fn declare_reachable(
        &mut self,
        now: Timestamp,
        server: &mut Server,
        object: &Value,
        name: &str,
    ) {
        let Some(node) = self.nodes.get(name) else { return };
        let mut client = Client { server, now, agent: "node-lifecycle-controller" };
        node.report_ready(&mut client);
        let taints = without_unreachable(object);
        let taints = if taints.is_empty() { Value::Null } else { Value::Array(taints) };
        client.merge(&format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": taints}}));
    }

    /// Deletes the pods whose patience with their node's taints has ended.
    fn evict_by_taint(&mut self, now: Timestamp, server: &mut Server, name: &str) {
        let Some(entry) = server.store().get(self.ids.nodes, name).cloned() else { return };
        let object = entry.parse();
        let taints: Vec<&Value> = no_execute(&object).collect();
        if taints.is_empty() {
            return;
        }
        for entry in pods_on(server.store(), self.ids.pods, name) {
            if entry.deletion.is_some() {
                continue;
            }
            let pod = entry.parse();
            if !taints.iter().any(|taint| patience_is_over(taint, &pod, now)) {
                continue;
            }
            let mut client = Client { server, now, agent: "taint-eviction-controller" };
            let message = format!("Marking for deletion Pod {}", entry.key);
            client.event(&pod, "Normal", "TaintManagerEviction", &message);
            client.delete(&path_of(&entry), &json!({"preconditions": {"uid": &*entry.uid}}));
        }
    }

    /// Pods of a node that was deleted have nobody who could stop them.
    fn abandon_pods(&mut self, now: Timestamp, server: &mut Server, name: &str) {
        for entry in pods_on(server.store(), self.ids.pods, name) {
            let mut client = Client { server, now, agent: "pod-garbage-collector" };
            let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": &*entry.uid}});
            client.delete(&path_of(&entry), &options);
        }
    }
}

impl Judged {
    fn of(entry: &Entry) -> Self {
        let node = entry.parse();
        let evicts = no_execute(&node).next().is_some();
        Self { revision: entry.revision, ready: is_ready(&node), evicts }
    }
}

fn no_execute(node: &Value) -> impl Iterator<Item = &Value> {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.filter(|taint| taint["effect"] == "NoExecute")
}

fn patience_is_over(taint: &Value, pod: &Value, now: Timestamp) -> bool {
    let Some(toleration) = toleration_for(taint, &pod["spec"]["tolerations"]) else { return true };
    let Some(seconds) = toleration["tolerationSeconds"].as_i64() else { return false };
    let added = taint["timeAdded"].as_str().and_then(Timestamp::parse).unwrap_or(now);
    now >= added.plus_seconds(seconds.max(0))
}

fn pods_on(
    store: &crate::store::Store,
    pods: crate::store::ResourceId,
    node: &str,
) -> Vec<Arc<Entry>> {
    let on_node = |entry: &&Arc<Entry>| entry.fields()["spec"]["nodeName"] == node;
    store.resource(pods).range("", None).filter(on_node).cloned().collect()
}

fn path_of(entry: &Entry) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", entry.namespace(), entry.name())
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn without_unreachable(node: &Value) -> Vec<Value> {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.filter(|taint| taint["key"] != UNREACHABLE).cloned().collect()
}

fn renewal(lease: Option<&Arc<Entry>>) -> Option<Timestamp> {
    lease?.parse()["spec"]["renewTime"].as_str().and_then(Timestamp::parse)
}
