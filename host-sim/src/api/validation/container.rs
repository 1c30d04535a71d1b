//! Rules on containers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::numbers::one_of;
use super::{probe, resources};
use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::{at, int, list, text};

/// What a container is in its pod.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Main,
    Init,
    Ephemeral,
}

pub(super) fn container(
    container: &Value,
    role: Role,
    volumes: &BTreeSet<String>,
    host_network: bool,
    here: &Path,
    errors: &mut FieldErrors,
) {
    let name_at = here.child("name");
    match text(container, "name") {
        "" => errors.required(&name_at, ""),
        name => errors.invalid_all(&name_at, name, &names::dns_label(name)),
    }
    let image = text(container, "image");
    if image.is_empty() {
        errors.required(&here.child("image"), "");
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.invalid(&here.child("image"), image, detail);
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    match text(container, "imagePullPolicy") {
        "" => errors.required(&here.child("imagePullPolicy"), ""),
        _ => one_of(container, "imagePullPolicy", &policies, here, errors),
    }
    let policies = ["FallbackToLogsOnError", "File"];
    one_of(container, "terminationMessagePolicy", &policies, here, errors);
    ports(container, host_network, &here.child("ports"), errors);
    env(container, &here.child("env"), errors);
    mounts(container, volumes, &here.child("volumeMounts"), errors);
    resources::requirements(at(container, &["resources"]), &here.child("resources"), errors);
    probe::probes(container, role, here, errors);
}

fn ports(container: &Value, host_network: bool, here: &Path, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (i, port) in list(container, "ports").iter().enumerate() {
        let here = here.index(i);
        let name = text(port, "name");
        if !name.is_empty() {
            let problems = names::port_name(name);
            errors.invalid_all(&here.child("name"), name, &problems);
            if problems.is_empty() && !seen.insert(name) {
                errors.duplicate(&here.child("name"), name);
            }
        }
        let number = int(port, "containerPort").unwrap_or(0);
        let number_at = here.child("containerPort");
        if number == 0 {
            errors.required(&number_at, "");
        } else {
            numbers(&number_at, number, errors);
        }
        if let Some(host) = int(port, "hostPort").filter(|p| *p != 0) {
            numbers(&here.child("hostPort"), host, errors);
            if host_network && host != number {
                let detail = "must match `hostPort` when `hostNetwork` is true";
                errors.invalid(&number_at, number, detail);
            }
        }
        match text(port, "protocol") {
            "" => errors.required(&here.child("protocol"), ""),
            _ => one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &here, errors),
        }
    }
}

fn numbers(at: &Path, port: i64, errors: &mut FieldErrors) {
    for problem in names::port_number(port) {
        errors.invalid(at, port, &problem);
    }
}

fn env(container: &Value, here: &Path, errors: &mut FieldErrors) {
    for (i, variable) in list(container, "env").iter().enumerate() {
        let here = here.index(i);
        match text(variable, "name") {
            "" => errors.required(&here.child("name"), ""),
            name => errors.invalid_all(&here.child("name"), name, &names::env_var_name(name)),
        }
        let source = at(variable, &["valueFrom"]);
        if source.is_null() {
            continue;
        }
        let here = here.child("valueFrom");
        let sources = source.as_object().map_or(0, serde_json::Map::len);
        if sources == 0 {
            let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                          `secretKeyRef` or `fileKeyRef`";
            errors.invalid(&here, "", detail);
        } else if !text(variable, "value").is_empty() {
            let detail = "may not be specified when `value` is not empty";
            errors.invalid(&here, "", detail);
        } else if sources > 1 {
            errors.invalid(&here, "", "may not have more than one field specified at a time");
        }
        for reference in ["configMapKeyRef", "secretKeyRef"] {
            let (value, here) = (at(source, &[reference]), here.child(reference));
            if !value.is_object() {
                continue;
            }
            if text(value, "name").is_empty() {
                errors.required(&here.child("name"), "");
            }
            match text(value, "key") {
                "" => errors.required(&here.child("key"), ""),
                key => errors.invalid_all(&here.child("key"), key, &names::config_key(key)),
            }
        }
        if source.get("fieldRef").is_some_and(Value::is_object)
            && text(at(source, &["fieldRef"]), "fieldPath").is_empty()
        {
            errors.required(&here.child("fieldRef").child("fieldPath"), "");
        }
    }
}

fn mounts(container: &Value, volumes: &BTreeSet<String>, here: &Path, errors: &mut FieldErrors) {
    let mut paths = BTreeSet::new();
    for (i, mount) in list(container, "volumeMounts").iter().enumerate() {
        let here = here.index(i);
        let name = text(mount, "name");
        if name.is_empty() {
            errors.required(&here.child("name"), "");
        }
        if !volumes.contains(name) {
            errors.not_found(&here.child("name"), name);
        }
        let path = text(mount, "mountPath");
        if path.is_empty() {
            errors.required(&here.child("mountPath"), "");
        }
        if !paths.insert(path) {
            errors.invalid(&here.child("mountPath"), path, "must be unique");
        }
        let sub_path = text(mount, "subPath");
        if sub_path.starts_with('/') {
            errors.invalid(&here.child("subPath"), sub_path, "must be a relative path");
        }
        if sub_path.split('/').any(|part| part == "..") {
            errors.invalid(&here.child("subPath"), sub_path, "must not contain '..'");
        }
    }
}
