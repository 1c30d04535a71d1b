//! Rules on `metadata`, the same for every kind.

use std::collections::HashSet;

use serde_json::Value;

use super::IMMUTABLE;
use crate::api::field::{FieldErrors, Path};
use crate::api::kind::{Kind, split_api_version};
use crate::api::names;
use crate::api::object::{at, entries, flag, list, text};

/// All annotations of an object together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

pub(in crate::api) fn validate_metadata(kind: &Kind, object: &Value, errors: &mut FieldErrors) {
    let metadata = at(object, &["metadata"]);
    let here = Path::new("metadata");
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        let problems = names::object_name(kind.name_rule, prefix, true);
        errors.invalid_all(&here.child("generateName"), prefix, &problems);
    }
    match text(metadata, "name") {
        "" => errors.required(&here.child("name"), "name or generateName is required"),
        name => {
            let problems = names::object_name(kind.name_rule, name, false);
            errors.invalid_all(&here.child("name"), name, &problems);
        }
    }
    let namespace = text(metadata, "namespace");
    let namespace_at = here.child("namespace");
    if !kind.namespaced && !namespace.is_empty() {
        errors.forbidden(&namespace_at, "not allowed on this type");
    } else if kind.namespaced && namespace.is_empty() {
        errors.required(&namespace_at, "");
    } else if kind.namespaced {
        errors.invalid_all(&namespace_at, namespace, &names::dns_label(namespace));
    }
    contents(metadata, &here, errors);
    finalizers(metadata, &here.child("finalizers"), errors);
}

pub(in crate::api) fn validate_metadata_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let (new, old) = (at(new, &["metadata"]), at(old, &["metadata"]));
    let here = Path::new("metadata");
    if old.get("deletionTimestamp").is_some_and(Value::is_string) {
        no_new_finalizers(new, old, &here.child("finalizers"), errors);
    }
    const FIXED: [&str; 6] = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    for field in FIXED {
        let (after, before) = (at(new, &[field]), at(old, &[field]));
        if after != before {
            errors.invalid(&here.child(field), after.clone(), IMMUTABLE);
        }
    }
    contents(new, &here, errors);
}

/// Labels, wherever they stand.
pub(super) fn labels(value: &Value, name: &str, here: &Path, errors: &mut FieldErrors) {
    let here = here.child(name);
    for (key, value) in entries(value, name) {
        errors.invalid_all(&here, key, &names::qualified_name(key));
        let value = value.as_str().unwrap_or("");
        errors.invalid_all(&here, value, &names::label_value(value));
    }
}

/// Annotations, wherever they stand.
pub(super) fn annotations(value: &Value, here: &Path, errors: &mut FieldErrors) {
    let here = here.child("annotations");
    let mut size = 0;
    for (key, value) in entries(value, "annotations") {
        errors.invalid_all(&here, key, &names::qualified_name(&key.to_lowercase()));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        errors.too_long(&here, ANNOTATIONS_LIMIT);
    }
}

fn contents(metadata: &Value, here: &Path, errors: &mut FieldErrors) {
    labels(metadata, "labels", here, errors);
    annotations(metadata, here, errors);
    owner_references(metadata, &here.child("ownerReferences"), errors);
    for entry in list(metadata, "managedFields") {
        let here = here.child("managedFields");
        if !matches!(text(entry, "operation"), "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.invalid(&here.child("operation"), text(entry, "operation"), detail);
        }
        if !matches!(text(entry, "fieldsType"), "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.invalid(&here.child("fieldsType"), text(entry, "fieldsType"), detail);
        }
    }
}

fn owner_references(metadata: &Value, here: &Path, errors: &mut FieldErrors) {
    let mut controller: Option<String> = None;
    for reference in list(metadata, "ownerReferences") {
        let api_version = text(reference, "apiVersion");
        let kind = text(reference, "kind");
        if split_api_version(api_version).1.is_empty() {
            let detail = "version must not be empty";
            errors.invalid(&here.child("apiVersion"), api_version, detail);
        }
        for field in ["kind", "name", "uid"] {
            if text(reference, field).is_empty() {
                errors.invalid(&here.child(field), "", "must not be empty");
            }
        }
        if api_version == "v1" && kind == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.invalid(here, reference.clone(), detail);
        }
        if flag(reference, "controller") {
            let this = format!("{kind}/{}", text(reference, "name"));
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {this}"
                );
                errors.invalid(here, at(metadata, &["ownerReferences"]).clone(), &detail);
            } else {
                controller = Some(this);
            }
        }
    }
}

fn finalizers(metadata: &Value, here: &Path, errors: &mut FieldErrors) {
    let names_of = || list(metadata, "finalizers").iter().filter_map(Value::as_str);
    for name in names_of() {
        errors.invalid_all(here, name, &names::qualified_name(name));
    }
    if names_of().any(|f| f == "orphan") && names_of().any(|f| f == "foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid(here, at(metadata, &["finalizers"]).clone(), detail);
    }
}

fn no_new_finalizers(new: &Value, old: &Value, here: &Path, errors: &mut FieldErrors) {
    let old: HashSet<&Value> = list(old, "finalizers").iter().collect();
    let mut extra: Vec<&str> = list(new, "finalizers")
        .iter()
        .filter(|f| !old.contains(f))
        .filter_map(Value::as_str)
        .collect();
    extra.sort_unstable();
    if !extra.is_empty() {
        let quoted: Vec<String> = extra.iter().map(|f| format!("\"{f}\"")).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, \
             found new finalizers []string{{{}}}",
            quoted.join(", ")
        );
        errors.forbidden(here, &detail);
    }
}
