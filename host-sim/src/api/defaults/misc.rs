//! Defaults of the kinds that are no workloads.

use serde_json::{Value, json};

use crate::api::object::{child, default, fields, list, list_mut, name, remove, set, text};

pub(in crate::api) fn namespace(namespace: &mut Value) {
    let own = name(namespace).to_owned();
    if !own.is_empty() {
        let labels = child(child(namespace, "metadata"), "labels");
        set(labels, "kubernetes.io/metadata.name", json!(own));
    }
    default(child(namespace, "status"), "phase", "Active");
}

pub(in crate::api) fn persistent_volume_claim(claim: &mut Value) {
    claim_spec(child(claim, "spec"));
    default(child(claim, "status"), "phase", "Pending");
}

pub(super) fn claim_spec(spec: &mut Value) {
    default(spec, "volumeMode", "Filesystem");
}

/// `stringData` is for writing only: it becomes `data`.
pub(in crate::api) fn secret(secret: &mut Value) {
    default(secret, "type", "Opaque");
    let plain = secret.get("stringData").and_then(Value::as_object).cloned().unwrap_or_default();
    if !plain.is_empty() {
        let data = fields(child(secret, "data"));
        for (key, value) in plain {
            data.insert(key, json!(base64(value.as_str().unwrap_or("").as_bytes())));
        }
    }
    remove(secret, "stringData");
}

pub(in crate::api) fn service(service: &mut Value) {
    let spec = child(service, "spec");
    default(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "ClientIP" {
        let client_ip = child(child(spec, "sessionAffinityConfig"), "clientIP");
        default(client_ip, "timeoutSeconds", 10_800);
    }
    default(spec, "type", "ClusterIP");
    for port in list_mut(spec, "ports") {
        default(port, "protocol", "TCP");
        let target = port.get("targetPort").unwrap_or(&Value::Null);
        if target.is_null() || target == 0 || target == "" {
            let number = port.get("port").cloned().unwrap_or(Value::Null);
            set(port, "targetPort", number);
        }
    }
    let kind = text(spec, "type").to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
    if kind != "ExternalName" {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
}

/// Autoscalers in the v2 form, in which they are stored.
pub(in crate::api) fn horizontal_pod_autoscaler(autoscaler: &mut Value) {
    let spec = child(autoscaler, "spec");
    default(spec, "minReplicas", 1);
    if list(spec, "metrics").is_empty() {
        let cpu = json!([{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}]);
        set(spec, "metrics", cpu);
    }
}

/// Autoscalers in the v1 form; what else they need comes when they are stored as v2.
pub(in crate::api) fn horizontal_pod_autoscaler_v1(autoscaler: &mut Value) {
    default(child(autoscaler, "spec"), "minReplicas", 1);
}

/// Standard base64 with padding.
pub(in crate::api) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            if i <= chunk.len() {
                let letter = (bits >> (18 - 6 * i)) as usize & 63;
                text.push(char::from(LETTERS[letter]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
