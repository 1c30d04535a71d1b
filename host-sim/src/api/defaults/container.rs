//! Defaults of containers: images, ports, probes, environment, resources.

use serde_json::{Value, json};

use crate::api::object::{at, child, default, fields, int, list_mut, set, text};

pub(super) fn defaults(container: &mut Value) {
    default(container, "resources", json!({}));
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    let policy = pull_policy(text(container, "image"));
    default(container, "imagePullPolicy", policy);
    for port in list_mut(container, "ports") {
        default(port, "protocol", "TCP");
    }
    for variable in list_mut(container, "env") {
        if let Some(source) = variable.get_mut("valueFrom") {
            field_reference(source);
            if let Some(reference) = source.get_mut("resourceFieldRef") {
                default(reference, "divisor", "0");
            }
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).filter(|p| p.is_object()) {
            self::probe(probe);
        }
    }
    if let Some(lifecycle) = container.get_mut("lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(hook) = lifecycle.get_mut(name) {
                http_get(hook);
            }
        }
    }
}

/// Absent requests are taken from the limits. In pods only: a template may leave that to its pods.
pub(super) fn requests_from_limits(container: &mut Value) {
    let limits = at(container, &["resources", "limits"]).as_object().cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let requests = fields(child(child(container, "resources"), "requests"));
    for (resource, limit) in limits {
        requests.entry(resource).or_insert(limit);
    }
}

/// On the host's network a container's ports are the host's.
pub(super) fn host_ports(container: &mut Value) {
    for port in list_mut(container, "ports") {
        if int(port, "hostPort").unwrap_or(0) == 0
            && let Some(number) = int(port, "containerPort")
        {
            set(port, "hostPort", json!(number));
        }
    }
}

/// The version of a fieldRef, wherever one stands.
pub(super) fn field_reference(source: &mut Value) {
    if let Some(reference) = source.get_mut("fieldRef").filter(|r| r.is_object()) {
        default(reference, "apiVersion", "v1");
    }
}

fn probe(probe: &mut Value) {
    default(probe, "timeoutSeconds", 1);
    default(probe, "periodSeconds", 10);
    default(probe, "successThreshold", 1);
    default(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = probe.get_mut("grpc").filter(|g| g.is_object()) {
        default(grpc, "service", "");
    }
}

fn http_get(handler: &mut Value) {
    if let Some(action) = handler.get_mut("httpGet").filter(|a| a.is_object()) {
        default(action, "path", "/");
        default(action, "scheme", "HTTP");
    }
}

/// An image that may change under its name is pulled each time.
fn pull_policy(image: &str) -> &'static str {
    let without_digest = image.split('@').next().unwrap_or("");
    let name = without_digest.rsplit('/').next().unwrap_or("");
    let tag = name.split_once(':').map_or("", |(_, tag)| tag);
    let pinned = image.contains('@') || !matches!(tag, "" | "latest");
    if pinned { "IfNotPresent" } else { "Always" }
}
