//! Validation errors that name a field, rendered as Kubernetes renders them.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use super::status::Cause;

/// Where in an object a field is: `spec.containers[0].ports[1].containerPort`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// A path of one field.
    pub fn new(field: impl Into<String>) -> Self {
        Self(field.into())
    }

    /// The path of a field inside this one.
    pub fn child(&self, field: &str) -> Self {
        // Made for every field that is looked at: concatenation is cheaper than formatting.
        let dot = if self.0.is_empty() { "" } else { "." };
        Self([&self.0, dot, field].concat())
    }

    /// The path of a list element.
    pub fn index(&self, index: usize) -> Self {
        self.key(&index.to_string())
    }

    /// The path of a map entry.
    pub fn key(&self, key: &str) -> Self {
        Self([&self.0, "[", key, "]"].concat())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Path {
    fn from(path: &str) -> Self {
        Self(path.to_owned())
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nothing was found under the given value.
    NotFound,
    /// The field must be given.
    Required,
    /// The value must be unique.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is none of an enumeration.
    NotSupported,
    /// The field may not be given here.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The list has too many elements.
    TooMany,
    /// The value has another type than the field.
    TypeInvalid,
    /// The server failed.
    Internal,
}

impl Problem {
    /// The `reason` of the cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub problem: Problem,
    /// Where.
    pub field: String,
    /// The value that was given, if it is worth showing.
    pub value: Option<Value>,
    /// Why, in words.
    pub detail: String,
}

impl FieldError {
    /// The error without its path: what a cause says.
    pub fn body(&self) -> String {
        let mut text = self.problem.text().to_owned();
        let shown = !matches!(
            self.problem,
            Problem::Required | Problem::Forbidden | Problem::TooLong | Problem::Internal
        );
        if let (true, Some(value)) = (shown, &self.value) {
            text.push_str(": ");
            match value {
                Value::String(s) => text.push_str(&go_quote(s)),
                other => text.push_str(&other.to_string()),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }

    fn cause(&self) -> Cause {
        Cause {
            reason: self.problem.reason().to_owned(),
            message: self.body(),
            field: self.field.clone(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// All that is wrong with an object, in the order it was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// No errors yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many things are wrong.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The errors in the order found.
    pub fn iter(&self) -> impl Iterator<Item = &FieldError> {
        self.0.iter()
    }

    /// Adds an error.
    pub fn push(&mut self, problem: Problem, at: &Path, value: Option<Value>, detail: &str) {
        self.0.push(FieldError {
            problem,
            field: at.to_string(),
            value,
            detail: detail.to_owned(),
        });
    }

    /// The value is malformed.
    pub fn invalid(&mut self, at: &Path, value: impl Into<Value>, detail: &str) {
        self.push(Problem::Invalid, at, Some(value.into()), detail);
    }

    /// The value is malformed; it is shown as it stands, without quotes.
    pub(super) fn push_shown(&mut self, at: &Path, shown: &str, detail: &str) {
        let detail = format!("{shown}: {detail}");
        self.push(Problem::Invalid, at, None, &detail);
    }

    /// The field must be given.
    pub fn required(&mut self, at: &Path, detail: &str) {
        self.push(Problem::Required, at, None, detail);
    }

    /// The field may not be given.
    pub fn forbidden(&mut self, at: &Path, detail: &str) {
        self.push(Problem::Forbidden, at, None, detail);
    }

    /// The value must be unique and is not.
    pub fn duplicate(&mut self, at: &Path, value: impl Into<Value>) {
        self.push(Problem::Duplicate, at, Some(value.into()), "");
    }

    /// The value names something that is not there.
    pub fn not_found(&mut self, at: &Path, value: impl Into<Value>) {
        self.push(Problem::NotFound, at, Some(value.into()), "");
    }

    /// The value is none of `supported`.
    pub fn not_supported(&mut self, at: &Path, value: impl Into<Value>, supported: &[&str]) {
        let quoted: Vec<String> = supported.iter().map(|s| go_quote(s)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        self.push(Problem::NotSupported, at, Some(value.into()), &detail);
    }

    /// The text is longer than `limit` bytes.
    pub fn too_long(&mut self, at: &Path, limit: usize) {
        self.push(Problem::TooLong, at, None, &format!("may not be more than {limit} bytes"));
    }

    /// The list is longer than `limit`.
    pub fn too_many(&mut self, at: &Path, count: usize, limit: usize) {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {items}");
        self.push(Problem::TooMany, at, Some(count.into()), &detail);
    }

    /// Adds one error for each message about the same value.
    pub fn invalid_all(&mut self, at: &Path, value: &str, messages: &[String]) {
        for message in messages {
            self.invalid(at, value, message);
        }
    }

    /// Adds all errors of another list.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn causes(&self) -> Vec<Cause> {
        self.0.iter().map(FieldError::cause).collect()
    }

    /// One error alone, several as `[a, b]`; equal ones are said once.
    pub(super) fn message(&self) -> String {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        let mut known = HashSet::new();
        let said: Vec<&str> =
            texts.iter().map(String::as_str).filter(|text| known.insert(*text)).collect();
        match said.as_slice() {
            [one] => (*one).to_owned(),
            several => format!("[{}]", several.join(", ")),
        }
    }
}

/// A string in double quotes as Go's `%q` writes it.
pub(super) fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                quoted.push_str(&format!("\\x{:02x}", c as u32));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_render_as_upstream_writes_them() {
        let mut errors = FieldErrors::new();
        errors.invalid(&"spec.replicas".into(), -1, "must be greater than or equal to 0");
        errors.required(&Path::new("spec").child("containers"), "");
        errors.not_supported(&"spec.dnsPolicy".into(), "x", &["ClusterFirst", "Default"]);
        errors.forbidden(&"spec".into(), "no");
        errors.duplicate(&Path::new("spec").child("containers").index(1).child("name"), "a");
        errors.too_long(&"metadata.annotations".into(), 262_144);
        errors.invalid(
            &"spec.selector".into(),
            json!({"matchLabels": {"a": "b"}}),
            "field is immutable",
        );
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.containers: Required value",
                "spec.dnsPolicy: Unsupported value: \"x\": supported values: \"ClusterFirst\", \
                 \"Default\"",
                "spec: Forbidden: no",
                "spec.containers[1].name: Duplicate value: \"a\"",
                "metadata.annotations: Too long: may not be more than 262144 bytes",
                "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: field is immutable",
            ]
        );
    }

    #[test]
    fn equal_errors_are_said_once_but_stay_causes() {
        let mut errors = FieldErrors::new();
        errors.invalid(&"a".into(), "x", "bad");
        errors.invalid(&"a".into(), "x", "bad");
        assert_eq!(errors.message(), "a: Invalid value: \"x\": bad");
        assert_eq!(errors.causes().len(), 2);
    }
}
