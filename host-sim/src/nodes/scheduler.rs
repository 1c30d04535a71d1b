//! The scheduler: spreads pods over the nodes that can take them, once their claims are bound.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::server::Server;
use crate::store::{Entry, ResourceId, Store, object_key};
use crate::time::Timestamp;

use super::Nodes;
use super::client::Client;
use super::node::{CAPACITY, Node};
use super::status::set_condition;

impl Nodes {
    /// Puts a pod on the node with the fewest pods among those that can take it.
    pub(super) fn schedule(&mut self, now: Timestamp, server: &mut Server, entry: &Arc<Entry>) {
        let pod = entry.parse();
        let spec = &pod["spec"];
        let ours = matches!(spec["schedulerName"].as_str(), None | Some("" | "default-scheduler"));
        let gated = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
        if entry.deletion.is_some() || !ours || gated {
            return;
        }
        let claims = claims_are_bound(server.store(), self.ids.claims, entry.namespace(), &pod);
        let chosen = claims.and_then(|()| self.choose(&pod));
        let mut client = Client { server, now, agent: "default-scheduler" };
        let name = match chosen {
            Ok(name) => name,
            Err(why) => return self.report_unschedulable(&mut client, entry, &pod, &why),
        };
        let path = format!("/api/v1/namespaces/{}/pods/{}", entry.namespace(), entry.name());
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": entry.name(), "namespace": entry.namespace(), "uid": &*entry.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": name},
        });
        if client.post(&format!("{path}/binding"), &binding) {
            self.unschedulable.remove(&entry.key);
            let assigned =
                format!("Successfully assigned {}/{} to {name}", entry.namespace(), entry.name());
            client.event(&pod, "Normal", "Scheduled", &assigned);
            self.place(&entry.key, &name);
        }
    }

    /// Pods that fitted nowhere may fit now.
    pub(super) fn retry_unschedulable(&mut self, now: Timestamp) {
        let waiting: Vec<Arc<str>> = self.unschedulable.keys().cloned().collect();
        for key in waiting {
            self.plan(&key, now);
        }
    }

    /// Pods that wait for one of these claims may fit now.
    pub(super) fn retry_users(&mut self, now: Timestamp, claims: &BTreeSet<Arc<str>>) {
        let uses = |wanted: &[String]| wanted.iter().any(|claim| claims.contains(claim.as_str()));
        let waiting = self.unschedulable.iter().filter(|(_, wanted)| uses(wanted));
        let waiting: Vec<Arc<str>> = waiting.map(|(key, _)| key.clone()).collect();
        for key in waiting {
            self.plan(&key, now);
        }
    }

    /// Counts a pod to a node.
    pub(super) fn place(&mut self, key: &Arc<str>, name: &str) {
        let Some(node) = self.nodes.get_mut(name) else { return };
        if node.pods.insert(key.clone()) {
            let number = node.next_pod_number();
            if let Some(pod) = self.pods.get_mut(key) {
                pod.number = number;
            }
        }
    }

    /// The node for a pod, or why no node takes it.
    fn choose(&self, pod: &Value) -> Result<String, String> {
        let fitting = self.nodes.values().filter(|node| refusal(node, pod).is_none());
        // Ties go to the first by name, so that the same pods land on the same nodes.
        if let Some(node) = fitting.min_by_key(|node| node.pods.len()) {
            return Ok(node.name.clone());
        }
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for reason in self.nodes.values().filter_map(|node| refusal(node, pod)) {
            match counted.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => counted.push((reason, 1)),
            }
        }
        let parts: Vec<String> =
            counted.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        Err(parts.join(", "))
    }

    fn report_unschedulable(
        &mut self,
        client: &mut Client<'_>,
        entry: &Arc<Entry>,
        pod: &Value,
        why: &str,
    ) {
        let message = format!("0/{} nodes are available: {why}.", self.nodes.len());
        let claims = claims_of(pod).map(|name| object_key(entry.namespace(), name)).collect();
        let first = self.unschedulable.insert(entry.key.clone(), claims).is_none();
        let mut conditions = pod["status"]["conditions"].clone();
        let before = conditions.clone();
        let reason = ("Unschedulable", message.as_str());
        set_condition(&mut conditions, "PodScheduled", "False", Some(reason), client.now);
        if conditions != before {
            let path =
                format!("/api/v1/namespaces/{}/pods/{}/status", entry.namespace(), entry.name());
            client.merge(&path, &json!({"status": {"conditions": conditions}}));
        }
        if first {
            client.event(pod, "Warning", "FailedScheduling", &message);
        }
    }
}

