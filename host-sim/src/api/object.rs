//! Reading and writing fields of JSON objects without ceremony. Absent and wrongly typed read as empty.

use serde_json::{Map, Value};

static NOTHING: Value = Value::Null;

/// The value at a path, or null.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().try_fold(value, |value, name| value.get(name)).unwrap_or(&NOTHING)
}

/// The text of a field, or "".
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

/// The number of a field.
pub fn int(value: &Value, name: &str) -> Option<i64> {
    value.get(name).and_then(Value::as_i64)
}

/// Whether a field is true.
pub fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// The elements of a list field.
pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The entries of a map field.
pub fn entries<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let map = value.get(name).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// The object's name.
pub fn name(object: &Value) -> &str {
    text(at(object, &["metadata"]), "name")
}

/// The fields of an object, made one if it is none.
pub(super) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // The line above made it an object.
        _ => unreachable!("an object was just put here"),
    }
}

/// The struct in a field, made if it is absent.
pub(super) fn child<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    fields(value).entry(name).or_insert(Value::Null)
}

/// The elements of a list field, to be changed.
pub(super) fn list_mut<'a>(value: &'a mut Value, name: &str) -> &'a mut [Value] {
    value.get_mut(name).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// Sets a field that is absent (or null).
pub(super) fn default(value: &mut Value, name: &str, default: impl Into<Value>) {
    let field = child(value, name);
    if field.is_null() {
        *field = default.into();
    }
}

/// Sets a field, or removes it if the value is null.
pub(super) fn set(value: &mut Value, name: &str, new: Value) {
    if new.is_null() {
        fields(value).remove(name);
    } else {
        fields(value).insert(name.to_owned(), new);
    }
}

/// Removes a field.
pub(super) fn remove(value: &mut Value, name: &str) {
    if let Value::Object(map) = value {
        map.remove(name);
    }
}
