//! The rules of the kinds, in the shape in which the server asks for them.

use bytes::Bytes;
use serde_json::Value;

use crate::api::apply;
use crate::api::body::{self, Parsed};
use crate::api::decode::{self, Expected, FieldValidation};
use crate::api::field::{FieldErrors, Path};
use crate::api::kind::Kind;
use crate::api::lifecycle;
use crate::api::patch;
use crate::api::protobuf;
use crate::api::selector::LabelSelector;
use crate::api::status::Status;
use crate::random::Random;
use crate::store::Entry;

use super::options::Options;
use super::request::ResourceTarget;

pub(super) use crate::api::apply::{Writer, manage_create, manage_update};
pub(super) use crate::api::convert::{as_seen, from_storage, to_storage};
pub(super) use crate::api::decode::Decoded;
pub(super) use crate::api::lifecycle::{
    prepare_create, prepare_update, validate_create, validate_update, version_required,
};
pub(super) use crate::api::patch::PatchType;

/// The letters of generated names: no vowels and nothing that looks like another letter.
const NAME_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const MEDIA_TYPES: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Decodes the body of a create or an update of `target`.
pub(super) fn decode(
    target: &ResourceTarget,
    media_type: &str,
    body: &Bytes,
    options: &Options,
) -> Result<Decoded, Status> {
    let kind = target.kind;
    let subresource = kind.subresource(&target.subresource);
    let expected = match subresource {
        Some(sub) => Expected { group: sub.group, version: sub.version, kind: sub.kind },
        None => Expected::of(kind),
    };
    let validation = options.field_validation.unwrap_or_default();
    let parsed = parse(expected, media_type, body)?;
    if expected.kind == kind.kind {
        decode::decode_object(kind, parsed, validation)
    } else {
        decode::decode(expected, parsed, validation)
    }
}

/// Decodes DeleteOptions.
pub(super) fn decode_delete_options(media_type: &str, body: &Bytes) -> Result<Value, Status> {
    let expected = Expected { group: "meta.k8s.io", version: "v1", kind: "DeleteOptions" };
    let mut parsed = parse(expected, media_type, body)?;
    // Every group has its own DeleteOptions, and some clients send none of the two fields.
    if let Some(fields) = parsed.value.as_object_mut() {
        fields.remove("apiVersion");
        if fields.get("kind").is_some_and(|kind| kind == "DeleteOptions") {
            fields.remove("kind");
        }
    }
    Ok(decode::decode(expected, parsed, FieldValidation::Ignore)?.object)
}

fn parse(expected: Expected<'_>, media_type: &str, body: &Bytes) -> Result<Parsed, Status> {
    let parsed = match media_type {
        "" | "application/json" => body::parse_json(body),
        "application/yaml" => body::parse_yaml(body),
        protobuf::MEDIA_TYPE => {
            return protobuf::parse(body).map_err(Status::bad_request);
        }
        _ => return Err(Status::unsupported_media_type(MEDIA_TYPES)),
    };
    parsed.map_err(|error| decode::unreadable(expected, &error, body))
}

/// Applies a patch that is no apply.
pub(super) fn patch(
    kind: &Kind,
    patch_type: PatchType,
    current: &Value,
    body: &[u8],
    options: &Options,
) -> Result<Decoded, Status> {
    let validation = options.field_validation.unwrap_or_default();
    patch::patch_object(kind, patch_type, current, body, validation)
}

/// Applies a configuration; `None` creates the object.
pub(super) fn apply(
    kind: &Kind,
    current: Option<&Value>,
    body: &[u8],
    writer: Writer<'_>,
    options: &Options,
) -> Result<Decoded, Status> {
    let validation = options.field_validation.unwrap_or_default();
    apply::apply(kind, current, body, writer, options.force, validation)
}

/// Applies a patch to a Scale.
pub(super) fn patch_scale(
    patch_type: PatchType,
    scale: &Value,
    body: &[u8],
    options: &Options,
) -> Result<Value, Status> {
    let validation = options.field_validation.unwrap_or_default();
    Ok(patch::patch_scale(patch_type, scale, body, validation)?.object)
}

/// A name made of a prefix and random letters.
pub(super) fn generate_name(base: &str, random: &mut Random) -> String {
    let letters = (0..SUFFIX_LENGTH)
        .filter_map(|_| NAME_LETTERS.get(random.below(NAME_LETTERS.len() as u64) as usize));
    let suffix: String = letters.map(|letter| char::from(*letter)).collect();
    lifecycle::generate_name(base, &suffix)
}

/// The replicas that a Scale asks for.
pub(super) fn scale_replicas(name: &str, scale: &Value) -> Result<i64, Status> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 {
        let mut errors = FieldErrors::new();
        let why = "must be greater than or equal to 0";
        errors.invalid(&Path::from("spec.replicas"), replicas, why);
        return Err(Status::invalid_kind("autoscaling", "Scale", name, &errors));
    }
    Ok(replicas)
}

/// The selector of a workload in string form.
pub(super) fn selector_text(kind: &Kind, object: &Value) -> String {
    LabelSelector::of_workload(kind, object).map(|s| s.to_string()).unwrap_or_default()
}

/// The refusal of DeleteOptions.
pub(super) fn invalid_delete_options(field: &str, value: Option<&str>, why: &str) -> Status {
    let mut errors = FieldErrors::new();
    errors.invalid(&Path::from(field), value.unwrap_or_default(), why);
    Status::invalid_kind("", "DeleteOptions", "", &errors)
}

/// The refusal of an object that has no name and does not want one made.
pub(super) fn name_required(kind: &Kind) -> Status {
    let mut errors = FieldErrors::new();
    errors.required(&Path::from("metadata.name"), "name or generateName is required");
    Status::invalid(kind, "", &errors)
}

/// The refusal of a patch that changes the name.
pub(super) fn name_immutable(kind: &Kind, name: &str, new: &Value) -> Status {
    let mut errors = FieldErrors::new();
    let given = new["metadata"]["name"].clone();
    errors.invalid(&Path::from("metadata.name"), given, "field is immutable");
    Status::invalid(kind, name, &errors)
}

/// The refusal of a resourceVersion that is none.
pub(super) fn version_malformed(kind: &Kind, name: &str, version: &str) -> Status {
    let mut errors = FieldErrors::new();
    let why = "must be the version of an object as the server gave it";
    errors.invalid(&Path::from("metadata.resourceVersion"), version, why);
    Status::invalid(kind, name, &errors)
}

/// The refusal of an apply without a manager.
pub(super) fn field_manager_required() -> Status {
    let mut errors = FieldErrors::new();
    errors.required(&Path::from("fieldManager"), "is required for apply patch");
    Status::invalid_kind("meta.k8s.io", "PatchOptions", "", &errors)
}

/// The refusal of force where nothing is applied.
pub(super) fn force_forbidden() -> Status {
    let mut errors = FieldErrors::new();
    errors.forbidden(&Path::from("force"), "may not be specified for non-apply patch");
    Status::invalid_kind("meta.k8s.io", "PatchOptions", "", &errors)
}

/// The refusal of a binding to nowhere.
pub(super) fn binding_target_required(name: &str) -> Status {
    let mut errors = FieldErrors::new();
    errors.required(&Path::from("target.name"), "");
    Status::invalid_kind("", "Binding", name, &errors)
}

/// A scalar field of a stored object.
pub(super) fn field<'a>(entry: &'a Entry, path: &str) -> Option<&'a str> {
    path.split('.').try_fold(entry.fields(), |value, name| value.get(name)).and_then(Value::as_str)
}
