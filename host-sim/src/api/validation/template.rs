//! Rules on selectors and pod templates of workloads.

use serde_json::Value;

use super::{metadata, pod};
use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::{at, entries, list, text};
use crate::api::selector::LabelSelector;

/// A workload's selector and template, which must fit together.
pub(super) fn selector_and_template(spec: &Value, kind: &str, errors: &mut FieldErrors) {
    selector(spec, kind, &Path::new("spec").child("selector"), errors);
    let selector = LabelSelector::of_object(at(spec, &["selector"])).ok();
    let owner = match kind {
        "statefulset" => "StatefulSet",
        "daemonset" => "DaemonSet",
        _ => "ReplicaSet",
    };
    template(spec, selector.as_ref(), owner, errors);
}

/// A ReplicationController's selector: labels, of which there must be some.
pub(super) fn plain_selector(spec: &Value, errors: &mut FieldErrors) {
    if entries(spec, "selector").next().is_none() {
        errors.required(&Path::new("spec").child("selector"), "");
    }
}

/// A ReplicationController's template, which must fit its selector.
pub(super) fn template_of_plain_selector(spec: &Value, errors: &mut FieldErrors) {
    let selector = LabelSelector::of_labels(at(spec, &["selector"]));
    template(spec, Some(&selector), "ReplicationController", errors);
}

/// A `LabelSelector` object, wherever it stands.
pub(super) fn label_selector(selector: &Value, here: &Path, errors: &mut FieldErrors) {
    metadata::labels(selector, "matchLabels", here, errors);
    for (i, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let here = here.child("matchExpressions").index(i);
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&here.child("values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&here.child("values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.invalid(&here.child("operator"), other, "not a valid selector operator");
            }
        }
        let key = text(expression, "key");
        errors.invalid_all(&here.child("key"), key, &names::qualified_name(key));
        for (j, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let problems = names::label_value(value);
            errors.invalid_all(&here.child("values").index(j), value, &problems);
        }
    }
}

fn selector(spec: &Value, kind: &str, here: &Path, errors: &mut FieldErrors) {
    let selector = at(spec, &["selector"]);
    if selector.is_null() {
        errors.required(here, "");
        return;
    }
    label_selector(selector, here, errors);
    let empty = |name| selector.get(name).is_none_or(|v| v == &empty_of(v));
    if empty("matchLabels") && empty("matchExpressions") {
        let detail = format!("empty selector is invalid for {kind}");
        errors.invalid(here, selector.clone(), &detail);
    }
}

fn empty_of(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(serde_json::Map::new()),
        _ => Value::Null,
    }
}

fn template(spec: &Value, selector: Option<&LabelSelector>, owner: &str, errors: &mut FieldErrors) {
    let (template, here) = (at(spec, &["template"]), Path::new("spec").child("template"));
    if template.is_null() {
        errors.required(&here, "");
        return;
    }
    let labels = at(template, &["metadata", "labels"]);
    if let Some(selector) = selector
        && !selector.requirements().is_empty()
        && !selector.matches(labels)
    {
        let shown = if labels.is_null() { Value::Null } else { labels.clone() };
        let at = here.child("metadata").child("labels");
        errors.invalid(&at, shown, "`selector` does not match template `labels`");
    }
    if owner == "StatefulSet" {
        // Its pods are judged where their claims are known.
        pod::template_metadata(template, &here, errors);
    } else {
        pod::template(template, &here, errors);
    }
    let pod_spec = at(template, &["spec"]);
    let here = here.child("spec");
    let policy = text(pod_spec, "restartPolicy");
    if policy != "Always" && !policy.is_empty() {
        errors.not_supported(&here.child("restartPolicy"), policy, &["Always"]);
    }
    if !at(pod_spec, &["activeDeadlineSeconds"]).is_null() {
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.forbidden(&here.child("activeDeadlineSeconds"), &detail);
    }
}
