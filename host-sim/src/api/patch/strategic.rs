//! Strategic merge patch: merging that knows which lists have keys.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::order::{Places, follows, identity, reorder};
use crate::api::schema::{Field, ObjectType, Type};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Why a patch cannot be applied.
#[derive(Debug, PartialEq)]
pub(super) enum PatchError {
    NotAnObject,
    Malformed(String),
}

fn malformed<T>(why: impl Into<String>) -> Result<T, PatchError> {
    Err(PatchError::Malformed(why.into()))
}

/// Applies a patch to an object of a type.
pub(super) fn apply(ty: &ObjectType, original: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else { return Err(PatchError::NotAnObject) };
    let original = original.as_object().cloned().unwrap_or_default();
    Ok(Value::Object(merge_map(Some(ty), original, patch)?))
}

/// What is known about the value of a field; nothing for unknown fields and inside plain maps.
#[derive(Clone, Copy)]
struct Known<'a> {
    field: Option<&'a Field>,
    ty: Option<&'a Type>,
}

fn known<'a>(ty: Option<&'a ObjectType>, name: &str) -> Known<'a> {
    let field = ty.and_then(|ty| ty.field(name));
    Known { field, ty: field.map(|f| &f.ty) }
}

impl<'a> Known<'a> {
    fn object(self) -> Option<&'static ObjectType> {
        self.ty.and_then(Type::object)
    }

    fn element(self) -> Option<&'static ObjectType> {
        self.ty.and_then(Type::element).and_then(Type::object)
    }

    fn merges_lists(self) -> bool {
        self.field.is_some_and(|f| f.patch_merge)
    }

    fn merge_key(self) -> Option<&'a str> {
        self.field.and_then(|f| f.patch_merge_key)
    }
}

fn merge_map(
    ty: Option<&ObjectType>,
    mut original: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) => match directive.as_str() {
            "replace" => return Ok(without_directives(patch)),
            "delete" => return Ok(Map::new()),
            "merge" => {}
            other => return malformed(format!("unknown patch type found: {other}")),
        },
        Some(other) => return malformed(format!("unknown patch type found: {other}")),
    }
    retain_keys(&mut original, patch)?;
    for (name, list) in patch {
        if let Some(field) = name.strip_prefix(DELETE_FROM) {
            delete_from(&mut original, field, list)?;
        }
    }
    for (name, order) in patch {
        if let Some(field) = name.strip_prefix(ORDER)
            && !patch.contains_key(field)
        {
            order_only(ty, &mut original, field, order)?;
        }
    }
    for (name, change) in patch {
        if is_directive(name) {
            continue;
        }
        if change.is_null() {
            original.remove(name);
            continue;
        }
        let order = patch.get(&format!("{ORDER}{name}"));
        let before = original.remove(name);
        let merged = merge_value(known(ty, name), before, change, order)?;
        original.insert(name.clone(), merged);
    }
    Ok(original)
}

fn merge_value(
    known: Known<'_>,
    before: Option<Value>,
    change: &Value,
    order: Option<&Value>,
) -> Result<Value, PatchError> {
    match (change, before) {
        (Value::Object(change), Some(Value::Object(before))) => {
            Ok(Value::Object(merge_map(known.object(), before, change)?))
        }
        // Into nothing: the same rules, so that directives and nulls do not end up in the object.
        (Value::Object(change), _) => {
            Ok(Value::Object(merge_map(known.object(), Map::new(), change)?))
        }
        (Value::Array(change), before) if known.merges_lists() => {
            let before = match before {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            };
            let merged = merge_list(known, before.clone(), change)?;
            let key = known.merge_key();
            let Some(order) = order else {
                return Ok(Value::Array(reorder(merged, change, &before, key)));
            };
            let wanted = order_list(order)?;
            let kept = change.iter().filter(|item| item.get(DIRECTIVE).is_none());
            if !wanted.is_empty() && !follows(kept, wanted, key) {
                return malformed(format!(
                    "the order in patch list {} doesn't match $setElementOrder list {order}",
                    Value::Array(change.clone())
                ));
            }
            Ok(Value::Array(reorder(merged, wanted, &before, key)))
        }
        (change, _) => Ok(change.clone()),
    }
}

