//! Rules on probes and lifecycle hooks.

use serde_json::Value;

use super::container::Role;
use super::numbers::{not_negative, one_of};
use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::{at, int, text};

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

pub(super) fn probes(container: &Value, role: Role, here: &Path, errors: &mut FieldErrors) {
    let sidecar = role == Role::Init && text(container, "restartPolicy") == "Always";
    for name in PROBES {
        let (probe, here) = (at(container, &[name]), here.child(name));
        if probe.is_null() {
            continue;
        }
        match role {
            Role::Init if !sidecar => {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.forbidden(&here, detail);
                continue;
            }
            Role::Ephemeral => {
                errors.forbidden(&here, "cannot be set for an Ephemeral Container");
                continue;
            }
            _ => {}
        }
        self::probe(probe, &here, errors);
        let threshold = int(probe, "successThreshold").unwrap_or(1);
        if name != "readinessProbe" && threshold != 1 {
            errors.invalid(&here.child("successThreshold"), threshold, "must be 1");
        }
    }
    let lifecycle = at(container, &["lifecycle"]);
    for name in ["postStart", "preStop"] {
        let hook = at(lifecycle, &[name]);
        if !hook.is_null() {
            handler(hook, &here.child("lifecycle").child(name), errors);
        }
    }
}

fn probe(probe: &Value, here: &Path, errors: &mut FieldErrors) {
    handler(probe, here, errors);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        not_negative(probe, field, here, errors);
    }
    if let Some(grace) = int(probe, "terminationGracePeriodSeconds").filter(|g| *g <= 0) {
        let at = here.child("terminationGracePeriodSeconds");
        errors.invalid(&at, grace, "must be greater than 0");
    }
}

fn handler(handler: &Value, here: &Path, errors: &mut FieldErrors) {
    let given: Vec<&str> = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"]
        .into_iter()
        .filter(|name| handler.get(name).is_some_and(Value::is_object))
        .collect();
    if given.is_empty() {
        errors.required(here, "must specify a handler type");
    }
    for extra in given.iter().skip(1) {
        errors.forbidden(&here.child(extra), "may not specify more than 1 handler type");
    }
    if let Some(exec) = handler.get("exec").filter(|e| e.is_object())
        && exec.get("command").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        errors.required(&here.child("exec").child("command"), "");
    }
    if let Some(http) = handler.get("httpGet").filter(|h| h.is_object()) {
        let here = here.child("httpGet");
        if text(http, "path").is_empty() {
            errors.required(&here.child("path"), "");
        }
        port(at(http, &["port"]), &here.child("port"), errors);
        one_of(http, "scheme", &["HTTP", "HTTPS"], &here, errors);
    }
    if let Some(tcp) = handler.get("tcpSocket").filter(|t| t.is_object()) {
        port(at(tcp, &["port"]), &here.child("tcpSocket").child("port"), errors);
    }
    if let Some(grpc) = handler.get("grpc").filter(|g| g.is_object()) {
        port(at(grpc, &["port"]), &here.child("grpc").child("port"), errors);
    }
}

/// A port by number or by name.
pub(super) fn port(value: &Value, here: &Path, errors: &mut FieldErrors) {
    match value {
        Value::String(name) => errors.invalid_all(here, name, &names::port_name(name)),
        other => {
            let number = other.as_i64().unwrap_or(0);
            for problem in names::port_number(number) {
                errors.invalid(here, number, &problem);
            }
        }
    }
}
