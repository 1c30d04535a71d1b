//! What the server itself sets in objects of certain kinds when they are created or changed.

use serde_json::{Value, json};

use super::defaults::labels_from_template;
use super::object::{at, child, default, flag, int, list, name, set, text};
use super::qos;

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn nothing_on_create(_: &mut Value) {}

pub(super) fn nothing_on_update(_: &mut Value, _: &Value) {}

pub(super) fn pod_create(pod: &mut Value) {
    let class = qos::class(at(pod, &["spec"]));
    set(pod, "status", json!({"phase": "Pending", "qosClass": class}));
}

pub(super) fn namespace_create(namespace: &mut Value) {
    set(namespace, "status", json!({"phase": "Active"}));
    let spec = child(namespace, "spec");
    if list(spec, "finalizers").is_empty() {
        set(spec, "finalizers", json!(["kubernetes"]));
    }
}

/// The finalizers of a namespace go through `/finalize` only.
pub(super) fn namespace_update(new: &mut Value, old: &Value) {
    set(new, "spec", at(old, &["spec"]).clone());
}

pub(super) fn claim_create(claim: &mut Value) {
    set(claim, "status", json!({"phase": "Pending"}));
}

/// A job without a selector of its own selects by its uid.
pub(super) fn job_create(job: &mut Value) {
    if flag(at(job, &["spec"]), "manualSelector") {
        return;
    }
    let uid = json!(text(at(job, &["metadata"]), "uid"));
    let own = json!(name(job));
    let spec = child(job, "spec");
    let labels = child(child(child(spec, "template"), "metadata"), "labels");
    set(labels, "batch.kubernetes.io/controller-uid", uid.clone());
    set(labels, "batch.kubernetes.io/job-name", own.clone());
    set(labels, "controller-uid", uid.clone());
    set(labels, "job-name", own);
    if at(spec, &["selector"]).is_null() {
        let labels = json!({"batch.kubernetes.io/controller-uid": uid});
        set(spec, "selector", json!({"matchLabels": labels}));
    }
    // Upstream fills in defaults whenever it reads an object, so a job that was given no labels
    // is seen with those that its template has just got.
    labels_from_template(job);
}

pub(super) fn daemon_set_create(daemon_set: &mut Value) {
    set_template_generation(daemon_set, 1);
}

pub(super) fn daemon_set_update(new: &mut Value, old: &Value) {
    let before = at(old, &["metadata", "annotations", TEMPLATE_GENERATION]);
    let before: i64 = before.as_str().and_then(|n| n.parse().ok()).unwrap_or(0);
    let changed = at(new, &["spec", "template"]) != at(old, &["spec", "template"]);
    set_template_generation(new, before + i64::from(changed));
}

fn set_template_generation(daemon_set: &mut Value, generation: i64) {
    let annotations = child(child(daemon_set, "metadata"), "annotations");
    set(annotations, TEMPLATE_GENERATION, json!(generation.to_string()));
}

/// A pod's grace period cannot be negative for good.
pub(super) fn pod_update(new: &mut Value, _: &Value) {
    let spec = child(new, "spec");
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|g| g < 0) {
        set(spec, "terminationGracePeriodSeconds", json!(1));
    }
}

/// An update that does not name the service's addresses keeps them.
pub(super) fn service_update(new: &mut Value, old: &Value) {
    let (old, new) = (at(old, &["spec"]), child(new, "spec"));
    if text(new, "type") == "ExternalName" || text(old, "type") == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !at(old, &[field]).is_null() {
            default(new, field, at(old, &[field]).clone());
        }
    }
}
