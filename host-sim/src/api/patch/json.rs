//! JSON patch (RFC 6902).

use serde_json::Value;

use super::ledger::{Ledger, MAX_OPERATIONS};
use crate::api::status::{Reason, Status};

/// One step of a patch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operation {
    Add { path: Pointer, value: Value },
    Remove { path: Pointer },
    Replace { path: Pointer, value: Value },
    Move { from: Pointer, path: Pointer },
    Copy { from: Pointer, path: Pointer },
    Test { path: Pointer, value: Value },
}

/// Why a patch is none.
#[derive(Debug, PartialEq)]
pub(super) enum Malformed {
    TooMany(usize),
    Other(String),
}

/// The refusal of a patch with too many operations.
pub(super) fn too_many(count: usize) -> Status {
    Status {
        reason: Reason::RequestEntityTooLarge,
        message: format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is \
             {MAX_OPERATIONS}, got {count}"
        ),
        details: None,
        continue_token: None,
    }
}

impl Operation {
    /// Reads the list of operations.
    pub(super) fn list(patch: &Value) -> Result<Vec<Self>, Malformed> {
        let Value::Array(operations) = patch else {
            let why = "json: a JSON patch must be an array of operations";
            return Err(Malformed::Other(why.to_owned()));
        };
        if operations.len() > MAX_OPERATIONS {
            return Err(Malformed::TooMany(operations.len()));
        }
        operations.iter().map(|o| Self::read(o).map_err(Malformed::Other)).collect()
    }

    fn read(operation: &Value) -> Result<Self, String> {
        let member = |name: &str| {
            let text = operation.get(name).and_then(Value::as_str);
            text.ok_or_else(|| format!("an operation has no \"{name}\": {operation}"))
        };
        let pointer = |name: &str| Pointer::parse(member(name)?);
        let value = || {
            let value = operation.get("value").cloned();
            value.ok_or_else(|| format!("an operation has no \"value\": {operation}"))
        };
        let path = pointer("path")?;
        match member("op")? {
            "add" => Ok(Self::Add { path, value: value()? }),
            "remove" => Ok(Self::Remove { path }),
            "replace" => Ok(Self::Replace { path, value: value()? }),
            "move" => Ok(Self::Move { from: pointer("from")?, path }),
            "copy" => Ok(Self::Copy { from: pointer("from")?, path }),
            // A test without a value tests for absence or null.
            "test" => {
                let value = operation.get("value").cloned().unwrap_or(Value::Null);
                Ok(Self::Test { path, value })
            }
            other => Err(format!("unexpected kind of operation: \"{other}\"")),
        }
    }
}

/// Applies all operations, or none.
pub(super) fn apply(operations: &[Operation], mut document: Value) -> Result<Value, String> {
    let mut ledger = Ledger::default();
    for operation in operations {
        step(operation, &mut document, &mut ledger)?;
    }
    Ok(document)
}

fn step(operation: &Operation, document: &mut Value, ledger: &mut Ledger) -> Result<(), String> {
    match operation {
        Operation::Add { path, value } => {
            Ledger::nest(value, path.levels())?;
            add(document, path, value.clone(), "add", ledger)
        }
        Operation::Remove { path } => remove(document, path, "remove", ledger).map(|_| ()),
        Operation::Replace { path, value } => {
            Ledger::nest(value, path.levels())?;
            let place = path.find_mut(document);
            *place.ok_or_else(|| missing("replace", path))? = value.clone();
            Ok(())
        }
        Operation::Move { from, path } => {
            let value = remove(document, from, "move", ledger)?;
            ledger.relocate(&value, path.levels())?;
            add(document, path, value, "move", ledger)
        }
        Operation::Copy { from, path } => {
            let value = from.find(document).ok_or_else(|| missing("copy", from))?;
            ledger.copy(value, path.levels())?;
            let value = value.clone();
            add(document, path, value, "copy", ledger)
        }
        Operation::Test { path, value } => {
            let found = path.find(document).unwrap_or(&Value::Null);
            if found == value {
                Ok(())
            } else {
                Err(format!("testing value {path} failed: test failed"))
            }
        }
    }
}

