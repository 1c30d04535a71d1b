//! Defaults of Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet and Job.

use serde_json::{Value, json};

use super::misc::claim_spec;
use super::pod::template;
use crate::api::object::{at, child, default, entries, int, list_mut, set, text};

pub(in crate::api) fn deployment(deployment: &mut Value) {
    let spec = child(deployment, "spec");
    template(spec);
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
    let strategy = child(spec, "strategy");
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", "25%");
        default(rolling, "maxSurge", "25%");
    }
}

pub(in crate::api) fn replica_set(replica_set: &mut Value) {
    let spec = child(replica_set, "spec");
    template(spec);
    default(spec, "replicas", 1);
}

pub(in crate::api) fn replication_controller(controller: &mut Value) {
    labels_from_template(controller);
    let spec = child(controller, "spec");
    if let Some(labels) = template_labels(spec) {
        default_labels(spec, "selector", labels);
    }
    default(spec, "replicas", 1);
    // Unlike that of a ReplicaSet the template can be absent, and then stays so.
    if spec.get("template").is_some_and(Value::is_object) {
        template(spec);
    }
}

pub(in crate::api) fn stateful_set(stateful_set: &mut Value) {
    let spec = child(stateful_set, "spec");
    template(spec);
    default(spec, "replicas", 1);
    default(spec, "podManagementPolicy", "OrderedReady");
    default(spec, "revisionHistoryLimit", 10);
    let strategy = child(spec, "updateStrategy");
    // With an explicit type, an absent rollingUpdate stays absent.
    if text(strategy, "type").is_empty() {
        default(strategy, "type", "RollingUpdate");
        default(strategy, "rollingUpdate", json!({}));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = strategy.get_mut("rollingUpdate").filter(|r| r.is_object())
    {
        default(rolling, "partition", 0);
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    default(retention, "whenDeleted", "Retain");
    default(retention, "whenScaled", "Retain");
    for claim in list_mut(spec, "volumeClaimTemplates") {
        default(claim, "apiVersion", "v1");
        default(claim, "kind", "PersistentVolumeClaim");
        claim_spec(child(claim, "spec"));
        default(child(claim, "status"), "phase", "Pending");
    }
}

pub(in crate::api) fn daemon_set(daemon_set: &mut Value) {
    let spec = child(daemon_set, "spec");
    template(spec);
    default(spec, "revisionHistoryLimit", 10);
    let strategy = child(spec, "updateStrategy");
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", 1);
        default(rolling, "maxSurge", 0);
    }
}

pub(in crate::api) fn job(job: &mut Value) {
    labels_from_template(job);
    let spec = child(job, "spec");
    template(spec);
    if int(spec, "completions").is_none() && int(spec, "parallelism").is_none() {
        default(spec, "completions", 1);
    }
    default(spec, "parallelism", 1);
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    if spec.get("backoffLimitPerIndex").is_some_and(Value::is_number) {
        default(spec, "backoffLimit", i32::MAX);
    } else {
        default(spec, "backoffLimit", 6);
    }
    let policy = if spec.get("podFailurePolicy").is_some_and(Value::is_object) {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    default(spec, "podReplacementPolicy", policy);
}

/// A Job or ReplicationController without labels takes those of its template.
pub(in crate::api) fn labels_from_template(object: &mut Value) {
    if let Some(labels) = template_labels(at(object, &["spec"])) {
        default_labels(child(object, "metadata"), "labels", labels);
    }
}

/// The labels of a template, if it has some.
fn template_labels(spec: &Value) -> Option<Value> {
    let labels = at(spec, &["template", "metadata", "labels"]);
    labels.as_object().is_some_and(|labels| !labels.is_empty()).then(|| labels.clone())
}

/// Sets a map of labels that is absent or empty.
fn default_labels(value: &mut Value, name: &str, labels: Value) {
    if entries(value, name).next().is_none() {
        set(value, name, labels);
    }
}
