//! From a request body to an object of its kind: types, unknown fields, defaults.

use serde_json::Value;

use super::body::Parsed;
use super::conform::conform;
use super::kind::{Kind, find_kind, split_api_version};
use super::object::{at, text};
use super::schema;
use super::status::Status;

/// What happens to unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped silently.
    Ignore,
    /// They are dropped with a warning.
    #[default]
    Warn,
    /// They are an error.
    Strict,
}

/// An object that could be decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object, conforming to its type, with defaults.
    pub object: Value,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// What a body is expected to hold.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// API group; empty for core.
    pub group: &'a str,
    /// Version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

impl<'a> Expected<'a> {
    /// Objects of a served kind.
    pub fn of(kind: &'a Kind) -> Self {
        Self { group: kind.group, version: kind.version, kind: kind.kind }
    }

    fn api_version(self) -> String {
        if self.group.is_empty() || self.group == "meta.k8s.io" {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Decodes the body of a create or update of a kind, and fills in defaults.
pub fn decode_object(
    kind: &Kind,
    parsed: Parsed,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let mut decoded = decode(Expected::of(kind), parsed, validation)?;
    if let Some(error) = conversion_error(kind, &decoded.object) {
        return Err(cannot_be_handled(kind.version, kind.kind, kind.kind, &error));
    }
    (kind.rules.defaults)(&mut decoded.object);
    Ok(decoded)
}

/// Decodes a body of any type of the API (a Scale, a Binding, DeleteOptions); no defaults.
pub fn decode(
    expected: Expected<'_>,
    parsed: Parsed,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let Parsed { mut value, duplicates } = parsed;
    check_kind(expected, &value)?;
    let kind = match text(&value, "kind") {
        "" => expected.kind.to_owned(),
        given => given.to_owned(),
    };
    let cannot = |why: &str| cannot_be_handled(expected.version, &kind, expected.kind, why);
    let name = schema::model_name(expected.group, expected.version, expected.kind);
    let ty = schema::object_type(&name)
        .ok_or_else(|| Status::internal(&format!("no type is known for {name}")))?;
    let unknown = conform(ty, &mut value).map_err(|error| cannot(&error))?;
    let complaints = complaints(&unknown, &duplicates);
    match validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            Err(cannot(&strict_error(&complaints)))
        }
        FieldValidation::Warn => Ok(Decoded { object: value, warnings: complaints }),
        _ => Ok(Decoded { object: value, warnings: Vec::new() }),
    }
}

/// What strict validation says about the fields complained of.
pub(super) fn strict_error(complaints: &[String]) -> String {
    format!("strict decoding error: {}", complaints.join(", "))
}

/// Unknown and duplicate fields, as warnings and errors name them.
pub(super) fn complaints(unknown: &[String], duplicates: &[String]) -> Vec<String> {
    let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    unknown.chain(duplicates.iter().map(|path| format!("duplicate field \"{path}\""))).collect()
}

/// The refusal of a body that is no JSON (or YAML) at all.
pub fn unreadable(expected: Expected<'_>, error: &str, body: &[u8]) -> Status {
    const SHOWN: usize = 30;
    let (shown, rest) = body.split_at(body.len().min(SHOWN));
    let mut summary = match shown.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if !rest.is_empty() {
        summary.push_str(" ...");
    }
    let kind = expected.kind;
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): \
         couldn't get version/kind; json parse error: {error} ({summary})"
    ))
}

/// Errors of the conversion between API versions, which upstream does while decoding.
pub(super) fn conversion_error(kind: &Kind, object: &Value) -> Option<String> {
    const ROLLBACK: &str = "deprecated.deployment.rollback.to";
    if kind.kind != "Deployment" {
        return None;
    }
    let revision = at(object, &["metadata", "annotations", ROLLBACK]).as_str()?;
    if revision.parse::<i64>().is_ok() {
        return None;
    }
    Some(format!(
        "failed to parse annotation[{ROLLBACK}]={revision} as int64: \
         strconv.ParseInt: parsing \"{revision}\": invalid syntax"
    ))
}

