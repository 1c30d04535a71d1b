//! What changed between two objects, as sets of fields.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::walk::{
    Shape, field_element, in_order, keyed, shape_of_field, shape_of_type, value_elements,
};
use crate::api::schema::{Field, ObjectType, Type};

/// The differences between two objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// What was added or modified.
    pub(super) written: FieldSet,
    /// What is no longer there.
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// The same without some fields.
    pub(super) fn without(mut self, fields: &FieldSet) -> Self {
        self.written.subtract(fields);
        self.removed.subtract(fields);
        self
    }

    fn attach(&mut self, element: String, diff: Diff) {
        let Diff { change, below: Comparison { written, removed } } = diff;
        let is_removed = change == Change::Removed;
        if is_removed || !removed.is_empty() {
            self.removed.attach(element.clone(), is_removed, removed);
        }
        let is_written = change == Change::Written;
        if is_written || !written.is_empty() {
            self.written.attach(element, is_written, written);
        }
    }
}

/// Compares two objects of a type.
pub(super) fn compare(ty: &ObjectType, old: &Value, new: &Value) -> Comparison {
    differ(Shape::Struct(ty), Some(old), Some(new)).map(|diff| diff.below).unwrap_or_default()
}

/// What became of a value itself.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    None,
    Written,
    Removed,
}

/// What became of a value and of what is below it.
struct Diff {
    change: Change,
    below: Comparison,
}

impl Diff {
    fn written(shape: Shape<'_>, value: &Value) -> Self {
        let written = everything(shape, value, Change::Written);
        let below = Comparison { written, ..Comparison::default() };
        Self { change: Change::Written, below }
    }

    fn removed(shape: Shape<'_>, value: &Value) -> Self {
        let removed = everything(shape, value, Change::Removed);
        let below = Comparison { removed, ..Comparison::default() };
        Self { change: Change::Removed, below }
    }
}

/// Compares two values; `None` if nothing differs.
fn differ(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Option<Diff> {
    match (old.filter(|v| !v.is_null()), new.filter(|v| !v.is_null())) {
        (None, None) => None,
        (None, Some(new)) => Some(Diff::written(shape, new)),
        (Some(old), None) => Some(Diff::removed(shape, old)),
        (Some(old), Some(new)) if old == new => None,
        (Some(old), Some(new)) => Some(compare_values(shape, old, new)),
    }
}

/// Compares two values that are there and not equal.
fn compare_values(shape: Shape<'_>, old: &Value, new: &Value) -> Diff {
    let mut below = Comparison::default();
    match (shape, old, new) {
        (Shape::Struct(ty), Value::Object(old), Value::Object(new)) => {
            for (name, old, new) in members(old, new) {
                let field = ty.field(name);
                let before = old.or(field.and_then(always_there));
                let shape = field.map_or(Shape::Leaf, shape_of_field);
                if let Some(diff) = differ(shape, before, new) {
                    below.attach(field_element(name), diff);
                }
            }
        }
        (Shape::Map(element), Value::Object(old), Value::Object(new)) => {
            for (name, old, new) in members(old, new) {
                if let Some(diff) = differ(shape_of_type(element), old, new) {
                    below.attach(field_element(name), diff);
                }
            }
        }
        (Shape::KeyedList(keys, ty), Value::Array(old), Value::Array(new)) => {
            let (Ok(before), Ok(after)) = (keyed(keys, ty, old), keyed(keys, ty, new)) else {
                // Without usable keys the list is one value.
                return Diff { change: Change::Written, below };
            };
            for (element, (before, after)) in pairs(before, after) {
                if let Some(diff) = differ(Shape::Struct(ty), before, after) {
                    below.attach(element, diff);
                }
            }
        }
        (Shape::Set, Value::Array(old), Value::Array(new)) => {
            for (element, (before, after)) in pairs(value_elements(old), value_elements(new)) {
                match (before, after) {
                    (Some(item), None) => below.attach(element, Diff::removed(Shape::Leaf, item)),
                    (None, Some(item)) => below.attach(element, Diff::written(Shape::Leaf, item)),
                    _ => {}
                }
            }
        }
        _ => return Diff { change: Change::Written, below },
    }
    Diff { change: Change::None, below }
}

/// All that is below a value that has come or gone.
fn everything(shape: Shape<'_>, value: &Value, change: Change) -> FieldSet {
    let mut set = FieldSet::default();
    match (shape, value) {
        (Shape::Struct(ty), Value::Object(map)) => {
            for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                let field = ty.field(name);
                let shape = field.map_or(Shape::Leaf, shape_of_field);
                let before = field.and_then(always_there);
                if change == Change::Written && before.is_some() {
                    if let Some(diff) = differ(shape, before, Some(value)) {
                        let member = diff.change == Change::Written;
                        set.attach(field_element(name), member, diff.below.written);
                    }
                } else {
                    set.attach(field_element(name), true, everything(shape, value, change));
                }
            }
        }
        (Shape::Map(element), Value::Object(map)) => {
            for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                let below = everything(shape_of_type(element), value, change);
                set.attach(field_element(name), true, below);
            }
        }
        (Shape::KeyedList(keys, ty), Value::Array(items)) => {
            for (element, item) in in_order(keyed(keys, ty, items).unwrap_or_default()) {
                set.attach(element, true, everything(Shape::Struct(ty), item, change));
            }
        }
        (Shape::Set, Value::Array(items)) => {
            for (element, _) in in_order(value_elements(items)) {
                set.attach(element, true, FieldSet::default());
            }
        }
        _ => {}
    }
    set
}

/// A list that is written even when it is empty was always there.
fn always_there(field: &Field) -> Option<&'static Value> {
    static EMPTY: Value = Value::Array(Vec::new());
    (matches!(field.ty, Type::List(_)) && !field.omit_empty).then_some(&EMPTY)
}

/// The elements of either list in order, with the values that each of them has.
fn pairs<'a>(
    old: Vec<(String, &'a Value)>,
    new: Vec<(String, &'a Value)>,
) -> BTreeMap<String, (Option<&'a Value>, Option<&'a Value>)> {
    let mut pairs = BTreeMap::new();
    for (element, item) in old {
        pairs.insert(element, (Some(item), None));
    }
    for (element, item) in new {
        pairs.entry(element).or_insert((None, None)).1 = Some(item);
    }
    pairs
}

/// The members of either object in order, with the values that each of them has.
fn members<'a>(
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        let (name, _) = before.or(after)?;
        Some((name.as_str(), before.map(|(_, value)| value), after.map(|(_, value)| value)))
    })
}
