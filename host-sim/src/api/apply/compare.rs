//! What changed between two objects, as sets of fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fieldset::FieldSet;
use super::walk::{Shape, field_element, keyed, shape_of_field, shape_of_type, value_element};
use crate::api::schema::{ObjectType, Type};

/// The differences between two objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// What was added or modified.
    pub(super) fn written(&self) -> FieldSet {
        self.added.union(&self.modified)
    }

    /// The same without some fields.
    pub(super) fn without(&self, fields: &FieldSet) -> Self {
        Self {
            added: self.added.difference(fields),
            modified: self.modified.difference(fields),
            removed: self.removed.difference(fields),
        }
    }
}

/// Compares two objects of a type.
pub(super) fn compare(ty: &ObjectType, old: &Value, new: &Value) -> Comparison {
    let mut walk = Walk { found: Comparison::default(), path: Vec::new() };
    walk.visit(Shape::Struct(ty), Some(old), Some(new));
    walk.found
}

struct Walk {
    found: Comparison,
    path: Vec<String>,
}

impl Walk {
    fn visit(&mut self, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (old.filter(|v| !v.is_null()), new.filter(|v| !v.is_null()));
        match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) if old == new => return,
            (None, Some(_)) if !self.path.is_empty() => self.found.added.insert(&self.path),
            (Some(_), None) if !self.path.is_empty() => self.found.removed.insert(&self.path),
            _ => {}
        }
        match shape {
            Shape::Struct(ty) if both_or_either(old, new, Value::is_object) => {
                for name in names(old, new) {
                    let field = ty.field(name);
                    let shape = field.map_or(Shape::Leaf, shape_of_field);
                    // A list that is written even when empty was always there.
                    let always =
                        field.is_some_and(|f| matches!(f.ty, Type::List(_)) && !f.omit_empty);
                    let nothing = Value::Array(Vec::new());
                    let before = get(old, name).or(if always { Some(&nothing) } else { None });
                    self.step(field_element(name), shape, before, get(new, name));
                }
            }
            Shape::Map(element) if both_or_either(old, new, Value::is_object) => {
                for name in names(old, new) {
                    let shape = shape_of_type(element);
                    self.step(field_element(name), shape, get(old, name), get(new, name));
                }
            }
            Shape::KeyedList(keys, ty) if both_or_either(old, new, Value::is_array) => {
                let (Ok(before), Ok(after)) =
                    (keyed(keys, ty, items(old)), keyed(keys, ty, items(new)))
                else {
                    // Without usable keys the list is one value.
                    self.leaf(old, new);
                    return;
                };
                let elements: BTreeSet<&String> =
                    before.iter().chain(&after).map(|(element, _)| element).collect();
                for element in elements {
                    let find = |list: &[(String, &'_ Value)]| {
                        list.iter().position(|(other, _)| other == element)
                    };
                    let (a, b) = (find(&before), find(&after));
                    let a = a.and_then(|i| before.get(i)).map(|(_, v)| *v);
                    let b = b.and_then(|i| after.get(i)).map(|(_, v)| *v);
                    self.step(element.clone(), Shape::Struct(ty), a, b);
                }
            }
            Shape::Set if both_or_either(old, new, Value::is_array) => {
                for item in items(old) {
                    if !items(new).contains(item) {
                        self.step(value_element(item), Shape::Leaf, Some(item), None);
                    }
                }
                for item in items(new) {
                    if !items(old).contains(item) {
                        self.step(value_element(item), Shape::Leaf, None, Some(item));
                    }
                }
            }
            _ => self.leaf(old, new),
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if old.is_some() && new.is_some() {
            self.found.modified.insert(&self.path);
        }
    }

    fn step(
        &mut self,
        element: String,
        shape: Shape<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        self.path.push(element);
        self.visit(shape, old, new);
        self.path.pop();
    }
}

fn both_or_either(old: Option<&Value>, new: Option<&Value>, is: fn(&Value) -> bool) -> bool {
    old.is_none_or(is) && new.is_none_or(is)
}

fn names<'a>(old: Option<&'a Value>, new: Option<&'a Value>) -> BTreeSet<&'a str> {
    let of = |value: Option<&'a Value>| value.and_then(Value::as_object).into_iter().flatten();
    of(old).chain(of(new)).map(|(name, _)| name.as_str()).collect()
}

fn get<'a>(value: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    value.and_then(|v| v.get(name))
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
