//! Rules on numbers, percentages and quantities.

use serde_json::Value;

use crate::api::field::{FieldErrors, Path};
use crate::api::names;
use crate::api::object::int;

pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// A field that, if given, is not negative.
pub(super) fn not_negative(value: &Value, name: &str, at: &Path, errors: &mut FieldErrors) {
    if let Some(number) = int(value, name).filter(|n| *n < 0) {
        errors.invalid(&at.child(name), number, NOT_NEGATIVE);
    }
}

/// A field that, if given, is more than zero.
pub(super) fn positive(value: &Value, name: &str, at: &Path, errors: &mut FieldErrors) {
    if let Some(number) = int(value, name).filter(|n| *n <= 0) {
        errors.invalid(&at.child(name), number, "must be greater than 0");
    }
}

/// A number that is not negative, or a percentage.
pub(super) fn number_or_percent(value: &Value, at: &Path, errors: &mut FieldErrors) {
    match value {
        Value::String(text) => errors.invalid_all(at, text, &names::percent(text)),
        Value::Number(number) if number.as_i64().is_some_and(|n| n < 0) => {
            errors.invalid(at, value.clone(), NOT_NEGATIVE);
        }
        _ => {}
    }
}

/// A percentage of at most 100.
pub(super) fn at_most_all(value: &Value, at: &Path, errors: &mut FieldErrors) {
    if percent_of(value).is_some_and(|percent| percent > 100) {
        errors.invalid(at, value.clone(), "must not be greater than 100%");
    }
}

/// The number in `25%`.
pub(super) fn percent_of(value: &Value) -> Option<u64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

/// Whether a number or percentage is zero.
pub(super) fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0) || percent_of(value) == Some(0)
}

/// A field that is one of an enumeration; absent is fine.
pub(super) fn one_of(
    value: &Value,
    name: &str,
    supported: &[&str],
    at: &Path,
    errors: &mut FieldErrors,
) {
    if let Some(text) = value.get(name).and_then(Value::as_str)
        && !supported.contains(&text)
    {
        errors.not_supported(&at.child(name), text, supported);
    }
}
