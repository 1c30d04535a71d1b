//! The fields each kind can be selected by, besides `metadata.name` and `metadata.namespace`.

use super::selector::{FieldLabel, FieldSource};

const fn text(label: &'static str, path: &'static [&'static str]) -> FieldLabel {
    FieldLabel { label, source: FieldSource::Text(path) }
}

pub(super) const POD: &[FieldLabel] = &[
    text("spec.nodeName", &["spec", "nodeName"]),
    text("spec.restartPolicy", &["spec", "restartPolicy"]),
    text("spec.schedulerName", &["spec", "schedulerName"]),
    text("spec.serviceAccountName", &["spec", "serviceAccountName"]),
    FieldLabel { label: "spec.hostNetwork", source: FieldSource::Flag(&["spec", "hostNetwork"]) },
    text("status.phase", &["status", "phase"]),
    text("status.podIP", &["status", "podIP"]),
    text("status.nominatedNodeName", &["status", "nominatedNodeName"]),
];

pub(super) const CORE_EVENT: &[FieldLabel] = &[
    text("involvedObject.kind", &["involvedObject", "kind"]),
    text("involvedObject.namespace", &["involvedObject", "namespace"]),
    text("involvedObject.name", &["involvedObject", "name"]),
    text("involvedObject.uid", &["involvedObject", "uid"]),
    text("involvedObject.apiVersion", &["involvedObject", "apiVersion"]),
    text("involvedObject.resourceVersion", &["involvedObject", "resourceVersion"]),
    text("involvedObject.fieldPath", &["involvedObject", "fieldPath"]),
    text("reason", &["reason"]),
    text("reportingComponent", &["reportingComponent"]),
    FieldLabel {
        label: "source",
        source: FieldSource::Either(&["source", "component"], &["reportingComponent"]),
    },
    text("type", &["type"]),
];

/// The same fields under the names of events.k8s.io; the paths are those of the stored form.
pub(super) const EVENT: &[FieldLabel] = &[
    text("regarding.kind", &["involvedObject", "kind"]),
    text("regarding.namespace", &["involvedObject", "namespace"]),
    text("regarding.name", &["involvedObject", "name"]),
    text("regarding.uid", &["involvedObject", "uid"]),
    text("regarding.apiVersion", &["involvedObject", "apiVersion"]),
    text("regarding.resourceVersion", &["involvedObject", "resourceVersion"]),
    text("regarding.fieldPath", &["involvedObject", "fieldPath"]),
    text("reason", &["reason"]),
    text("reportingController", &["reportingComponent"]),
    text("type", &["type"]),
];

pub(super) const NAMESPACE: &[FieldLabel] =
    &[text("status.phase", &["status", "phase"]), text("name", &["metadata", "name"])];

pub(super) const NODE: &[FieldLabel] = &[FieldLabel {
    label: "spec.unschedulable",
    source: FieldSource::Flag(&["spec", "unschedulable"]),
}];

pub(super) const SECRET: &[FieldLabel] = &[text("type", &["type"])];

pub(super) const SERVICE: &[FieldLabel] =
    &[text("spec.clusterIP", &["spec", "clusterIP"]), text("spec.type", &["spec", "type"])];

/// Of ReplicaSets, and of ReplicationControllers.
pub(super) const REPLICA_SET: &[FieldLabel] = &[FieldLabel {
    label: "status.replicas",
    source: FieldSource::Number(&["status", "replicas"]),
}];

pub(super) const JOB: &[FieldLabel] = &[FieldLabel {
    label: "status.successful",
    source: FieldSource::Number(&["status", "succeeded"]),
}];
