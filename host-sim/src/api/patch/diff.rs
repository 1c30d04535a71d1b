//! Making strategic merge patches: what turns one object into another.

use serde_json::{Map, Value, json};

use super::order::identity;
use crate::api::schema::{Field, ObjectType, Type};

/// The patch that makes `to` of `from`, in the form kubectl sends it: changed fields, null for
/// removed ones, lists with keys by element, with their order.
pub fn strategic_diff(ty: &ObjectType, from: &Value, to: &Value) -> Value {
    let empty = Map::new();
    let from = from.as_object().unwrap_or(&empty);
    let to = to.as_object().unwrap_or(&empty);
    Value::Object(diff_map(Some(ty), from, to))
}

fn diff_map(
    ty: Option<&ObjectType>,
    from: &Map<String, Value>,
    to: &Map<String, Value>,
) -> Map<String, Value> {
    let mut patch = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, after) in to {
        let field = ty.and_then(|ty| ty.field(name));
        let Some(before) = from.get(name) else {
            patch.insert(name.clone(), after.clone());
            continue;
        };
        if before == after {
            continue;
        }
        let nested = field.and_then(|f| f.ty.object());
        match (before, after, field) {
            (Value::Object(before), Value::Object(after), field) => {
                let mut change = diff_map(nested, before, after);
                if field.is_some_and(|f| f.patch_retain_keys) {
                    retain_keys(&mut change, after);
                }
                patch.insert(name.clone(), Value::Object(change));
            }
            (Value::Array(before), Value::Array(after), Some(field)) if field.patch_merge => {
                diff_list(field, before, after, &mut patch);
            }
            _ => {
                patch.insert(name.clone(), after.clone());
            }
        }
    }
    patch
}

fn diff_list(field: &Field, from: &[Value], to: &[Value], patch: &mut Map<String, Value>) {
    let name = field.name;
    let key = field.patch_merge_key;
    let find = |list: &[Value], item: &Value| {
        let own = identity(item, key).clone();
        list.iter().find(|other| *identity(other, key) == own).cloned()
    };
    let gone: Vec<&Value> = from.iter().filter(|item| find(to, item).is_none()).collect();
    let mut changes = Vec::new();
    let Some(merge_key) = key else {
        if !gone.is_empty() {
            patch.insert(format!("$deleteFromPrimitiveList/{name}"), json!(gone));
        }
        changes.extend(to.iter().filter(|item| find(from, item).is_none()).cloned());
        patch.insert(format!("$setElementOrder/{name}"), json!(to));
        if !changes.is_empty() {
            patch.insert(name.to_owned(), Value::Array(changes));
        }
        return;
    };
    let element = field.ty.element().and_then(Type::object);
    for item in gone {
        changes.push(json!({"$patch": "delete", merge_key: identity(item, key)}));
    }
    for item in to {
        let (Value::Object(after), found) = (item, find(from, item)) else { continue };
        match found {
            Some(Value::Object(before)) => {
                let mut change = diff_map(element, &before, after);
                if change.is_empty() {
                    continue;
                }
                if field.patch_retain_keys {
                    retain_keys(&mut change, after);
                }
                change.insert(merge_key.to_owned(), identity(item, key).clone());
                changes.push(Value::Object(change));
            }
            _ => changes.push(item.clone()),
        }
    }
    let order: Vec<Value> = to.iter().map(|i| json!({merge_key: identity(i, key)})).collect();
    patch.insert(format!("$setElementOrder/{name}"), Value::Array(order));
    if !changes.is_empty() {
        patch.insert(name.to_owned(), Value::Array(changes));
    }
}

fn retain_keys(change: &mut Map<String, Value>, after: &Map<String, Value>) {
    let keys: Vec<&String> = after.keys().collect();
    change.insert("$retainKeys".to_owned(), json!(keys));
}
