//! Rules on the kinds that are no workloads of long-running pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::numbers::{NOT_NEGATIVE, not_negative, one_of, positive};
use super::{IMMUTABLE, metadata, pod, probe, resources};
use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::{at, entries, flag, int, list, text};
use crate::api::selector::LabelSelector;

/// The most bytes a config map or secret can hold.
const DATA_LIMIT: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

pub(in crate::api) fn config_map(object: &Value, errors: &mut FieldErrors) {
    for field in ["data", "binaryData"] {
        data_keys(object, field, errors);
    }
    for (key, _) in entries(object, "binaryData") {
        if object.get("data").is_some_and(|data| data.get(key).is_some()) {
            let detail = "duplicate of key present in data";
            errors.invalid(&Path::new("binaryData").key(key), key, detail);
        }
    }
    data_size(object, &["data", "binaryData"], errors);
}

pub(in crate::api) fn config_map_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    frozen_data(new, old, &["data", "binaryData"], errors);
}

pub(in crate::api) fn secret(object: &Value, errors: &mut FieldErrors) {
    data_keys(object, "data", errors);
    data_size(object, &["data"], errors);
    let required: &[&str] = match text(object, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    };
    for key in required {
        if at(object, &["data", key]).is_null() {
            errors.required(&Path::new("data").key(key), "");
        }
    }
}

pub(in crate::api) fn secret_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    if text(new, "type") != text(old, "type") {
        errors.invalid(&Path::new("type"), text(new, "type"), IMMUTABLE);
    }
    frozen_data(new, old, &["data"], errors);
}

fn data_keys(object: &Value, field: &str, errors: &mut FieldErrors) {
    for (key, _) in entries(object, field) {
        errors.invalid_all(&Path::new(field).key(key), key, &names::config_key(key));
    }
}

fn data_size(object: &Value, fields: &[&str], errors: &mut FieldErrors) {
    let length = |(_, value): (&str, &Value)| value.as_str().map_or(0, str::len);
    let size: usize = fields.iter().flat_map(|f| entries(object, f)).map(length).sum();
    if size > DATA_LIMIT {
        errors.too_long(&Path::new(fields.first().copied().unwrap_or("")), DATA_LIMIT);
    }
}

fn frozen_data(new: &Value, old: &Value, fields: &[&str], errors: &mut FieldErrors) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        errors.forbidden(&Path::new("immutable"), FROZEN);
    }
    for field in fields {
        if at(new, &[field]) != at(old, &[field]) {
            errors.forbidden(&Path::new(*field), FROZEN);
        }
    }
}

pub(in crate::api) fn controller_revision(object: &Value, errors: &mut FieldErrors) {
    not_negative(object, "revision", &Path::default(), errors);
}

pub(in crate::api) fn controller_revision_create(object: &Value, errors: &mut FieldErrors) {
    match at(object, &["data"]) {
        Value::Object(_) => {}
        Value::Null => errors.required(&Path::new("data"), "data is mandatory"),
        _ => errors.required(&Path::new("data"), "data must be a valid JSON object"),
    }
}

pub(in crate::api) fn controller_revision_update(
    new: &Value,
    old: &Value,
    errors: &mut FieldErrors,
) {
    if at(new, &["data"]) != at(old, &["data"]) {
        errors.invalid(&Path::new("data"), at(new, &["data"]).clone(), IMMUTABLE);
    }
}

/// Events of objects without a namespace live in `default`.
pub(in crate::api) fn event(object: &Value, errors: &mut FieldErrors) {
    let namespace = text(at(object, &["metadata"]), "namespace");
    let about = text(at(object, &["involvedObject"]), "namespace");
    let here = Path::new("involvedObject").child("namespace");
    if about.is_empty() {
        if !matches!(namespace, "" | "default" | "kube-system") {
            errors.invalid(&here, about, "does not match event.namespace");
        }
    } else if about != namespace {
        errors.invalid(&here, about, "does not match event.namespace");
    }
}

pub(in crate::api) fn horizontal_pod_autoscaler(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    if let Some(least) = int(spec, "minReplicas").filter(|n| *n < 1) {
        let detail = "must be greater than or equal to 1";
        errors.invalid(&here.child("minReplicas"), least, detail);
    }
    let most = int(spec, "maxReplicas").unwrap_or(0);
    if most < 1 {
        errors.invalid(&here.child("maxReplicas"), most, "must be greater than 0");
    }
    if int(spec, "minReplicas").is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.invalid(&here.child("maxReplicas"), most, detail);
    }
    for field in ["kind", "name"] {
        if text(at(spec, &["scaleTargetRef"]), field).is_empty() {
            errors.required(&here.child("scaleTargetRef").child(field), "");
        }
    }
}

