//! The life of an object from request to storage: what the server sets, keeps and checks.
//!
//! Order of a create: decode (with defaults) → name → `manage_create` → [`prepare_create`] →
//! admission → [`validate_create`]. Order of an update: decode → [`prepare_update`] → [`validate_update`].

use serde_json::{Value, json};

use super::conform;
use super::field::{FieldErrors, Path};
use super::kind::{Generation, Kind};
use super::object::{at, child, fields, int, name, remove, set, text};
use super::rules::StatusMetadata;
use super::status::Status;
use super::validation;
use crate::time::Timestamp;

/// Generated names are cut so that with five random characters they still fit a label.
const GENERATE_NAME_BASE: usize = 58;

/// A name made of a `generateName` and a random suffix.
pub fn generate_name(base: &str, suffix: &str) -> String {
    let mut cut = base.len().min(GENERATE_NAME_BASE);
    while !base.is_char_boundary(cut) {
        cut -= 1;
    }
    format!("{}{suffix}", base.get(..cut).unwrap_or(""))
}

/// Sets what the server decides about a new object: identity, times, generation, an empty status.
pub fn prepare_create(kind: &Kind, object: &mut Value, now: Timestamp, uid: &str) {
    set(object, "apiVersion", json!(kind.api_version()));
    set(object, "kind", json!(kind.kind));
    let metadata = child(object, "metadata");
    for field in [
        "selfLink",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        remove(metadata, field);
    }
    set(metadata, "uid", json!(uid));
    set(metadata, "creationTimestamp", json!(now.to_rfc3339()));
    if kind.generation != Generation::None {
        set(metadata, "generation", json!(1));
    }
    if kind.has_status() && !kind.rules.status_on_create {
        let status = kind.object_type().and_then(|ty| ty.field("status"));
        set(object, "status", status.and_then(|f| conform::zero(&f.ty)).unwrap_or(Value::Null));
    }
    (kind.rules.prepare_create)(object);
}

/// Checks a new object.
pub fn validate_create(kind: &Kind, object: &Value) -> Result<(), Status> {
    let mut errors = FieldErrors::new();
    validation::validate_metadata(kind, object, &mut errors);
    (kind.rules.validate)(object, &mut errors);
    (kind.rules.validate_create)(object, &mut errors);
    refuse(kind, object, &errors)
}

/// Sets back what a writer may not change through the endpoint used, and counts the generation.
/// `subresource` is "" for the object itself.
pub fn prepare_update(kind: &Kind, subresource: &str, new: &mut Value, old: &Value) {
    set(new, "apiVersion", json!(kind.api_version()));
    set(new, "kind", json!(kind.kind));
    keep_metadata(new, old);
    match subresource {
        "status" => {
            keep_all_but(&["metadata", "status"], new, old);
            keep_for_status(kind.rules.status_metadata, new, old);
        }
        "finalize" => keep_all_but(&["metadata", "spec"], new, old),
        _ => {
            if kind.has_status() {
                set(new, "status", at(old, &["status"]).clone());
            }
            (kind.rules.prepare_update)(new, old);
        }
    }
    if kind.generation != Generation::None {
        let before = int(at(old, &["metadata"]), "generation").unwrap_or(0);
        let bump = i64::from(subresource != "status" && is_new_generation(kind, new, old));
        set(child(new, "metadata"), "generation", json!(before + bump));
    }
}

/// Checks a change.
pub fn validate_update(
    kind: &Kind,
    subresource: &str,
    new: &Value,
    old: &Value,
) -> Result<(), Status> {
    let mut errors = FieldErrors::new();
    validation::validate_metadata_update(new, old, &mut errors);
    if subresource == "status" {
        (kind.rules.validate_status)(new, old, &mut errors);
    } else {
        (kind.rules.validate)(new, &mut errors);
        (kind.rules.validate_update)(new, old, &mut errors);
    }
    refuse(kind, new, &errors)
}

/// The refusal of an update without resourceVersion to a kind that insists on one (leases).
pub fn version_required(kind: &Kind, name: &str) -> Status {
    let mut errors = FieldErrors::new();
    // Upstream prints the number it made of the empty string, in hexadecimal.
    let at = Path::new("metadata").child("resourceVersion");
    errors.push_shown(&at, "0x0", "must be specified for an update");
    Status::invalid(kind, name, &errors)
}

fn refuse(kind: &Kind, object: &Value, errors: &FieldErrors) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(kind, name(object), errors)) }
}

fn keep_metadata(new: &mut Value, old: &Value) {
    let old = at(old, &["metadata"]);
    let metadata = child(new, "metadata");
    remove(metadata, "selfLink");
    for field in ["uid", "name", "namespace"] {
        if text(metadata, field).is_empty() {
            set(metadata, field, at(old, &[field]).clone());
        }
    }
    for field in ["creationTimestamp", "generation", "generateName"] {
        set(metadata, field, at(old, &[field]).clone());
    }
    // A deletion under way cannot be taken back; one that was not asked for is refused later.
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        if !at(old, &[field]).is_null() {
            set(metadata, field, at(old, &[field]).clone());
        }
    }
}

fn keep_all_but(changeable: &[&str], new: &mut Value, old: &Value) {
    let kept = |name: &str| !changeable.contains(&name);
    let fields = fields(new);
    fields.retain(|name, _| {
        !kept(name) || old.get(name).is_some() || matches!(name.as_str(), "apiVersion" | "kind")
    });
    for (name, value) in old.as_object().into_iter().flatten() {
        // Mostly the writer has sent back what it was given.
        if kept(name) && fields.get(name) != Some(value) {
            fields.insert(name.clone(), value.clone());
        }
    }
}

fn keep_for_status(rule: StatusMetadata, new: &mut Value, old: &Value) {
    let kept: &[&str] = match rule {
        StatusMetadata::Everything => &[],
        StatusMetadata::NotLabels => &["labels"],
        StatusMetadata::NotOwners => &["ownerReferences"],
    };
    for field in kept {
        set(child(new, "metadata"), field, at(old, &["metadata", field]).clone());
    }
}

fn is_new_generation(kind: &Kind, new: &Value, old: &Value) -> bool {
    let differs = |path: &[&str]| at(new, path) != at(old, path);
    match kind.generation {
        Generation::None => false,
        Generation::Spec => differs(&["spec"]),
        Generation::SpecOrAnnotations => {
            differs(&["spec"]) || differs(&["metadata", "annotations"])
        }
    }
}

#[cfg(test)]
mod tests;
