//! What of a pod may change.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::pod;
use crate::api::field::{FieldErrors, Path};
use crate::api::object::{at, child, int, list, list_mut, remove, set, text};

const FORBIDDEN: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(in crate::api) fn pod_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    // Upstream checks these with the pod and again with its update.
    pod::pod_annotations(at(new, &["metadata"]), &Path::new("metadata"), errors);
    let (new, old, here) = (at(new, &["spec"]), at(old, &["spec"]), Path::new("spec"));
    for field in ["containers", "initContainers"] {
        let here = here.child(field);
        let (after, before) = (list(new, field), list(old, field));
        if after.len() != before.len() {
            errors.forbidden(&here, "pod updates may not add or remove containers");
            return;
        }
        for (i, container) in after.iter().enumerate() {
            if text(container, "image").is_empty() {
                errors.required(&here.index(i).child("image"), "");
            }
        }
    }
    active_deadline(new, old, &here.child("activeDeadlineSeconds"), errors);
    let kept: HashSet<&Value> = list(new, "tolerations").iter().collect();
    if !list(old, "tolerations").iter().all(|toleration| kept.contains(toleration)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        if !only_seconds_differ(new, old) {
            errors.forbidden(&here.child("tolerations"), detail);
            return;
        }
    }
    let gates: HashSet<&Value> = list(old, "schedulingGates").iter().collect();
    for gate in list(new, "schedulingGates") {
        if !gates.contains(gate) {
            let detail = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                text(gate, "name")
            );
            errors.forbidden(&here.child("schedulingGates").key(text(gate, "name")), &detail);
        }
    }
    let gated = !list(old, "schedulingGates").is_empty();
    if changeable_masked(new, old, gated) != *old {
        errors.forbidden(&here, FORBIDDEN);
    }
}

pub(in crate::api) fn pod_status(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let here = Path::new("status");
    let (node, before) = (at(new, &["spec", "nodeName"]), at(old, &["spec", "nodeName"]));
    if node != before {
        let at = here.child("nodeName");
        errors.forbidden(&at, "may not be changed directly");
    }
    let nominated = text(at(new, &["status"]), "nominatedNodeName");
    if !nominated.is_empty() {
        let problems = crate::api::names::dns_subdomain(nominated);
        errors.invalid_all(&here.child("nominatedNodeName"), nominated, &problems);
    }
    let class = |pod| text(at(pod, &["status"]), "qosClass");
    if !class(old).is_empty() && class(new) != class(old) {
        errors.invalid(&here.child("qosClass"), class(new), super::IMMUTABLE);
    }
}

fn active_deadline(new: &Value, old: &Value, here: &Path, errors: &mut FieldErrors) {
    let deadline = |spec| int(spec, "activeDeadlineSeconds");
    match (deadline(new), deadline(old)) {
        (Some(after), Some(before)) if after > before => {
            let detail = "must be less than or equal to previous value";
            errors.invalid(here, after, detail);
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.invalid(here, Value::Null, detail);
        }
        _ => {}
    }
}

/// Whether each old toleration is still there but for its tolerationSeconds.
fn only_seconds_differ(new: &Value, old: &Value) -> bool {
    let bare = |toleration: &Value| {
        let mut bare = toleration.clone();
        remove(&mut bare, "tolerationSeconds");
        bare
    };
    let after: HashSet<Value> = list(new, "tolerations").iter().map(bare).collect();
    list(old, "tolerations").iter().all(|t| after.contains(&bare(t)))
}

/// The new spec with everything that may change set back: what still differs may not.
fn changeable_masked(new: &Value, old: &Value, gated: bool) -> Value {
    let mut masked = new.clone();
    for field in ["containers", "initContainers"] {
        let images: Vec<Value> =
            list(old, field).iter().map(|c| at(c, &["image"]).clone()).collect();
        for (container, image) in list_mut(&mut masked, field).iter_mut().zip(images) {
            set(container, "image", image);
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        set(&mut masked, field, at(old, &[field]).clone());
    }
    let grace = |spec| int(spec, "terminationGracePeriodSeconds");
    if grace(old).is_some_and(|g| g < 0) && grace(new) == Some(1) {
        set(&mut masked, "terminationGracePeriodSeconds", json!(grace(old)));
    }
    if gated {
        // A pod that waits for its gates may still be steered to certain nodes.
        set(&mut masked, "nodeSelector", at(old, &["nodeSelector"]).clone());
        let affinity = at(old, &["affinity", "nodeAffinity"]).clone();
        if masked.get("affinity").is_some() || !affinity.is_null() {
            set(child(&mut masked, "affinity"), "nodeAffinity", affinity);
        }
        if at(&masked, &["affinity"]).as_object().is_some_and(|a| a.is_empty())
            && at(old, &["affinity"]).is_null()
        {
            remove(&mut masked, "affinity");
        }
    }
    masked
}