pub(in crate::api) fn job(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ] {
        not_negative(spec, field, &here, errors);
    }
    let (template, template_at) = (at(spec, &["template"]), here.child("template"));
    if let Ok(selector) = LabelSelector::of_object(at(spec, &["selector"])) {
        let labels = at(template, &["metadata", "labels"]);
        if !selector.requirements().is_empty() && !selector.matches(labels) {
            let at = template_at.child("metadata").child("labels");
            errors.invalid(&at, labels.clone(), "`selector` does not match template `labels`");
        }
    }
    pod::template(template, &template_at, errors);
    let policy = text(at(template, &["spec"]), "restartPolicy");
    let policy_at = template_at.child("spec").child("restartPolicy");
    match policy {
        "" | "Always" => {
            errors.required(&policy_at, "valid values: \"OnFailure\", \"Never\"");
        }
        "OnFailure" | "Never" => {}
        other => errors.not_supported(&policy_at, other, &["OnFailure", "Never"]),
    }
    one_of(spec, "completionMode", &["NonIndexed", "Indexed"], &here, errors);
}

pub(in crate::api) fn job_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    for field in ["completions", "selector", "template", "completionMode"] {
        let (after, before) = (at(new, &["spec", field]), at(old, &["spec", field]));
        if after != before {
            errors.invalid(&Path::new("spec").child(field), after.clone(), IMMUTABLE);
        }
    }
}

pub(in crate::api) fn lease(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    positive(spec, "leaseDurationSeconds", &here, errors);
    not_negative(spec, "leaseTransitions", &here, errors);
}

pub(in crate::api) fn namespace(object: &Value, errors: &mut FieldErrors) {
    let here = Path::new("spec").child("finalizers");
    let finalizers = list(at(object, &["spec"]), "finalizers");
    for name in finalizers.iter().filter_map(Value::as_str) {
        errors.invalid_all(&here, name, &names::qualified_name(name));
    }
}

pub(in crate::api) fn resource_quota(object: &Value, errors: &mut FieldErrors) {
    for part in ["spec", "status"] {
        let (value, here) = (at(object, &[part]), Path::new(part));
        for field in ["hard", "used"] {
            resources::resource_list(value, field, &here, errors);
        }
    }
}

pub(in crate::api) fn service(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    let kind = text(spec, "type");
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of(spec, "type", &kinds, &here, errors);
    let headless = text(spec, "clusterIP") == "None";
    if list(spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        errors.required(&here.child("ports"), "");
    }
    if kind == "ExternalName" && text(spec, "externalName").is_empty() {
        errors.required(&here.child("externalName"), "");
    }
    if kind == "LoadBalancer" && headless {
        let detail = "may not be set to 'None' for LoadBalancer services";
        errors.invalid(&here.child("clusterIPs").index(0), "None", detail);
    }
    service_ports(spec, kind, &here.child("ports"), errors);
    metadata::labels(spec, "selector", &here, errors);
    one_of(spec, "sessionAffinity", &["ClientIP", "None"], &here, errors);
}

fn service_ports(spec: &Value, kind: &str, here: &Path, errors: &mut FieldErrors) {
    let ports = list(spec, "ports");
    let (mut names_seen, mut pairs_seen) = (BTreeSet::new(), BTreeSet::new());
    for (i, port) in ports.iter().enumerate() {
        let here = here.index(i);
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            errors.required(&here.child("name"), "");
        } else if !name.is_empty() {
            errors.invalid_all(&here.child("name"), name, &names::dns_label(name));
            if !names_seen.insert(name) {
                errors.duplicate(&here.child("name"), name);
            }
        }
        let number = int(port, "port").unwrap_or(0);
        for problem in names::port_number(number) {
            errors.invalid(&here.child("port"), number, &problem);
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        match text(port, "protocol") {
            "" => errors.required(&here.child("protocol"), ""),
            _ => one_of(port, "protocol", &protocols, &here, errors),
        }
        probe::port(at(port, &["targetPort"]), &here.child("targetPort"), errors);
        if !pairs_seen.insert((number, text(port, "protocol"))) {
            errors.duplicate(&here, port.clone());
        }
        let Some(node_port) = int(port, "nodePort").filter(|p| *p != 0) else { continue };
        if kind == "ClusterIP" {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.forbidden(&here.child("nodePort"), detail);
        } else if node_port < 0 {
            errors.invalid(&here.child("nodePort"), node_port, NOT_NEGATIVE);
        } else if !NODE_PORTS.contains(&node_port) {
            let detail = "provided port is not in the valid range. The range of valid ports is \
                          30000-32767";
            errors.invalid(&here.child("nodePort"), node_port, detail);
        }
    }
}

/// The address of a service stays, unless it stops or starts being an ExternalName.
pub(in crate::api) fn service_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let (new, old) = (at(new, &["spec"]), at(old, &["spec"]));
    let external = |spec| text(spec, "type") == "ExternalName";
    let (after, before) = (text(new, "clusterIP"), text(old, "clusterIP"));
    if !external(new) && !external(old) && !before.is_empty() && after != before {
        let at = Path::new("spec").child("clusterIPs").index(0);
        errors.invalid(&at, vec![after], "may not change once set");
    }
}