fn add(
    document: &mut Value,
    path: &Pointer,
    value: Value,
    name: &str,
    ledger: &mut Ledger,
) -> Result<(), String> {
    let Some((last, parent)) = path.0.split_last() else {
        *document = value;
        return Ok(());
    };
    let place = Pointer::find_in_mut(parent, document).ok_or_else(|| missing(name, path))?;
    match place {
        Value::Object(map) => {
            map.insert(last.clone(), value);
            Ok(())
        }
        Value::Array(items) => {
            let index = if last == "-" { Some(items.len()) } else { index_of(last) };
            match index.filter(|i| *i <= items.len()) {
                Some(index) => {
                    ledger.shift(items.len() - index)?;
                    items.insert(index, value);
                    Ok(())
                }
                None => Err(format!(
                    "{name} operation does not apply: doc is missing path: \"{path}\": \
                     Unable to access invalid index: {last}: invalid index referenced"
                )),
            }
        }
        _ => Err(missing(name, path)),
    }
}

fn remove(
    document: &mut Value,
    path: &Pointer,
    name: &str,
    ledger: &mut Ledger,
) -> Result<Value, String> {
    let Some((last, parent)) = path.0.split_last() else {
        return Ok(std::mem::take(document));
    };
    let removed = match Pointer::find_in_mut(parent, document) {
        Some(Value::Object(map)) => map.remove(last),
        Some(Value::Array(items)) => match index_of(last).filter(|i| *i < items.len()) {
            Some(index) => {
                ledger.shift(items.len() - index)?;
                Some(items.remove(index))
            }
            None => None,
        },
        _ => None,
    };
    removed.ok_or_else(|| missing(name, path))
}

fn missing(operation: &str, path: &Pointer) -> String {
    format!("{operation} operation does not apply: doc is missing path: \"{path}\": missing value")
}

/// Array positions are plain decimal numbers without leading zeros.
fn index_of(text: &str) -> Option<usize> {
    let plain = text == "0" || !text.starts_with(['0', '+']);
    if plain { text.parse().ok() } else { None }
}

