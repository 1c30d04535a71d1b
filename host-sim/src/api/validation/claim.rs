//! Rules on PersistentVolumeClaims, and on the templates that StatefulSets have for them.

use serde_json::Value;

use super::numbers::one_of;
use super::{IMMUTABLE, template};
use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::{at, child, list, set, text};
use crate::api::quantity::Quantity;

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const ALONE: &str = "ReadWriteOncePod";

pub(in crate::api) fn persistent_volume_claim(object: &Value, errors: &mut FieldErrors) {
    claim_spec(at(object, &["spec"]), &Path::new("spec"), errors);
}

/// The spec of a claim or of a claim template.
pub(super) fn claim_spec(spec: &Value, here: &Path, errors: &mut FieldErrors) {
    access_modes(spec, &here.child("accessModes"), errors);
    template::label_selector(at(spec, &["selector"]), &here.child("selector"), errors);
    let storage_at = here.child("resources").key("storage");
    match storage(spec) {
        None => errors.required(&storage_at, ""),
        Some(size) if size <= Quantity::ZERO => {
            let shown = at(spec, &["resources", "requests", "storage"]).clone();
            errors.invalid(&storage_at, shown, "must be greater than zero");
        }
        Some(_) => {}
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        errors.invalid_all(&here.child("storageClassName"), class, &names::dns_subdomain(class));
    }
    one_of(spec, "volumeMode", &["Block", "Filesystem"], here, errors);
}

fn access_modes(spec: &Value, here: &Path, errors: &mut FieldErrors) {
    let modes: Vec<&str> =
        list(spec, "accessModes").iter().map(|mode| mode.as_str().unwrap_or("")).collect();
    if modes.is_empty() {
        errors.required(here, "at least 1 access mode is required");
    }
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.not_supported(here, *mode, &ACCESS_MODES);
    }
    let other = |mode: &&str| ACCESS_MODES.contains(mode) && *mode != ALONE;
    if modes.contains(&ALONE) && modes.iter().any(other) {
        errors.forbidden(here, "may not use ReadWriteOncePod with other access modes");
    }
}

/// A claim gets its volume once, and its class if it had none. A bound one may ask for more.
pub(in crate::api) fn persistent_volume_claim_update(
    new: &Value,
    old: &Value,
    errors: &mut FieldErrors,
) {
    let (old_spec, new_spec) = (at(old, &["spec"]), at(new, &["spec"]));
    let mut allowed = old_spec.clone();
    let mut allow = |field: &str| set(&mut allowed, field, at(new_spec, &[field]).clone());
    if text(old_spec, "volumeName").is_empty() {
        allow("volumeName");
    }
    if at(old_spec, &["storageClassName"]).is_null() {
        allow("storageClassName");
    }
    if text(at(old, &["status"]), "phase") == "Bound" {
        allow("volumeAttributesClassName");
        let wanted = at(new_spec, &["resources", "requests", "storage"]).clone();
        set(child(child(&mut allowed, "resources"), "requests"), "storage", wanted);
    }
    if *new_spec != allowed {
        let detail = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims";
        errors.forbidden(&Path::new("spec"), detail);
    }
    let capacity = quantity(at(old, &["status", "capacity", "storage"]));
    if storage(new_spec) < storage(old_spec) && storage(new_spec) <= capacity {
        let here = Path::new("spec").child("resources").child("requests").child("storage");
        errors.forbidden(&here, "field can not be less than status.capacity");
    }
    let mode = at(new_spec, &["volumeMode"]);
    if mode != at(old_spec, &["volumeMode"]) {
        errors.invalid(&Path::new("volumeMode"), mode.clone(), IMMUTABLE);
    }
}

fn storage(spec: &Value) -> Option<Quantity> {
    quantity(at(spec, &["resources", "requests", "storage"]))
}

fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(Quantity::parse)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{changed, prepared, refusal, refusal_of};
    use super::*;
    use crate::api::kind;

    const STORAGE: &str = "/spec/resources/requests/storage";

    fn claim() -> Value {
        json!({"metadata": {"name": "data", "namespace": "n"},
               "spec": {"accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}}}})
    }

    #[test]
    fn claims_are_refused_as_upstream_refuses_them() {
        let cases = [
            (
                "/spec",
                json!({}),
                "[spec.accessModes: Required value: at least 1 access mode is required, \
                 spec.resources[storage]: Required value]",
            ),
            (
                "/spec/accessModes",
                json!(["x"]),
                "spec.accessModes: Unsupported value: \"x\": supported values: \"ReadOnlyMany\", \
                 \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            ),
            (
                "/spec/accessModes",
                json!(["ReadWriteOncePod", "ReadWriteMany"]),
                "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
            ),
            (
                "/spec/selector",
                json!({"matchExpressions": [{"key": "a", "operator": "x"}]}),
                "spec.selector.matchExpressions[0].operator: Invalid value: \"x\": not a valid \
                 selector operator",
            ),
            (
                STORAGE,
                json!("0"),
                "spec.resources[storage]: Invalid value: \"0\": must be greater than zero",
            ),
            (
                "/spec/storageClassName",
                json!("-"),
                "spec.storageClassName: Invalid value: \"-\": a lowercase RFC 1123 subdomain must \
                 consist of lower case alphanumeric characters, '-' or '.', and must start and end \
                 with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            (
                "/spec/volumeMode",
                json!("x"),
                "spec.volumeMode: Unsupported value: \"x\": supported values: \"Block\", \
                 \"Filesystem\"",
            ),
        ];
        for (pointer, value, message) in cases {
            let said = refusal_of("", "persistentvolumeclaims", &claim(), pointer, value);
            assert_eq!(said, message, "{pointer}");
        }
        assert_eq!(refusal("", "persistentvolumeclaims", claim()), "");
    }

    #[test]
    fn the_spec_of_a_claim_stays_but_for_what_binding_and_growing_need() {
        let pending = prepared(kind::find("", "v1", "persistentvolumeclaims").unwrap(), claim());
        let mut bound = pending.clone();
        bound["spec"]["volumeName"] = json!("pv");
        bound["spec"]["storageClassName"] = json!("fast");
        bound["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
        let fixed = "spec: Forbidden: spec is immutable after creation except resources.requests \
                     and volumeAttributesClassName for bound claims";
        let less = "spec.resources.requests.storage: Forbidden: field can not be less than \
                    status.capacity";
        let cases = [
            (&pending, "/spec/volumeName", json!("pv"), ""),
            (&pending, "/spec/storageClassName", json!("fast"), ""),
            (&pending, STORAGE, json!("2Gi"), fixed),
            (&pending, "/spec/volumeAttributesClassName", json!("gold"), fixed),
            (&pending, "/spec/accessModes", json!(["ReadWriteMany"]), fixed),
            (&bound, "/spec/volumeName", json!("other"), fixed),
            (&bound, "/spec/storageClassName", json!("slow"), fixed),
            (&bound, STORAGE, json!("2Gi"), ""),
            (&bound, STORAGE, json!("512Mi"), less),
            (&bound, "/spec/volumeAttributesClassName", json!("gold"), ""),
            (&bound, "/metadata/labels", json!({"a": "b"}), ""),
        ];
        for (old, pointer, value, message) in cases {
            let said = changed("persistentvolumeclaims", old, pointer, value);
            assert_eq!(said, message, "{pointer}");
        }
        let said = changed("persistentvolumeclaims", &bound, "/spec/volumeMode", json!("Block"));
        let immutable = "volumeMode: Invalid value: \"Block\": field is immutable";
        assert_eq!(said, format!("[{fixed}, {immutable}]"));
        // An expansion that failed can be taken back, though not below what is there.
        let mut growing = bound.clone();
        growing["spec"]["resources"]["requests"]["storage"] = json!("4Gi");
        assert_eq!(changed("persistentvolumeclaims", &growing, STORAGE, json!("2Gi")), "");
    }
}