/// Checks that a body says what it is expected to be, where it says so.
pub(super) fn check_kind(expected: Expected<'_>, value: &Value) -> Result<(), Status> {
    let (api_version, kind) = (text(value, "apiVersion"), text(value, "kind"));
    let wanted = expected.api_version();
    if !kind.is_empty() && kind != expected.kind {
        let given = if api_version.is_empty() { &wanted } else { api_version };
        let (_, version) = split_api_version(given);
        let why = if find_kind(given, kind).is_some() {
            let group = if expected.group.is_empty() { "core" } else { expected.group };
            format!(
                "converting ({version}.{kind}) to ({group}.{}): unknown conversion",
                expected.kind
            )
        } else {
            format!("no kind \"{kind}\" is registered for version \"{given}\"")
        };
        return Err(cannot_be_handled(version, kind, expected.kind, &why));
    }
    if !api_version.is_empty() && api_version != wanted {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version \
             ({wanted})"
        )));
    }
    Ok(())
}

fn cannot_be_handled(version: &str, kind: &str, expected: &str, why: &str) -> Status {
    Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {expected}: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::api::body::parse_json;
    use crate::api::kind;
    use crate::api::testing::any_json;

    fn decode_deployment(body: &str, validation: FieldValidation) -> Result<Decoded, Status> {
        let kind = kind::find("apps", "v1", "deployments").unwrap();
        decode_object(kind, parse_json(body.as_bytes()).unwrap(), validation)
    }

    #[test]
    fn strict_validation_names_unknown_and_duplicate_fields() {
        let body = r#"{"apiVersion":"apps/v1","kind":"Deployment",
            "spec":{"replicaz":1,"replicas":1,"replicas":2}}"#;
        let error = decode_deployment(body, FieldValidation::Strict).unwrap_err();
        assert_eq!(error.code(), 400);
        assert_eq!(
            error.message,
            "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding \
             error: unknown field \"spec.replicaz\", duplicate field \"spec.replicas\""
        );
        let warned = decode_deployment(body, FieldValidation::Warn).unwrap();
        assert_eq!(
            warned.warnings,
            ["unknown field \"spec.replicaz\"", "duplicate field \"spec.replicas\""]
        );
        assert_eq!(warned.object["spec"]["replicas"], 2);
        let ignored = decode_deployment(body, FieldValidation::Ignore).unwrap();
        assert!(ignored.warnings.is_empty());
        assert_eq!(ignored.object, warned.object);
    }

    #[test]
    fn other_kinds_versions_and_types_are_refused() {
        let cases = [
            (
                r#"{"apiVersion":"v1","kind":"Pod"}"#,
                "Pod in version \"v1\" cannot be handled as a Deployment: converting (v1.Pod) to \
                 (apps.Deployment): unknown conversion",
            ),
            (
                r#"{"apiVersion":"apps/v1beta1","kind":"Deployment"}"#,
                "the API version in the data (apps/v1beta1) does not match the expected API \
                 version (apps/v1)",
            ),
            (
                r#"{"apiVersion":"apps/v1","kind":"Foo"}"#,
                "Foo in version \"v1\" cannot be handled as a Deployment: no kind \"Foo\" is \
                 registered for version \"apps/v1\"",
            ),
            (
                r#"{"spec":{"replicas":"3"}}"#,
                "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot \
                 unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
        ];
        for (body, message) in cases {
            let error = decode_deployment(body, FieldValidation::Ignore).unwrap_err();
            assert_eq!((error.code(), error.message.as_str()), (400, message));
        }
    }

    #[test]
    fn delete_options_need_no_kind() {
        let options = Expected { group: "meta.k8s.io", version: "v1", kind: "DeleteOptions" };
        let body = br#"{"propagationPolicy":"Background","gracePeriodSeconds":0}"#;
        let decoded = decode(options, parse_json(body).unwrap(), FieldValidation::Strict).unwrap();
        let expected = json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0});
        assert_eq!(decoded.object, expected);
    }

    #[test]
    fn unreadable_bodies_are_summarised() {
        let kind = kind::find("", "v1", "pods").unwrap();
        let status = unreadable(Expected::of(kind), "unexpected end of JSON input", b"");
        assert!(status.message.ends_with("unexpected end of JSON input (<empty>)"));
        let status = unreadable(Expected::of(kind), "x", b"abc");
        assert!(status.message.ends_with("(616263)"));
    }

    proptest! {
        #[test]
        fn any_value_is_taken_without_panic(value in any_json()) {
            for kind in kind::ALL {
                let parsed = Parsed { value: value.clone(), duplicates: Vec::new() };
                let _ = decode_object(kind, parsed, FieldValidation::Warn);
            }
        }
    }
}
