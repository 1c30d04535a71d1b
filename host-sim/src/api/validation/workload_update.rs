//! What of a workload may change, and what its status may say.

use serde_json::Value;

use super::IMMUTABLE;
use super::numbers::NOT_NEGATIVE;
use crate::api::field::{FieldErrors, Path};
use crate::api::object::{at, int};

const MORE_THAN_READY: &str = "cannot be greater than readyReplicas";

pub(in crate::api) fn deployment_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    selector_is_immutable(new, old, errors);
}

pub(in crate::api) fn replica_set_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    selector_is_immutable(new, old, errors);
}

pub(in crate::api) fn daemon_set_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    selector_is_immutable(new, old, errors);
}

fn selector_is_immutable(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let (new, old) = (at(new, &["spec", "selector"]), at(old, &["spec", "selector"]));
    if new != old {
        errors.invalid(&Path::new("spec").child("selector"), new.clone(), IMMUTABLE);
    }
}

pub(in crate::api) fn deployment_status(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let counts = Counts::of(new, errors);
    counts.check(
        &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"],
        &["updatedReplicas", "readyReplicas", "availableReplicas"],
        errors,
    );
    counts.check_available(MORE_THAN_READY, errors);
    counts.check_optional("unavailableReplicas", errors);
    counts.check_optional("terminatingReplicas", errors);
    collisions_only_grow(new, old, errors);
}

/// The status of a ReplicaSet, and that of a ReplicationController, which has the same counts.
pub(in crate::api) fn replica_set_status(new: &Value, _: &Value, errors: &mut FieldErrors) {
    let counts = Counts::of(new, errors);
    counts.check(
        &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        errors,
    );
    counts.check_available(MORE_THAN_READY, errors);
    counts.check_optional("terminatingReplicas", errors);
}

pub(in crate::api) fn stateful_set_status(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let counts = Counts::of(new, errors);
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    let all =
        ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    counts.check(&all, &parts, errors);
    counts.check_available("cannot be greater than status.readyReplicas", errors);
    collisions_only_grow(new, old, errors);
}

/// The counts in a workload's status.
struct Counts<'a> {
    status: &'a Value,
    here: Path,
}

impl<'a> Counts<'a> {
    fn of(object: &'a Value, errors: &mut FieldErrors) -> Self {
        let counts = Self { status: at(object, &["status"]), here: Path::new("status") };
        counts.check_optional("observedGeneration", errors);
        counts
    }

    fn get(&self, name: &str) -> i64 {
        int(self.status, name).unwrap_or(0)
    }

    fn check_optional(&self, name: &str, errors: &mut FieldErrors) {
        let count = self.get(name);
        if count < 0 {
            errors.invalid(&self.here.child(name), count, NOT_NEGATIVE);
        }
    }

    /// No count is negative, and no part is more than all.
    fn check(&self, all: &[&str], parts: &[&str], errors: &mut FieldErrors) {
        for name in all {
            self.check_optional(name, errors);
        }
        for name in parts {
            if self.get(name) > self.get("replicas") {
                let detail = "cannot be greater than status.replicas";
                errors.invalid(&self.here.child(name), self.get(name), detail);
            }
        }
    }

    /// What is available is ready. Upstream has two ways to say so.
    fn check_available(&self, detail: &str, errors: &mut FieldErrors) {
        let available = self.get("availableReplicas");
        if available > self.get("readyReplicas") {
            errors.invalid(&self.here.child("availableReplicas"), available, detail);
        }
    }
}

fn collisions_only_grow(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let count = |object| int(at(object, &["status"]), "collisionCount");
    let here = Path::new("status").child("collisionCount");
    if let Some(before) = count(old) {
        let after = count(new);
        if after.is_none_or(|after| after < before) {
            errors.invalid(&here, after.unwrap_or(0), "cannot be decremented");
        }
    }
    if let Some(negative) = count(new).filter(|n| *n < 0) {
        errors.invalid(&here, negative, NOT_NEGATIVE);
    }
}
