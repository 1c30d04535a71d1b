//! Walking objects along their types: what server-side apply sees as one value, as a map, as a keyed list.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use crate::api::schema::{Field, ListType, ObjectType, Type};

/// How apply sees a value.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    /// One value.
    Leaf,
    /// A struct, field by field.
    Struct(&'a ObjectType),
    /// A map, key by key, with values of this type.
    Map(&'a Type),
    /// A list whose elements are told apart by keys.
    KeyedList(&'a [&'static str], &'a ObjectType),
    /// A list of unique scalars.
    Set,
}

/// The shape of a struct's field.
pub(super) fn shape_of_field(field: &Field) -> Shape<'_> {
    match (&field.ty, &field.list) {
        (Type::Object(_) | Type::Map(_), _) if field.atomic => Shape::Leaf,
        (Type::List(element), ListType::Map(keys)) => match element.object() {
            Some(ty) => Shape::KeyedList(keys, ty),
            None => Shape::Leaf,
        },
        (Type::List(_), ListType::Set) => Shape::Set,
        (ty, _) => shape_of_type(ty),
    }
}

/// The shape of an element of a map.
pub(super) fn shape_of_type(ty: &Type) -> Shape<'_> {
    match ty {
        Type::Object(id) => match id.get() {
            Some(ty) if !ty.atomic => Shape::Struct(ty),
            _ => Shape::Leaf,
        },
        Type::Map(element) => Shape::Map(element),
        _ => Shape::Leaf,
    }
}

/// The path element of a field or map key.
pub(super) fn field_element(name: &str) -> String {
    // Made for every field of every write: concatenation is cheaper than formatting.
    ["f:", name].concat()
}

/// The path element of a scalar in a set.
pub(super) fn value_element(value: &Value) -> String {
    format!("v:{value}")
}

/// The elements of a set by their path elements.
pub(super) fn value_elements(items: &[Value]) -> Vec<(String, &Value)> {
    items.iter().map(|item| (value_element(item), item)).collect()
}

/// Elements in the order in which a set of fields has them: one that gets them so is made without
/// shifting what it has.
pub(super) fn in_order(mut elements: Vec<(String, &Value)>) -> Vec<(String, &Value)> {
    elements.sort_by(|(a, _), (b, _)| a.cmp(b));
    elements
}

/// The path element of an element of a keyed list. An absent key stands for its default.
pub(super) fn key_element(keys: &[&str], ty: &ObjectType, item: &Value) -> Result<String, String> {
    let find = |key: &str| {
        let value = item.get(key).filter(|v| !v.is_null());
        let found = value.or_else(|| ty.field(key).and_then(|f| f.default.as_ref()));
        found.ok_or_else(|| {
            format!(
                "associative list with keys has an element that omits key field \"{key}\" (and \
                 doesn't have default value)"
            )
        })
    };
    // Most lists have one key with a plain name for value.
    if let [key] = keys
        && let Value::String(text) = find(key)?
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/'))
    {
        return Ok(["k:{\"", key, "\":\"", text, "\"}"].concat());
    }
    let mut found = Map::new();
    for key in keys {
        found.insert((*key).to_owned(), find(key)?.clone());
    }
    Ok(format!("k:{}", Value::Object(found)))
}

/// The elements of a keyed list by their path elements; fails on missing and on duplicate keys.
pub(super) fn keyed<'a>(
    keys: &[&str],
    ty: &ObjectType,
    items: &'a [Value],
) -> Result<Vec<(String, &'a Value)>, String> {
    let mut found: Vec<(String, &Value)> = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let element = key_element(keys, ty, item).map_err(|why| format!("element {i}: {why}"))?;
        found.push((element, item));
    }
    let mut known = HashSet::with_capacity(found.len());
    if let Some((twice, _)) = found.iter().find(|(element, _)| !known.insert(element.as_str())) {
        let key = twice.strip_prefix("k:").unwrap_or(twice);
        return Err(format!("duplicate entries for key {key}"));
    }
    Ok(found)
}

/// The fields that a configuration states.
pub(super) fn field_set(ty: &ObjectType, config: &Value) -> Result<FieldSet, String> {
    let mut set = FieldSet::default();
    let mut path = Vec::new();
    collect(Shape::Struct(ty), config, &mut path, &mut set)?;
    Ok(set)
}

fn collect(
    shape: Shape<'_>,
    value: &Value,
    path: &mut Vec<String>,
    set: &mut FieldSet,
) -> Result<(), String> {
    let empty = match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if empty {
        set.insert(path);
        return Ok(());
    }
    match (shape, value) {
        (Shape::Struct(ty), Value::Object(map)) => {
            for (name, value) in map {
                let shape = ty.field(name).map_or(Shape::Leaf, shape_of_field);
                descend(field_element(name), shape, value, path, set)?;
            }
        }
        (Shape::Map(element), Value::Object(map)) => {
            for (name, value) in map {
                path.push(field_element(name));
                set.insert(path);
                path.pop();
                descend(field_element(name), shape_of_type(element), value, path, set)?;
            }
        }
        (Shape::KeyedList(keys, ty), Value::Array(items)) => {
            for (element, item) in in_order(keyed(keys, ty, items)?) {
                path.push(element.clone());
                set.insert(path);
                path.pop();
                descend(element, Shape::Struct(ty), item, path, set)?;
            }
        }
        (Shape::Set, Value::Array(items)) => {
            for (element, item) in in_order(value_elements(items)) {
                descend(element, Shape::Leaf, item, path, set)?;
            }
        }
        _ => set.insert(path),
    }
    Ok(())
}

fn descend(
    element: String,
    shape: Shape<'_>,
    value: &Value,
    path: &mut Vec<String>,
    set: &mut FieldSet,
) -> Result<(), String> {
    path.push(element);
    let result = collect(shape, value, path, set);
    path.pop();
    result
}
