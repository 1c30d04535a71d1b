//! Rules on resource requests and limits.

use serde_json::Value;

use super::numbers::NOT_NEGATIVE;
use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::{at, entries};
use crate::api::quantity::Quantity;

pub(super) fn requirements(resources: &Value, here: &Path, errors: &mut FieldErrors) {
    for (name, value) in entries(resources, "limits") {
        resource(name, value, &here.child("limits"), errors);
    }
    let requests_at = here.child("requests");
    for (name, value) in entries(resources, "requests") {
        resource(name, value, &requests_at, errors);
        let limit = at(resources, &["limits", name]);
        let (Some(request), Some(most)) = (quantity(value), quantity(limit)) else { continue };
        if request > most {
            let detail = format!("must be less than or equal to {name} limit of {most}");
            errors.invalid(&requests_at, value.clone(), &detail);
        }
    }
}

/// A map of resource names and quantities.
pub(super) fn resource_list(value: &Value, name: &str, here: &Path, errors: &mut FieldErrors) {
    let here = here.child(name);
    for (resource, value) in entries(value, name) {
        errors.invalid_all(&here.key(resource), resource, &names::qualified_name(resource));
        if quantity(value).is_some_and(Quantity::is_negative) {
            errors.invalid(&here.key(resource), value.clone(), NOT_NEGATIVE);
        }
    }
}

fn resource(name: &str, value: &Value, here: &Path, errors: &mut FieldErrors) {
    let here = here.key(name);
    errors.invalid_all(&here, name, &names::qualified_name(name));
    let standard =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !standard && !name.contains('/') {
        errors.invalid(&here, name, "must be a standard resource for containers");
    }
    if let Some(amount) = quantity(value) {
        if amount.is_negative() {
            errors.invalid(&here, value.clone(), NOT_NEGATIVE);
        }
        if !standard && !amount.is_whole() {
            errors.invalid(&here, value.clone(), "must be an integer");
        }
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::parse(value.as_str()?)
}
