//! What changed between two objects, as sets of fields.

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
        if self.modified.is_empty() {
            return self.added.clone();
        }
        self.added.union(&self.modified)
    }

    /// The same without some fields.
    pub(super) fn without(mut self, fields: &FieldSet) -> Self {
        self.added.subtract(fields);
        self.modified.subtract(fields);
        self.removed.subtract(fields);
        self
    }

    fn attach(&mut self, element: String, diff: Diff) {
        let Diff { change, below } = diff;
        for (set, kind, children) in [
            (&mut self.added, Change::Added, below.added),
            (&mut self.modified, Change::Modified, below.modified),
            (&mut self.removed, Change::Removed, below.removed),
        ] {
            if change == kind || !children.is_empty() {
                set.attach(element.clone(), change == kind, children);
            }
        }
    }
}

/// Compares two objects of a type.
pub(super) fn compare(ty: &ObjectType, old: &Value, new: &Value) -> Comparison {
    visit(Shape::Struct(ty), Some(old), Some(new)).map(|diff| diff.below).unwrap_or_default()
}

/// What became of a value itself.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    None,
    Added,
    Modified,
    Removed,
}

/// What became of a value and of what is below it.
struct Diff {
    change: Change,
    below: Comparison,
}

/// Compares two values; `None` if nothing differs.
fn visit(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Option<Diff> {
    let (old, new) = (old.filter(|v| !v.is_null()), new.filter(|v| !v.is_null()));
    let change = match (old, new) {
        (None, None) => return None,
        (Some(old), Some(new)) if old == new => return None,
        (None, Some(_)) => Change::Added,
        (Some(_), None) => Change::Removed,
        (Some(_), Some(_)) => Change::None,
    };
    let mut below = Comparison::default();
    let mut step = |element: String, shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>| {
        if let Some(diff) = visit(shape, old, new) {
            below.attach(element, diff);
        }
    };
    let is_leaf = match shape {
        Shape::Struct(ty) if both_or_either(old, new, Value::is_object) => {
            for name in names(old, new) {
                let field = ty.field(name);
                let shape = field.map_or(Shape::Leaf, shape_of_field);
                // A list that is written even when empty was always there.
                let always = field.is_some_and(|f| matches!(f.ty, Type::List(_)) && !f.omit_empty);
                let nothing = Value::Array(Vec::new());
                let before = get(old, name).or(if always { Some(&nothing) } else { None });
                step(field_element(name), shape, before, get(new, name));
            }
            false
        }
        Shape::Map(element) if both_or_either(old, new, Value::is_object) => {
            for name in names(old, new) {
                let shape = shape_of_type(element);
                step(field_element(name), shape, get(old, name), get(new, name));
            }
            false
        }
        Shape::KeyedList(keys, ty) if both_or_either(old, new, Value::is_array) => {
            match (keyed(keys, ty, items(old)), keyed(keys, ty, items(new))) {
                (Ok(before), Ok(mut after)) => {
                    for (element, item) in before {
                        let same = after.iter().position(|(other, _)| *other == element);
                        let other = same.map(|i| after.swap_remove(i).1);
                        step(element, Shape::Struct(ty), Some(item), other);
                    }
                    for (element, item) in after {
                        step(element, Shape::Struct(ty), None, Some(item));
                    }
                    false
                }
                // Without usable keys the list is one value.
                _ => true,
            }
        }
        Shape::Set if both_or_either(old, new, Value::is_array) => {
            for item in items(old).iter().filter(|i| !items(new).contains(i)) {
                step(value_element(item), Shape::Leaf, Some(item), None);
            }
            for item in items(new).iter().filter(|i| !items(old).contains(i)) {
                step(value_element(item), Shape::Leaf, None, Some(item));
            }
            false
        }
        _ => true,
    };
    let modified = is_leaf && change == Change::None;
    Some(Diff { change: if modified { Change::Modified } else { change }, below })
}

fn both_or_either(old: Option<&Value>, new: Option<&Value>, is: fn(&Value) -> bool) -> bool {
    old.is_none_or(is) && new.is_none_or(is)
}

/// The names of either object: all of the new one, and those that only the old one has.
fn names<'a>(old: Option<&'a Value>, new: Option<&'a Value>) -> impl Iterator<Item = &'a str> {
    let of = |value: Option<&'a Value>| value.and_then(Value::as_object).into_iter().flatten();
    let gone = of(old).filter(move |(name, _)| get(new, name).is_none());
    of(new).chain(gone).map(|(name, _)| name.as_str())
}

fn get<'a>(value: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    value.and_then(|v| v.get(name))
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
