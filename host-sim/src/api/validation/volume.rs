//! Rules on volumes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::{at, int, list, text};

/// Checks the volumes and gives the names that containers can mount.
pub(super) fn volumes(spec: &Value, here: &Path, errors: &mut FieldErrors) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (i, volume) in list(spec, "volumes").iter().enumerate() {
        let here = here.index(i);
        source(volume, &here, errors);
        let name = text(volume, "name");
        if name.is_empty() {
            errors.required(&here.child("name"), "");
            continue;
        }
        let problems = names::dns_label(name);
        errors.invalid_all(&here.child("name"), name, &problems);
        if problems.is_empty() && !seen.insert(name.to_owned()) {
            errors.duplicate(&here.child("name"), name);
        }
    }
    seen
}

fn source(volume: &Value, here: &Path, errors: &mut FieldErrors) {
    let given: Vec<&String> =
        volume.as_object().into_iter().flatten().map(|(k, _)| k).filter(|k| *k != "name").collect();
    if given.is_empty() {
        errors.required(here, "must specify a volume type");
    }
    for extra in given.iter().skip(1) {
        errors.forbidden(&here.child(extra), "may not specify more than 1 volume type");
    }
    for (field, required) in [
        ("configMap", "name"),
        ("secret", "secretName"),
        ("persistentVolumeClaim", "claimName"),
        ("hostPath", "path"),
        ("nfs", "server"),
        ("nfs", "path"),
    ] {
        let value = at(volume, &[field]);
        if value.is_object() && text(value, required).is_empty() {
            errors.required(&here.child(field).child(required), "");
        }
    }
    for field in ["configMap", "secret", "projected", "downwardAPI"] {
        let (value, here) = (at(volume, &[field]), here.child(field));
        file_mode(value, "defaultMode", &here, errors);
        for (i, item) in list(value, "items").iter().enumerate() {
            let here = here.child("items").index(i);
            if field != "downwardAPI" && text(item, "key").is_empty() {
                errors.required(&here.child("key"), "");
            }
            local_path(item, &here, errors);
            file_mode(item, "mode", &here, errors);
        }
    }
}

fn local_path(item: &Value, here: &Path, errors: &mut FieldErrors) {
    let here = here.child("path");
    match text(item, "path") {
        "" => errors.required(&here, ""),
        path if path.starts_with('/') => errors.invalid(&here, path, "must be a relative path"),
        path if path.split('/').any(|part| part == "..") => {
            errors.invalid(&here, path, "must not contain '..'");
        }
        _ => {}
    }
}

fn file_mode(value: &Value, name: &str, here: &Path, errors: &mut FieldErrors) {
    if let Some(mode) = int(value, name)
        && !(0..=0o777).contains(&mode)
    {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.invalid(&here.child(name), mode, detail);
    }
}
