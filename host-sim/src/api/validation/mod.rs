//! What objects must fulfil, kind by kind, with upstream's words.

mod claim;
mod container;
mod metadata;
mod misc;
mod numbers;
mod pod;
mod pod_update;
mod probe;
mod resources;
mod stateful_set;
mod template;
mod volume;
mod workload;
mod workload_update;

use serde_json::Value;

use super::field::FieldErrors;

pub(super) use claim::{persistent_volume_claim, persistent_volume_claim_update};
pub(super) use metadata::{validate_metadata, validate_metadata_update};
pub(super) use misc::{
    config_map, config_map_update, controller_revision, controller_revision_create,
    controller_revision_update, event, horizontal_pod_autoscaler, job, job_update, lease,
    namespace, resource_quota, secret, secret_update, service, service_update,
};
pub(super) use pod::pod;
pub(super) use pod_update::{pod_status, pod_update};
pub(super) use stateful_set::{stateful_set, stateful_set_create, stateful_set_update};
pub(super) use workload::{daemon_set, deployment, replica_set, replication_controller};
pub(super) use workload_update::{
    daemon_set_update, deployment_status, deployment_update, replica_set_status,
    replica_set_update, stateful_set_status,
};

/// Upstream's words for a field that may not change.
pub(super) const IMMUTABLE: &str = "field is immutable";

/// For kinds without rules of their own.
pub(super) fn nothing(_: &Value, _: &mut FieldErrors) {}

/// For kinds whose updates have no rules of their own.
pub(super) fn nothing_on_update(_: &Value, _: &Value, _: &mut FieldErrors) {}

#[cfg(test)]
mod tests;
