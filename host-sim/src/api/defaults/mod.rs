//! The values that absent fields stand for, written into objects as upstream does on decode.

mod container;
mod misc;
mod pod;
mod volume;
mod workload;

pub(super) use misc::{
    base64, horizontal_pod_autoscaler, horizontal_pod_autoscaler_v1, namespace,
    persistent_volume_claim, secret, service,
};
pub(super) use pod::pod;
pub(super) use workload::{
    daemon_set, deployment, job, labels_from_template, replica_set, replication_controller,
    stateful_set,
};

/// For kinds without defaults.
pub(super) fn none(_: &mut serde_json::Value) {}

#[cfg(test)]
mod tests;
