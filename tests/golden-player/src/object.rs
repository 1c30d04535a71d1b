//! Questions about objects, asked of their JSON.

use std::cmp::Ordering;

use serde::Deserialize;
use serde_json::Value;

/// The value at a path such as `status.conditions[Progressing].reason`,
/// `metadata.annotations[a.b/c]` or `spec.containers[0].image`. Members of a list are named by
/// position, type or name. `null` counts as absent.
pub fn lookup<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut current = object;
    for part in parts(path) {
        current = match current {
            Value::Object(fields) => fields.get(part)?,
            Value::Array(members) => match part.parse::<usize>() {
                Ok(position) => members.get(position)?,
                Err(_) => members
                    .iter()
                    .find(|member| member["type"] == part || member["name"] == part)?,
            },
            _ => return None,
        };
    }
    (!current.is_null()).then_some(current)
}

/// How a value is held against a wanted one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum Comparison {
    /// There is a value.
    #[serde(rename = "exists")]
    Exists,
    /// There is none.
    #[serde(rename = "absent")]
    Absent,
    /// The same value.
    #[serde(rename = "==")]
    Equal,
    /// Another value.
    #[serde(rename = "!=")]
    NotEqual,
    /// At least.
    #[serde(rename = ">=")]
    AtLeast,
    /// At most.
    #[serde(rename = "<=")]
    AtMost,
    /// More than.
    #[serde(rename = ">")]
    MoreThan,
    /// Less than.
    #[serde(rename = "<")]
    LessThan,
    /// The wanted text or member is in the value.
    #[serde(rename = "contains")]
    Contains,
}

impl Comparison {
    /// Whether `value` is as wanted. An absent number is 0 and an absent flag is false, as the API
    /// leaves such fields out.
    pub fn holds(self, value: Option<&Value>, wanted: &Value) -> bool {
        let default = match wanted {
            Value::Number(number) if !number.is_f64() => Value::from(0),
            Value::Bool(_) => Value::Bool(false),
            _ => Value::Null,
        };
        let or_default = value.unwrap_or(&default);
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Equal => or_default == wanted,
            Self::NotEqual => or_default != wanted,
            Self::AtLeast => order(or_default, wanted).is_some_and(Ordering::is_ge),
            Self::AtMost => order(or_default, wanted).is_some_and(Ordering::is_le),
            Self::MoreThan => order(or_default, wanted).is_some_and(Ordering::is_gt),
            Self::LessThan => order(or_default, wanted).is_some_and(Ordering::is_lt),
            Self::Contains => match (or_default, wanted) {
                (Value::String(text), Value::String(part)) => text.contains(part),
                (Value::Array(members), wanted) => members.contains(wanted),
                (Value::Object(fields), Value::String(key)) => fields.contains_key(key),
                _ => false,
            },
        }
    }
}

/// The object's name; empty if it has none.
pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// A string, or the empty one for anything else.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A list's members; none for anything else.
pub fn members(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether the field is there and neither null, zero, false nor empty.
pub fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(members) => !members.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// The object's resourceVersion, where the server counts with numbers.
pub fn version(object: &Value) -> Option<u64> {
    text(&object["metadata"]["resourceVersion"]).parse().ok()
}

/// The owner reference that is marked as the controller.
pub fn controller(object: &Value) -> Option<&Value> {
    let owners = members(&object["metadata"]["ownerReferences"]);
    owners.iter().find(|owner| owner["controller"] == true)
}

/// Whether the pod has the Ready condition.
pub fn is_ready(pod: &Value) -> bool {
    let ready = members(&pod["status"]["conditions"]).iter().find(|c| c["type"] == "Ready");
    ready.is_some_and(|condition| condition["status"] == "True")
}

/// Whether the pod has run to its end.
pub fn is_finished(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Failed" | "Succeeded")
}

/// Whether the object is on its way out.
pub fn is_deleting(object: &Value) -> bool {
    is_set(&object["metadata"]["deletionTimestamp"])
}

/// What a ReplicaSet counts: neither finished nor on its way out.
pub fn is_active(pod: &Value) -> bool {
    !is_deleting(pod) && !is_finished(pod)
}

/// Applies a JSON merge patch (RFC 7386) in place.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Splits at dots outside brackets; what is in brackets is one part, dots included.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(['.', ']']);
        if rest.is_empty() {
            return None;
        }
        let (part, after) = match rest.strip_prefix('[') {
            Some(inside) => inside.split_at(inside.find(']').unwrap_or(inside.len())),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        rest = after;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_go_through_maps_lists_and_brackets() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "yes"}},
            "spec": {"containers": [{"name": "app", "image": "img:v1"}], "paused": null},
            "status": {"conditions": [{"type": "Progressing", "reason": "Created"}]},
        });
        let at = |path| lookup(&object, path).cloned();
        assert_eq!(at("metadata.annotations[a.b/c]"), Some("yes".into()));
        assert_eq!(at("spec.containers[0].image"), Some("img:v1".into()));
        assert_eq!(at("spec.containers[app].image"), Some("img:v1".into()));
        assert_eq!(at("status.conditions[Progressing].reason"), Some("Created".into()));
        assert_eq!(at("status.conditions[Available].reason"), None);
        assert_eq!(at("spec.containers[7].image"), None);
        assert_eq!(at("spec.paused"), None);
        assert_eq!(at("metadata.annotations.deeper.still"), None);
    }

    #[test]
    fn absent_numbers_are_zero_and_absent_flags_false() {
        assert!(Comparison::Equal.holds(None, &json!(0)));
        assert!(!Comparison::Equal.holds(None, &json!(1)));
        assert!(Comparison::AtMost.holds(None, &json!(3)));
        assert!(Comparison::Equal.holds(None, &json!(false)));
        assert!(!Comparison::Equal.holds(None, &json!("x")));
        assert!(Comparison::NotEqual.holds(None, &json!("x")));
    }

    #[test]
    fn comparisons_compare() {
        let three = json!(3);
        assert!(Comparison::AtLeast.holds(Some(&three), &json!(3)));
        assert!(!Comparison::MoreThan.holds(Some(&three), &json!(3)));
        assert!(Comparison::LessThan.holds(Some(&three), &json!(4)));
        assert!(!Comparison::LessThan.holds(Some(&json!("3")), &json!(4)));
        assert!(Comparison::Contains.holds(Some(&json!("exceeded quota")), &json!("quota")));
        assert!(Comparison::Contains.holds(Some(&json!(["a", "b"])), &json!("b")));
        assert!(Comparison::Exists.holds(Some(&three), &Value::Null));
        assert!(Comparison::Absent.holds(None, &Value::Null));
    }

    #[test]
    fn merging_replaces_lists_and_removes_nulls() {
        let mut object = json!({"a": {"b": 1, "c": [1, 2]}, "d": "x"});
        merge(&mut object, &json!({"a": {"b": null, "c": [3], "e": {"f": 4}}, "d": {"g": 5}}));
        assert_eq!(object, json!({"a": {"c": [3], "e": {"f": 4}}, "d": {"g": 5}}));
    }
}
