//! Rows of the kinds that are no workloads.

use serde_json::{Value, json};

use super::pod::or_none;
use super::{age, labels};
use crate::api::object::{at, entries, flag, int, list, name, text};
use crate::time::Timestamp;

pub(in crate::api) fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(age::of_object(object, now))]
}

pub(in crate::api) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = entries(object, "data").count() + entries(object, "binaryData").count();
    vec![json!(name(object)), json!(count), json!(age::of_object(object, now))]
}

pub(in crate::api) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = entries(object, "data").count();
    let kind = text(object, "type");
    vec![json!(name(object)), json!(kind), json!(count), json!(age::of_object(object, now))]
}

pub(in crate::api) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = list(object, "secrets").len();
    vec![json!(name(object)), json!(count), json!(age::of_object(object, now))]
}

pub(in crate::api) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    let phase = text(at(object, &["status"]), "phase");
    vec![json!(name(object)), json!(phase), json!(age::of_object(object, now))]
}

pub(in crate::api) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    let holder = text(at(object, &["spec"]), "holderIdentity");
    vec![json!(name(object)), json!(holder), json!(age::of_object(object, now))]
}

pub(in crate::api) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owners = list(at(object, &["metadata"]), "ownerReferences");
    let controller = owners.iter().find(|o| flag(o, "controller"));
    let shown = controller.map_or("<none>".to_owned(), |owner| {
        let (group, _) = crate::api::kind::split_api_version(text(owner, "apiVersion"));
        let kind = text(owner, "kind").to_lowercase();
        let resource = if group.is_empty() { kind } else { format!("{kind}.{group}") };
        format!("{resource}/{}", text(owner, "name"))
    });
    vec![
        json!(name(object)),
        json!(shown),
        json!(int(object, "revision").unwrap_or(0)),
        json!(age::of_object(object, now)),
    ]
}

