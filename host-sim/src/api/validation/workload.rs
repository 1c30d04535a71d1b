//! Rules on Deployment, ReplicaSet, ReplicationController and DaemonSet.

use serde_json::Value;

use super::numbers::{at_most_all, is_zero, not_negative, number_or_percent};
use super::template::{plain_selector, selector_and_template, template_of_plain_selector};
use crate::api::field::{FieldErrors, Path};
use crate::api::object::{at, int, text};

pub(in crate::api) fn deployment(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    not_negative(spec, "replicas", &here, errors);
    selector_and_template(spec, "deployment", errors);
    deployment_strategy(at(spec, &["strategy"]), &here.child("strategy"), errors);
    not_negative(spec, "minReadySeconds", &here, errors);
    not_negative(spec, "revisionHistoryLimit", &here, errors);
    if let Some(deadline) = int(spec, "progressDeadlineSeconds") {
        let at = here.child("progressDeadlineSeconds");
        not_negative(spec, "progressDeadlineSeconds", &here, errors);
        if deadline <= int(spec, "minReadySeconds").unwrap_or(0) {
            errors.invalid(&at, deadline, "must be greater than minReadySeconds");
        }
    }
}

fn deployment_strategy(strategy: &Value, here: &Path, errors: &mut FieldErrors) {
    let rolling = at(strategy, &["rollingUpdate"]);
    let rolling_at = here.child("rollingUpdate");
    match text(strategy, "type") {
        "Recreate" => {
            if !rolling.is_null() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.forbidden(&rolling_at, detail);
            }
        }
        "RollingUpdate" => {
            if rolling.is_null() {
                errors.required(&rolling_at, "this should be defaulted and never be nil");
            } else {
                rolling_update(rolling, &rolling_at, errors);
            }
        }
        other => {
            errors.not_supported(&here.child("type"), other, &["Recreate", "RollingUpdate"]);
        }
    }
}

/// `maxUnavailable` and `maxSurge`, which may not both be zero.
fn rolling_update(rolling: &Value, here: &Path, errors: &mut FieldErrors) {
    let (unavailable, surge) = (at(rolling, &["maxUnavailable"]), at(rolling, &["maxSurge"]));
    let unavailable_at = here.child("maxUnavailable");
    number_or_percent(unavailable, &unavailable_at, errors);
    number_or_percent(surge, &here.child("maxSurge"), errors);
    if is_zero(unavailable) && is_zero(surge) {
        let detail = "may not be 0 when `maxSurge` is 0";
        errors.invalid(&unavailable_at, unavailable.clone(), detail);
    }
    at_most_all(unavailable, &unavailable_at, errors);
}

pub(in crate::api) fn replica_set(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    not_negative(spec, "replicas", &here, errors);
    not_negative(spec, "minReadySeconds", &here, errors);
    selector_and_template(spec, "deployment", errors);
}

pub(in crate::api) fn replication_controller(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    not_negative(spec, "minReadySeconds", &here, errors);
    plain_selector(spec, errors);
    not_negative(spec, "replicas", &here, errors);
    template_of_plain_selector(spec, errors);
}

pub(in crate::api) fn daemon_set(object: &Value, errors: &mut FieldErrors) {
    let (spec, here) = (at(object, &["spec"]), Path::new("spec"));
    selector_and_template(spec, "daemonset", errors);
    not_negative(spec, "minReadySeconds", &here, errors);
    not_negative(spec, "revisionHistoryLimit", &here, errors);
    let strategy = at(spec, &["updateStrategy"]);
    let strategy_at = here.child("updateStrategy");
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => daemon_set_rolling_update(
            at(strategy, &["rollingUpdate"]),
            &strategy_at.child("rollingUpdate"),
            errors,
        ),
        other => {
            let supported = &["RollingUpdate", "OnDelete"];
            errors.not_supported(&strategy_at.child("type"), other, supported);
        }
    }
}

fn daemon_set_rolling_update(rolling: &Value, here: &Path, errors: &mut FieldErrors) {
    if rolling.is_null() {
        errors.required(here, "");
        return;
    }
    let (unavailable, surge) = (at(rolling, &["maxUnavailable"]), at(rolling, &["maxSurge"]));
    let (unavailable_at, surge_at) = (here.child("maxUnavailable"), here.child("maxSurge"));
    number_or_percent(unavailable, &unavailable_at, errors);
    number_or_percent(surge, &surge_at, errors);
    let absent_or_zero = |value: &Value| value.is_null() || is_zero(value);
    if absent_or_zero(unavailable) && absent_or_zero(surge) {
        let detail = "cannot be 0 when maxSurge is 0";
        errors.invalid(&unavailable_at, unavailable.clone(), detail);
    } else if !absent_or_zero(unavailable) && !absent_or_zero(surge) {
        let detail = "may not be set when maxUnavailable is non-zero";
        errors.invalid(&surge_at, surge.clone(), detail);
    }
    at_most_all(unavailable, &unavailable_at, errors);
    at_most_all(surge, &surge_at, errors);
}
