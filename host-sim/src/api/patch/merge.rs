//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// Merges a patch into a document: null removes, objects merge, all else replaces.
pub(super) fn apply(mut document: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    if !document.is_object() {
        document = Value::Object(Map::new());
    }
    if let Value::Object(fields) = &mut document {
        for (name, change) in changes {
            if change.is_null() {
                fields.remove(name);
            } else {
                let before = fields.remove(name).unwrap_or(Value::Null);
                fields.insert(name.clone(), apply(before, change));
            }
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn examples_of_the_rfc_hold() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (document, patch, result) in cases {
            assert_eq!(apply(document, &patch), result, "{patch}");
        }
    }
}