/// What is in both lists, in any order.
fn merge_list(
    known: Known<'_>,
    mut original: Vec<Value>,
    patch: &[Value],
) -> Result<Vec<Value>, PatchError> {
    let Some(key) = known.merge_key() else {
        // Lists of scalars merge as sets.
        let mut places = Places::of(&original, None);
        for item in patch {
            if places.find(item).is_none() {
                places.add(item, original.len());
                original.push(item.clone());
            }
        }
        return Ok(original);
    };
    let mut replaces = false;
    let mut changes = Vec::new();
    let mut gone = HashSet::new();
    for item in patch {
        let Value::Object(change) = item else {
            return malformed(format!("list elements must be objects with a {key}: {item}"));
        };
        match change.get(DIRECTIVE).map(|d| d.as_str().unwrap_or("")) {
            None => changes.push((item, change)),
            Some("delete") => {
                let Some(value) = change.get(key) else {
                    return malformed("delete patch type with no merge key defined");
                };
                gone.insert(value.to_string());
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return malformed("merging lists cannot yet be specified in the patch");
            }
            Some(other) => return malformed(format!("unknown patch type found: {other}")),
        }
    }
    if replaces {
        let items = changes.into_iter().map(|(_, c)| Value::Object(without_directives(c)));
        return Ok(items.collect());
    }
    if !gone.is_empty() {
        original.retain(|item| !gone.contains(&identity(item, Some(key)).to_string()));
    }
    let mut places = Places::of(&original, Some(key));
    for (item, change) in changes {
        if !change.contains_key(key) {
            return malformed(format!("map: {item} does not contain declared merge key: {key}"));
        }
        let place = places.find(item);
        match place.and_then(|place| original.get_mut(place)) {
            Some(found) => {
                let before = match found.take() {
                    Value::Object(map) => map,
                    _ => Map::new(),
                };
                *found = Value::Object(merge_map(known.element(), before, change)?);
            }
            None => {
                let merged = merge_map(known.element(), Map::new(), change)?;
                places.add(item, original.len());
                original.push(Value::Object(merged));
            }
        }
    }
    Ok(original)
}

/// Keys of the original that the patch does not list go, so that one of several may be chosen anew.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(directive) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = directive else {
        return malformed("invalid retainKeys directive");
    };
    let listed = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let extra = patch.iter().find(|(name, v)| !is_directive(name) && !v.is_null() && !listed(name));
    if let Some((name, _)) = extra {
        return malformed(format!(
            "found a field {name} in the patch that is not in its $retainKeys list"
        ));
    }
    original.retain(|name, _| listed(name));
    Ok(())
}

fn delete_from(
    original: &mut Map<String, Value>,
    field: &str,
    unwanted: &Value,
) -> Result<(), PatchError> {
    let Value::Array(unwanted) = unwanted else {
        return malformed("invalid patch format of primitive list");
    };
    if let Some(Value::Array(items)) = original.get_mut(field) {
        let unwanted = Places::of(unwanted, None);
        items.retain(|item| unwanted.find(item).is_none());
    }
    Ok(())
}

fn order_only(
    ty: Option<&ObjectType>,
    original: &mut Map<String, Value>,
    field: &str,
    order: &Value,
) -> Result<(), PatchError> {
    let known = known(ty, field);
    let wanted = order_list(order)?;
    if let Some(Value::Array(items)) = original.get_mut(field)
        && known.merges_lists()
    {
        let before = items.clone();
        *items = reorder(before.clone(), wanted, &before, known.merge_key());
    }
    Ok(())
}

fn order_list(order: &Value) -> Result<&[Value], PatchError> {
    match order {
        Value::Array(items) => Ok(items),
        _ => malformed("invalid $setElementOrder list"),
    }
}

fn is_directive(name: &str) -> bool {
    name == DIRECTIVE
        || name == RETAIN_KEYS
        || name.starts_with(ORDER)
        || name.starts_with(DELETE_FROM)
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    let fields = patch.iter().filter(|(name, value)| !is_directive(name) && !value.is_null());
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}
