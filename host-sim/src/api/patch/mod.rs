//! PATCH: JSON patch, merge patch and strategic merge patch. Server-side apply is in `apply`.

mod diff;
mod json;
mod ledger;
mod merge;
mod order;
mod strategic;

use serde_json::Value;

use super::body::{self, Parsed};
use super::conform::conform;
use super::decode::{
    Decoded, Expected, FieldValidation, check_kind, complaints, conversion_error, strict_error,
};
use super::field::{FieldErrors, Path};
use super::kind::Kind;
use super::schema::{self, ObjectType};
use super::status::{Details, Reason, Status};

pub use diff::strategic_diff;
pub use ledger::MAX_OPERATIONS;

/// The kinds of patches that are told apart by content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902: a list of operations.
    Json,
    /// RFC 7386: a partial object, lists are replaced.
    Merge,
    /// A partial object, lists are merged by their keys.
    Strategic,
    /// Server-side apply.
    Apply,
}

/// The content types of patches, as an unsupported one is answered.
pub const MEDIA_TYPES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

impl PatchType {
    /// The type a content type stands for; parameters are ignored.
    pub fn of(content_type: &str) -> Result<Self, Status> {
        match content_type.split(';').next().unwrap_or("").trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => Err(Status::unsupported_media_type(&MEDIA_TYPES)),
        }
    }
}

/// Applies a patch (not an apply patch) to an object of a kind, in the form the kind has.
/// The result conforms to its type and has its defaults.
pub fn patch_object(
    kind: &Kind,
    patch_type: PatchType,
    current: &Value,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let ty = kind.object_type().ok_or_else(|| no_type(kind.kind))?;
    let mut patched = patch_value(ty, patch_type, current, body, validation)?;
    if let Err(error) = check_kind(Expected::of(kind), &patched.object) {
        return Err(invalid_patch(&patched.object.to_string(), &error.message));
    }
    if let Some(error) = conversion_error(kind, &patched.object) {
        return Err(invalid_patch(&patched.object.to_string(), &error));
    }
    (kind.rules.defaults)(&mut patched.object);
    Ok(patched)
}

/// Applies a patch to a Scale.
pub fn patch_scale(
    patch_type: PatchType,
    scale: &Value,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let name = schema::model_name("autoscaling", "v1", "Scale");
    let ty = schema::object_type(&name).ok_or_else(|| no_type("Scale"))?;
    patch_value(ty, patch_type, scale, body, validation)
}

fn patch_value(
    ty: &ObjectType,
    patch_type: PatchType,
    current: &Value,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let Parsed { value: patch, duplicates } =
        body::parse_json(body).map_err(|error| undecodable(&error))?;
    let mut object = patched(ty, patch_type, current, &patch)?;
    // Upstream shows the patched object, or, of a strategic patch, the patch as Go prints it.
    let refused = |why: &str| match patch_type {
        PatchType::Strategic => Ok(invalid_patch(&go_print(&patch), why)),
        // Patched once more: by now the object has been made to conform, as far as it could.
        _ => patched(ty, patch_type, current, &patch).map(|o| invalid_patch(&o.to_string(), why)),
    };
    let unknown = match conform(ty, &mut object) {
        Ok(unknown) => unknown,
        Err(error) => return Err(refused(&error)?),
    };
    let complaints = complaints(&unknown, &duplicates);
    if complaints.is_empty() || validation == FieldValidation::Ignore {
        return Ok(Decoded { object, warnings: Vec::new() });
    }
    if validation == FieldValidation::Strict {
        return Err(refused(&strict_error(&complaints))?);
    }
    Ok(Decoded { object, warnings: complaints })
}

/// What a patch makes of a value, before anybody looks at types.
fn patched(
    ty: &ObjectType,
    patch_type: PatchType,
    current: &Value,
    patch: &Value,
) -> Result<Value, Status> {
    match patch_type {
        PatchType::Json => {
            let operations = json::Operation::list(patch).map_err(|error| match error {
                json::Malformed::TooMany(count) => json::too_many(count),
                json::Malformed::Other(why) => undecodable(&why),
            })?;
            json::apply(&operations, current.clone()).map_err(|why| rejected(&why))
        }
        PatchType::Merge if !patch.is_object() => {
            Err(undecodable("a merge patch must be an object"))
        }
        PatchType::Merge => Ok(merge::apply(current.clone(), patch)),
        PatchType::Strategic => strategic::apply(ty, current, patch).map_err(|e| match e {
            strategic::PatchError::Malformed(why) => Status::bad_request(why),
            strategic::PatchError::NotAnObject => undecodable("a patch must be an object"),
        }),
        PatchType::Apply => Err(Status::internal("an apply patch is not applied like the others")),
    }
}

fn undecodable(why: &str) -> Status {
    Status::bad_request(format!("error decoding patch: {why}"))
}

/// 422 as upstream says it of a patch whose result cannot be decoded.
fn invalid_patch(shown: &str, why: &str) -> Status {
    let mut errors = FieldErrors::new();
    errors.invalid(&Path::new("patch"), shown, why);
    Status::invalid_kind("", "", "", &errors)
}

/// A value as Go's `%+v` prints what it decoded: `map[spec:map[replicas:3]]`.
fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_print).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(name, value)| format!("{name}:{}", go_print(value))).collect();
            format!("map[{}]", entries.join(" "))
        }
        other => other.to_string(),
    }
}

/// 422 as upstream says it of a JSON patch that does not apply, with the reason behind it.
fn rejected(why: &str) -> Status {
    Status {
        reason: Reason::Invalid,
        message: format!("the server rejected our request due to an error in our request: {why}"),
        details: Some(Box::new(Details::default())),
        continue_token: None,
    }
}

fn no_type(kind: &str) -> Status {
    Status::internal(&format!("no type is known for {kind}"))
}

#[cfg(test)]
mod tests;