/// A JSON pointer (RFC 6901), unescaped.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let rest = text
            .strip_prefix('/')
            .ok_or_else(|| format!("a path must begin with \"/\": \"{text}\""))?;
        Ok(Self(rest.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// How many values are around the one it points at.
    fn levels(&self) -> usize {
        self.0.len()
    }

    fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(document, |value, name| match value {
            Value::Object(map) => map.get(name),
            Value::Array(items) => items.get(index_of(name)?),
            _ => None,
        })
    }

    fn find_mut<'a>(&self, document: &'a mut Value) -> Option<&'a mut Value> {
        Self::find_in_mut(&self.0, document)
    }

    fn find_in_mut<'a>(names: &[String], document: &'a mut Value) -> Option<&'a mut Value> {
        names.iter().try_fold(document, |value, name| match value {
            Value::Object(map) => map.get_mut(name),
            Value::Array(items) => items.get_mut(index_of(name)?),
            _ => None,
        })
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in &self.0 {
            write!(f, "/{}", part.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(document: Value, patch: Value) -> Result<Value, String> {
        let operations = Operation::list(&patch).map_err(|e| format!("{e:?}"))?;
        apply(&operations, document)
    }

    #[test]
    fn operations_do_what_the_rfc_says() {
        let cases = [
            (
                json!({"a": 1}),
                json!([{"op": "add", "path": "/b", "value": 2}]),
                json!({"a": 1, "b": 2}),
            ),
            (
                json!({"a": [1, 3]}),
                json!([{"op": "add", "path": "/a/1", "value": 2}]),
                json!({"a": [1, 2, 3]}),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/-", "value": 2}]),
                json!({"a": [1, 2]}),
            ),
            (json!({"a": 1, "b": 2}), json!([{"op": "remove", "path": "/b"}]), json!({"a": 1})),
            (json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/0"}]), json!({"a": [2]})),
            (
                json!({"a": 1}),
                json!([{"op": "replace", "path": "/a", "value": {"x": null}}]),
                json!({"a": {"x": null}}),
            ),
            (
                json!({"a": {"b": 1}}),
                json!([{"op": "move", "from": "/a/b", "path": "/c"}]),
                json!({"a": {}, "c": 1}),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "copy", "from": "/a", "path": "/b"}]),
                json!({"a": [1], "b": [1]}),
            ),
            (
                json!({"a/b": 1, "m~n": 2}),
                json!([{"op": "test", "path": "/a~1b", "value": 1}, {"op": "test", "path": "/m~0n",
                    "value": 2}]),
                json!({"a/b": 1, "m~n": 2}),
            ),
            (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": 5}]), json!(5)),
        ];
        for (document, patch, result) in cases {
            assert_eq!(run(document, patch.clone()), Ok(result), "{patch}");
        }
    }

    #[test]
    fn what_does_not_apply_says_where() {
        let cases = [
            (
                json!([{"op": "replace", "path": "/b", "value": 1}]),
                "replace operation does not apply: doc is missing path: \"/b\": missing value",
            ),
            (
                json!([{"op": "remove", "path": "/b/c"}]),
                "remove operation does not apply: doc is missing path: \"/b/c\": missing value",
            ),
            (
                json!([{"op": "test", "path": "/a", "value": 2}]),
                "testing value /a failed: test failed",
            ),
            (
                json!([{"op": "add", "path": "/l/5", "value": 2}]),
                "add operation does not apply: doc is missing path: \"/l/5\": Unable to access \
                 invalid index: 5: invalid index referenced",
            ),
        ];
        for (patch, error) in cases {
            assert_eq!(run(json!({"a": 1, "l": [1]}), patch), Err(error.to_owned()));
        }
    }

    #[test]
    fn copies_are_counted_as_upstream_counts_them() {
        // With its quotes, the text has a 64th of what may be copied.
        let text = "x".repeat((3 << 20) / 64 - 2);
        let copies =
            |count: usize| json!(vec![json!({"op": "copy", "from": "/a", "path": "/b"}); count]);
        assert!(run(json!({"a": text}), copies(64)).is_ok());
        let error = run(json!({"a": text}), copies(65)).unwrap_err();
        assert_eq!(
            error,
            "Unable to complete the copy, the accumulated size increase of copy is 3194880, \
             exceeding the limit 3145728"
        );
    }

    #[test]
    fn documents_stay_as_flat_as_they_can_be_read() {
        let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        let path = |levels: usize| "/a".repeat(levels);
        for (document, operation) in [
            (json!({}), json!({"op": "add", "path": "/b", "value": nested(125)})),
            (nested(63), json!({"op": "add", "path": path(63) + "/b", "value": nested(62)})),
            (nested(63), json!({"op": "replace", "path": path(63), "value": nested(63)})),
            (
                json!({"b": nested(62), "a": nested(62)}),
                json!({"op": "move", "from": "/b", "path": path(63) + "/b"}),
            ),
            (nested(63), json!({"op": "copy", "from": "/a", "path": path(63) + "/b"})),
        ] {
            let text = run(document, json!([operation])).unwrap().to_string();
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{operation}");
        }
        for (document, operation) in [
            (json!({}), json!({"op": "add", "path": "/b", "value": nested(126)})),
            (nested(63), json!({"op": "add", "path": path(63) + "/b", "value": nested(63)})),
            (nested(63), json!({"op": "replace", "path": path(63), "value": nested(64)})),
            (
                json!({"b": nested(63), "a": nested(62)}),
                json!({"op": "move", "from": "/b", "path": path(63) + "/b"}),
            ),
            (nested(64), json!({"op": "copy", "from": "/a", "path": path(64) + "/b"})),
        ] {
            let error = run(document, json!([operation])).unwrap_err();
            assert_eq!(error, "the document would be nested deeper than 127 levels");
        }
    }

    #[test]
    fn malformed_patches_are_refused_before_they_run() {
        for patch in [
            json!({}),
            json!([1]),
            json!([{"op": "add", "path": "/a"}]),
            json!([{"op": "jump", "path": "/a"}]),
            json!([{"op": "remove", "path": "a"}]),
            json!([{"op": "move", "path": "/a"}]),
        ] {
            assert!(Operation::list(&patch).is_err(), "{patch}");
        }
        let many = vec![json!({"op": "remove", "path": "/a"}); MAX_OPERATIONS + 1];
        assert_eq!(Operation::list(&json!(many)), Err(Malformed::TooMany(10_001)));
        assert_eq!(too_many(10_001).code(), 413);
    }
}