pub(in crate::api) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = at(object, &["status"]);
    let info = at(status, &["nodeInfo"]);
    let address = |kind: &str| {
        let all = list(status, "addresses");
        or_none(all.iter().find(|a| text(a, "type") == kind).map_or("", |a| text(a, "address")))
    };
    let unknown = |field: &str| match text(info, field) {
        "" => "<unknown>",
        text => text,
    };
    vec![
        json!(name(object)),
        json!(node_status(object)),
        json!(node_roles(object)),
        json!(age::of_object(object, now)),
        json!(text(info, "kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(unknown("osImage")),
        json!(unknown("kernelVersion")),
        json!(unknown("containerRuntimeVersion")),
    ]
}

fn node_status(object: &Value) -> String {
    let ready = list(at(object, &["status"]), "conditions");
    let mut status = match ready.iter().find(|c| text(c, "type") == "Ready") {
        Some(condition) if text(condition, "status") == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if flag(at(object, &["spec"]), "unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(object: &Value) -> String {
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in entries(at(object, &["metadata"]), "labels") {
        if let Some(role) = key.strip_prefix("node-role.kubernetes.io/") {
            roles.push(role);
        } else if key == "kubernetes.io/role" {
            roles.extend(value.as_str());
        }
    }
    roles.retain(|role| !role.is_empty());
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

pub(in crate::api) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = at(object, &["spec"]);
    let kind = text(spec, "type");
    let cluster_ip = match (kind, text(spec, "clusterIP")) {
        (_, "") => "<none>",
        (_, ip) => ip,
    };
    vec![
        json!(name(object)),
        json!(kind),
        json!(cluster_ip),
        json!(external_address(object, kind)),
        json!(service_ports(spec)),
        json!(age::of_object(object, now)),
        json!(labels(at(spec, &["selector"]))),
    ]
}

fn external_address(object: &Value, kind: &str) -> String {
    let spec = at(object, &["spec"]);
    let mut addresses: Vec<&str> =
        list(spec, "externalIPs").iter().filter_map(Value::as_str).collect();
    match kind {
        "ExternalName" => return text(spec, "externalName").to_owned(),
        "LoadBalancer" => {
            for ingress in list(at(object, &["status", "loadBalancer"]), "ingress") {
                addresses.push(match text(ingress, "ip") {
                    "" => text(ingress, "hostname"),
                    ip => ip,
                });
            }
            if addresses.is_empty() {
                return "<pending>".to_owned();
            }
        }
        _ => {}
    }
    or_none(&addresses.join(",")).to_owned()
}

fn service_ports(spec: &Value) -> String {
    let ports: Vec<String> = list(spec, "ports")
        .iter()
        .map(|port| {
            let number = int(port, "port").unwrap_or(0);
            let protocol = text(port, "protocol");
            match int(port, "nodePort").filter(|p| *p > 0) {
                Some(node_port) => format!("{number}:{node_port}/{protocol}"),
                None => format!("{number}/{protocol}"),
            }
        })
        .collect();
    or_none(&ports.join(",")).to_owned()
}

pub(in crate::api) fn persistent_volume_claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (at(object, &["spec"]), at(object, &["status"]));
    let deleting = !at(object, &["metadata", "deletionTimestamp"]).is_null();
    let volume = text(spec, "volumeName");
    let bound = !volume.is_empty();
    // In upstream's order, not in the claim's.
    const MODES: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = list(status, "accessModes");
    let modes: Vec<&str> =
        MODES.iter().filter(|(mode, _)| given.iter().any(|g| g == mode)).map(|(_, m)| *m).collect();
    let unset = |text: &str| if text.is_empty() { "<unset>".to_owned() } else { text.to_owned() };
    vec![
        json!(name(object)),
        json!(if deleting { "Terminating" } else { text(status, "phase") }),
        json!(volume),
        json!(if bound { text(at(status, &["capacity"]), "storage") } else { "" }),
        json!(if bound { modes.join(",") } else { String::new() }),
        json!(text(spec, "storageClassName")),
        json!(unset(text(spec, "volumeAttributesClassName"))),
        json!(age::of_object(object, now)),
        json!(unset(text(spec, "volumeMode"))),
    ]
}

pub(in crate::api) fn resource_quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = at(object, &["status"]);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in entries(status, "hard") {
        let used = text(at(status, &["used"]), resource);
        let hard = hard.as_str().unwrap_or("");
        let used = if used.is_empty() { "0" } else { used };
        let shown = format!("{resource}: {used}/{hard}");
        if resource.starts_with("limits") { limits.push(shown) } else { requests.push(shown) }
    }
    vec![
        json!(name(object)),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        json!(age::of_object(object, now)),
    ]
}

/// Events in the core/v1 form, in which they are stored.
pub(in crate::api) fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let about = at(object, &["involvedObject"]);
    let first_of = |fields: &[&str]| {
        let found = fields.iter().map(|f| text(object, f)).find(|t| !t.is_empty());
        found.unwrap_or("").to_owned()
    };
    let first = first_of(&["firstTimestamp", "eventTime"]);
    let mut last = first_of(&["lastTimestamp", "eventTime"]);
    let series = at(object, &["series"]);
    let mut count = int(object, "count").unwrap_or(0);
    if series.is_object() {
        last = text(series, "lastObservedTime").to_owned();
        count = int(series, "count").unwrap_or(count);
    }
    if count == 0 {
        count = 1;
    }
    let kind = text(about, "kind").to_lowercase();
    let target = match text(about, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = at(object, &["source"]);
    let component = match text(source, "component") {
        "" => text(object, "reportingComponent"),
        component => component,
    };
    let host = match text(source, "host") {
        "" => text(object, "reportingInstance"),
        host => host,
    };
    let from = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    vec![
        json!(age::since(&last, now)),
        json!(text(object, "type")),
        json!(text(object, "reason")),
        json!(target),
        json!(text(about, "fieldPath")),
        json!(from),
        json!(text(object, "message").trim()),
        json!(age::since(&first, now)),
        json!(count),
        json!(name(object)),
    ]
}

/// Autoscalers in either form.
pub(in crate::api) fn horizontal_pod_autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (at(object, &["spec"]), at(object, &["status"]));
    let target = at(spec, &["scaleTargetRef"]);
    let least = int(spec, "minReplicas").map_or("<unset>".to_owned(), |n| n.to_string());
    vec![
        json!(name(object)),
        json!(format!("{}/{}", text(target, "kind"), text(target, "name"))),
        json!(autoscaler_targets(spec)),
        json!(least),
        json!(int(spec, "maxReplicas").unwrap_or(0)),
        json!(int(status, "currentReplicas").unwrap_or(0)),
        json!(age::of_object(object, now)),
    ]
}

/// Nothing here measures, so what is measured is always unknown.
fn autoscaler_targets(spec: &Value) -> String {
    let mut targets = Vec::new();
    for metric in list(spec, "metrics") {
        let resource = at(metric, &["resource"]);
        let name = text(resource, "name");
        if let Some(percent) = int(at(resource, &["target"]), "averageUtilization") {
            targets.push(format!("{name}: <unknown>/{percent}%"));
        } else {
            let wanted = text(at(resource, &["target"]), "averageValue");
            targets.push(format!("{name}: <unknown>/{wanted}"));
        }
    }
    if let Some(percent) = int(spec, "targetCPUUtilizationPercentage") {
        targets.push(format!("cpu: <unknown>/{percent}%"));
    }
    or_none(&targets.join(", ")).to_owned()
}
