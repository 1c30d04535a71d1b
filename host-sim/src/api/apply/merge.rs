//! Merging a configuration into an object, and removing fields from one.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::walk::{
    Shape, field_element, key_element, keyed, shape_of_field, shape_of_type, value_element,
};
use crate::api::schema::ObjectType;

/// The object with everything the configuration states.
pub(super) fn merge(ty: &ObjectType, live: &Value, config: &Value) -> Value {
    merge_value(Shape::Struct(ty), live, config)
}

fn merge_value(shape: Shape<'_>, live: &Value, config: &Value) -> Value {
    match (shape, live, config) {
        (Shape::Struct(ty), Value::Object(live), Value::Object(config)) => {
            let shape = |name: &str| ty.field(name).map_or(Shape::Leaf, shape_of_field);
            Value::Object(merge_maps(live, config, shape))
        }
        (Shape::Map(element), Value::Object(live), Value::Object(config)) => {
            Value::Object(merge_maps(live, config, |_| shape_of_type(element)))
        }
        (Shape::KeyedList(keys, ty), Value::Array(live), Value::Array(config)) => {
            let (Ok(mine), Ok(theirs)) = (keyed(keys, ty, live), keyed(keys, ty, config)) else {
                return Value::Array(config.clone());
            };
            let stated: HashMap<&str, &Value> =
                theirs.iter().map(|(element, item)| (element.as_str(), *item)).collect();
            let known: HashSet<&str> = mine.iter().map(|(element, _)| element.as_str()).collect();
            let mut merged = Vec::with_capacity(mine.len() + theirs.len());
            for (element, item) in &mine {
                merged.push(match stated.get(element.as_str()) {
                    Some(stated) => merge_value(Shape::Struct(ty), item, stated),
                    None => (*item).clone(),
                });
            }
            let new = theirs.iter().filter(|(element, _)| !known.contains(element.as_str()));
            merged.extend(new.map(|(_, item)| (*item).clone()));
            Value::Array(merged)
        }
        (Shape::Set, Value::Array(live), Value::Array(config)) => {
            let mut present: HashSet<&Value> = live.iter().collect();
            let new = config.iter().filter(|item| present.insert(item));
            Value::Array(live.iter().chain(new).cloned().collect())
        }
        (_, _, config) => config.clone(),
    }
}

fn merge_maps<'s>(
    live: &Map<String, Value>,
    config: &Map<String, Value>,
    shape: impl Fn(&str) -> Shape<'s>,
) -> Map<String, Value> {
    let mut merged = live.clone();
    for (name, stated) in config {
        let value = match live.get(name) {
            Some(value) => merge_value(shape(name), value, stated),
            None => stated.clone(),
        };
        merged.insert(name.clone(), value);
    }
    merged
}

/// Removes the members of a set from an object.
pub(super) fn remove(ty: &ObjectType, object: &mut Value, fields: &FieldSet) {
    remove_from(Shape::Struct(ty), object, fields);
}

fn remove_from(shape: Shape<'_>, value: &mut Value, fields: &FieldSet) {
    match (shape, value) {
        (Shape::Struct(ty), Value::Object(map)) => {
            let shape = |name: &str| ty.field(name).map_or(Shape::Leaf, shape_of_field);
            map.retain(|name, value| keeps(shape(name), &field_element(name), value, fields));
        }
        (Shape::Map(element), Value::Object(map)) => {
            let shape = shape_of_type(element);
            map.retain(|name, value| keeps(shape, &field_element(name), value, fields));
        }
        (Shape::KeyedList(keys, ty), Value::Array(items)) => {
            items.retain_mut(|item| match key_element(keys, ty, item) {
                Ok(element) => keeps(Shape::Struct(ty), &element, item, fields),
                Err(_) => true,
            });
        }
        (Shape::Set, Value::Array(items)) => {
            items.retain(|item| !fields.has(&value_element(item)));
        }
        _ => {}
    }
}

/// Removes below an element and says whether the element stays.
fn keeps(shape: Shape<'_>, element: &str, value: &mut Value, fields: &FieldSet) -> bool {
    if fields.has(element) {
        return false;
    }
    if let Some(below) = fields.below(element) {
        remove_from(shape, value, below);
    }
    true
}
