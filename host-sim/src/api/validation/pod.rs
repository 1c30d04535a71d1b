//! Rules on pods and pod templates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::container::{self, Role};
use super::numbers::one_of;
use super::{metadata, template as templates, volume};
use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::{at, flag, int, list, text};

pub(in crate::api) fn pod(pod: &Value, errors: &mut FieldErrors) {
    pod_annotations(at(pod, &["metadata"]), &Path::new("metadata"), errors);
    spec(at(pod, &["spec"]), &Path::new("spec"), errors);
}

/// The metadata and spec of a template.
pub(super) fn template(template: &Value, here: &Path, errors: &mut FieldErrors) {
    template_metadata(template, here, errors);
    spec(at(template, &["spec"]), &here.child("spec"), errors);
}

/// The metadata of a template.
pub(super) fn template_metadata(template: &Value, here: &Path, errors: &mut FieldErrors) {
    let (meta, meta_at) = (at(template, &["metadata"]), here.child("metadata"));
    metadata::labels(meta, "labels", &meta_at, errors);
    metadata::annotations(meta, &meta_at, errors);
    pod_annotations(meta, &meta_at, errors);
}

pub(super) fn pod_annotations(meta: &Value, here: &Path, errors: &mut FieldErrors) {
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    if let Some(cost) = at(meta, &["annotations", COST]).as_str() {
        // Go's ParseInt takes a sign, but upstream wants the shortest spelling.
        let canonical = cost.parse::<i32>().is_ok_and(|n| n.to_string() == cost);
        if !canonical {
            let at = here.child("annotations").key(COST);
            errors.invalid(&at, cost, "must be a 32bit integer");
        }
    }
}

/// The spec of a pod or template.
pub(super) fn spec(spec: &Value, here: &Path, errors: &mut FieldErrors) {
    let volumes = volume::volumes(spec, &here.child("volumes"), errors);
    containers(spec, &volumes, here, errors);
    one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], here, errors);
    if text(spec, "restartPolicy").is_empty() {
        errors.required(&here.child("restartPolicy"), "");
    }
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    match text(spec, "dnsPolicy") {
        "" => errors.required(&here.child("dnsPolicy"), ""),
        _ => one_of(spec, "dnsPolicy", &dns, here, errors),
    }
    if let Some(grace) = int(spec, "terminationGracePeriodSeconds").filter(|g| *g < 0) {
        let at = here.child("terminationGracePeriodSeconds");
        errors.invalid(&at, grace, "must be greater than or equal to 0");
    }
    if let Some(deadline) = int(spec, "activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        let at = here.child("activeDeadlineSeconds");
        errors.invalid(&at, deadline, "must be between 1 and 2147483647, inclusive");
    }
    metadata::labels(spec, "nodeSelector", here, errors);
    for (field, rule) in [
        ("serviceAccountName", names::dns_subdomain as fn(&str) -> Vec<String>),
        ("nodeName", names::dns_subdomain),
        ("hostname", names::dns_label),
        ("subdomain", names::dns_label),
        ("priorityClassName", names::dns_subdomain),
    ] {
        let value = text(spec, field);
        if !value.is_empty() {
            errors.invalid_all(&here.child(field), value, &rule(value));
        }
    }
    if text(spec, "schedulerName").is_empty() && spec.is_object() {
        errors.required(&here.child("schedulerName"), "");
    }
    for (i, toleration) in list(spec, "tolerations").iter().enumerate() {
        self::toleration(toleration, &here.child("tolerations").index(i), errors);
    }
    spread_constraints(spec, here, errors);
    for (i, reference) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(reference, "name").is_empty() {
            let at = here.child("imagePullSecrets").index(i).child("name");
            errors.required(&at, "");
        }
    }
}

fn containers(spec: &Value, volumes: &BTreeSet<String>, here: &Path, errors: &mut FieldErrors) {
    let host_network = flag(spec, "hostNetwork");
    let all = list(spec, "containers");
    if all.is_empty() {
        errors.required(&here.child("containers"), "");
    }
    let mut seen = BTreeSet::new();
    for (role, field) in [
        (Role::Main, "containers"),
        (Role::Init, "initContainers"),
        (Role::Ephemeral, "ephemeralContainers"),
    ] {
        for (i, item) in list(spec, field).iter().enumerate() {
            let here = here.child(field).index(i);
            container::container(item, role, volumes, host_network, &here, errors);
            let name = text(item, "name");
            if !name.is_empty() && !seen.insert(name.to_owned()) {
                errors.duplicate(&here.child("name"), name);
            }
        }
    }
    host_ports_are_unique(all, here, errors);
}

