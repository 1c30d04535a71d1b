//! Defaults of pods and of the pod templates of workloads.

use serde_json::{Value, json};

use super::{container, volume};
use crate::api::object::{child, default, flag, list_mut, set, text};

/// Defaults of a pod: those of its spec, and those that templates do not get.
pub(in crate::api) fn pod(pod: &mut Value) {
    let spec = child(pod, "spec");
    spec_defaults(spec);
    for list in ["containers", "initContainers"] {
        for item in list_mut(spec, list) {
            container::requests_from_limits(item);
        }
    }
    default(spec, "enableServiceLinks", true);
    if flag(spec, "hostNetwork") {
        for list in ["containers", "initContainers"] {
            list_mut(spec, list).iter_mut().for_each(container::host_ports);
        }
    }
    default(child(pod, "status"), "phase", "Pending");
}

/// Defaults of a pod template, in the field `template` of a workload's spec.
pub(super) fn template(spec: &mut Value) {
    spec_defaults(child(child(spec, "template"), "spec"));
}

fn spec_defaults(spec: &mut Value) {
    default(spec, "restartPolicy", "Always");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "securityContext", json!({}));
    default(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    list_mut(spec, "volumes").iter_mut().for_each(volume::defaults);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        list_mut(spec, list).iter_mut().for_each(container::defaults);
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are written.
fn service_account(spec: &mut Value) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if !name.is_empty() {
        let name = json!(name);
        set(spec, "serviceAccount", name.clone());
        set(spec, "serviceAccountName", name);
    }
}