/// The names of the claims that a pod uses.
fn claims_of(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}

/// Whether all claims of a pod can be used; if not, why, which is the same for every node.
fn claims_are_bound(
    store: &Store,
    claims: ResourceId,
    namespace: &str,
    pod: &Value,
) -> Result<(), String> {
    let mut all_bound = true;
    for name in claims_of(pod) {
        let Some(entry) = store.get(claims, &object_key(namespace, name)) else {
            return Err(format!("persistentvolumeclaim \"{name}\" not found"));
        };
        if entry.deletion.is_some() {
            return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
        }
        all_bound &= entry.parse()["status"]["phase"] == "Bound";
    }
    if all_bound {
        Ok(())
    } else {
        Err("pod has unbound immediate PersistentVolumeClaims".to_owned())
    }
}

/// Why a node cannot take a pod; `None` if it can.
fn refusal(node: &Node, pod: &Value) -> Option<&'static str> {
    if !node.schedulable {
        return Some("node(s) were unschedulable");
    }
    let spec = &pod["spec"];
    let selector = spec["nodeSelector"].as_object().into_iter().flatten();
    let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    let mut selected = selector.into_iter().all(|(key, value)| node.labels[key] == *value);
    if let Some(terms) = required.as_array().filter(|terms| !terms.is_empty()) {
        selected &= terms.iter().any(|term| term_matches(node, term));
    }
    if !selected {
        return Some("node(s) didn't match Pod's node affinity/selector");
    }
    if node.taints.iter().any(|taint| !tolerated(taint, &spec["tolerations"])) {
        return Some("node(s) had untolerated taint(s)");
    }
    (node.pods.len() >= CAPACITY).then_some("Too many pods")
}

fn term_matches(node: &Node, term: &Value) -> bool {
    let expressions = term["matchExpressions"].as_array().into_iter().flatten();
    expressions.into_iter().all(|expression| {
        let value = expression["key"].as_str().and_then(|key| node.labels[key].as_str());
        let listed = expression["values"]
            .as_array()
            .is_some_and(|values| values.iter().any(|wanted| wanted.as_str() == value));
        match expression["operator"].as_str() {
            Some("In") => value.is_some() && listed,
            Some("NotIn") => value.is_none() || !listed,
            Some("Exists") => value.is_some(),
            Some("DoesNotExist") => value.is_none(),
            _ => false,
        }
    })
}

/// Whether a taint does not keep a pod away.
pub(super) fn tolerated(taint: &Value, tolerations: &Value) -> bool {
    if taint["effect"] == "PreferNoSchedule" {
        return true;
    }
    toleration_for(taint, tolerations).is_some()
}

/// The toleration that covers a taint.
pub(super) fn toleration_for<'a>(taint: &Value, tolerations: &'a Value) -> Option<&'a Value> {
    tolerations.as_array().into_iter().flatten().find(|toleration| {
        let text = |field: &str| toleration[field].as_str().unwrap_or_default();
        let (key, effect) = (text("key"), text("effect"));
        let same_value = text("operator") == "Exists"
            || text("value") == taint["value"].as_str().unwrap_or_default();
        (key.is_empty() || taint["key"] == key)
            && (effect.is_empty() || taint["effect"] == effect)
            && same_value
    })
}