/// A host port can be given away once.
fn host_ports_are_unique(containers: &[Value], here: &Path, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        for (j, port) in list(container, "ports").iter().enumerate() {
            let Some(number) = int(port, "hostPort").filter(|p| *p > 0) else { continue };
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if !seen.insert(key.clone()) {
                let at = here.child("containers").index(i).child("ports").index(j);
                errors.duplicate(&at.child("hostPort"), key);
            }
        }
    }
}

fn toleration(toleration: &Value, here: &Path, errors: &mut FieldErrors) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let value = text(toleration, "value");
    if !key.is_empty() {
        errors.invalid_all(&here.child("key"), key, &names::qualified_name(key));
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values \
                      and all keys\"";
        errors.invalid(&here.child("operator"), operator, detail);
    }
    let effect = text(toleration, "effect");
    let seconds = int(toleration, "tolerationSeconds");
    if seconds.is_some() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(&here.child("effect"), effect, detail);
    }
    match operator {
        "" | "Equal" => {
            errors.invalid_all(&here.child("operator"), value, &names::label_value(value));
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.invalid(&here.child("operator"), value, detail);
        }
        "Exists" => {}
        other => errors.not_supported(&here.child("operator"), other, &["Equal", "Exists"]),
    }
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !effect.is_empty() && !effects.contains(&effect) {
        errors.not_supported(&here.child("effect"), effect, &effects);
    }
}

fn spread_constraints(spec: &Value, here: &Path, errors: &mut FieldErrors) {
    for (i, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let here = here.child("topologySpreadConstraints").index(i);
        if let Some(skew) = int(constraint, "maxSkew").filter(|s| *s <= 0) {
            errors.invalid(&here.child("maxSkew"), skew, "must be greater than zero");
        }
        if text(constraint, "topologyKey").is_empty() {
            errors.required(&here.child("topologyKey"), "can not be empty");
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        let action = text(constraint, "whenUnsatisfiable");
        if !actions.contains(&action) {
            errors.not_supported(&here.child("whenUnsatisfiable"), action, &actions);
        }
        let selector = at(constraint, &["labelSelector"]);
        templates::label_selector(selector, &here.child("labelSelector"), errors);
    }
    if let Some(affinity) = spec.get("affinity") {
        pod_affinity(affinity, &here.child("affinity"), errors);
    }
}

/// Pod (anti-)affinity terms need a topology key; their selectors are checked.
fn pod_affinity(affinity: &Value, here: &Path, errors: &mut FieldErrors) {
    const HARD: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const SOFT: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    for side in ["podAffinity", "podAntiAffinity"] {
        let (terms, here) = (at(affinity, &[side]), here.child(side));
        for (i, term) in list(terms, HARD).iter().enumerate() {
            affinity_term(term, &here.child(HARD).index(i), errors);
        }
        for (i, weighted) in list(terms, SOFT).iter().enumerate() {
            let here = here.child(SOFT).index(i);
            let weight = int(weighted, "weight").unwrap_or(0);
            if !(1..=100).contains(&weight) {
                errors.invalid(&here.child("weight"), weight, "must be in the range 1-100");
            }
            let term = at(weighted, &["podAffinityTerm"]);
            affinity_term(term, &here.child("podAffinityTerm"), errors);
        }
    }
    let hard = at(affinity, &["nodeAffinity", HARD]);
    if hard.is_object() && list(hard, "nodeSelectorTerms").is_empty() {
        let at = here.child("nodeAffinity").child(HARD).child("nodeSelectorTerms");
        errors.required(&at, "must have at least one node selector term");
    }
}

fn affinity_term(term: &Value, here: &Path, errors: &mut FieldErrors) {
    let selector = at(term, &["labelSelector"]);
    templates::label_selector(selector, &here.child("labelSelector"), errors);
    if text(term, "topologyKey").is_empty() {
        errors.required(&here.child("topologyKey"), "can not be empty");
    }
}
