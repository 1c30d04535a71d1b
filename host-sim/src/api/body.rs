//! Request bodies: bytes to JSON values, with duplicate keys noted by path.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::status::MAX_BODY_BYTES;

/// How deep arrays and objects may be in each other: as deep as serde_json reads them. What is
/// deeper could be stored, but never read again.
pub const MAX_DEPTH: usize = 127;

/// A body that could be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// What it says; of duplicate keys the last one counts.
    pub value: Value,
    /// Paths of keys that came more than once, in the order found.
    pub duplicates: Vec<String>,
}

/// Reads JSON. The error is what is wrong with the text, for a message.
pub fn parse_json(body: &[u8]) -> Result<Parsed, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let noted = RefCell::new(Vec::new());
    let value = Node { path: &Segment::Root, noted: &noted }
        .deserialize(&mut deserializer)
        .map_err(|e| json_error(&e))?;
    deserializer.end().map_err(|e| json_error(&e))?;
    Ok(Parsed { value, duplicates: noted.into_inner() })
}

/// Reads YAML (of which JSON is a part), one document.
pub fn parse_yaml(body: &[u8]) -> Result<Parsed, String> {
    // What kubectl sends as YAML is JSON; that is read without the detour.
    if let Ok(parsed) = parse_json(body) {
        return Ok(parsed);
    }
    let text = std::str::from_utf8(body).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
    let value = serde_saphyr::from_str_with_options::<Value>(text, yaml_options())
        .map_err(|e| format!("error converting YAML to JSON: yaml: {e}"))?;
    Ok(Parsed { value, duplicates: Vec::new() })
}

/// How deep arrays and objects are in each other.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// What YAML may unfold to: an alias stands for all that its anchor has, so that a few lines could
/// otherwise make as much as memory holds.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_total_scalar_bytes: MAX_BODY_BYTES,
        },
    }
}

/// Go's words for the usual ways JSON is broken; others in serde's.
fn json_error(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() }
}

/// A path as a chain of stack frames: nothing is built unless a duplicate is found.
enum Segment<'a> {
    Root,
    Key(&'a Segment<'a>, &'a str),
    Index(&'a Segment<'a>, usize),
}

impl fmt::Display for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Node<'a> {
    path: &'a Segment<'a>,
    noted: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let path = Segment::Index(self.path, items.len());
            match access.next_element_seed(Node { path: &path, noted: self.noted })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = Segment::Key(self.path, &key);
            if map.contains_key(&key) {
                self.noted.borrow_mut().push(path.to_string());
            }
            let value = access.next_value_seed(Node { path: &path, noted: self.noted })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_keys_are_noted_by_path() {
        let body = br#"{"spec":{"replicas":1,"replicas":2,"c":[{"n":1},{"n":1,"n":2}]},"spec2":1}"#;
        let parsed = parse_json(body).unwrap();
        assert_eq!(parsed.duplicates, ["spec.replicas", "spec.c[1].n"]);
        assert_eq!(parsed.value["spec"]["replicas"], 2);
    }

    #[test]
    fn broken_json_is_an_error_with_a_place() {
        assert_eq!(parse_json(b"{\"a\":").unwrap_err(), "unexpected end of JSON input");
        assert!(parse_json(b"{\"a\" 1}").unwrap_err().contains("line 1 column"));
        assert!(parse_json(b"{} {}").is_err());
        assert!(parse_json(&b"[".repeat(100_000)).is_err());
        let nested = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
        let deepest = parse_json(nested(MAX_DEPTH).as_bytes()).unwrap().value;
        assert_eq!(depth(&deepest), MAX_DEPTH);
        assert!(parse_json(nested(MAX_DEPTH + 1).as_bytes()).is_err());
    }

    #[test]
    fn yaml_is_read_too() {
        let parsed = parse_yaml(b"a: 1\nb:\n  - x\n  - \"2\"\nc: {d: true}\n").unwrap();
        assert_eq!(parsed.value, json!({"a": 1, "b": ["x", "2"], "c": {"d": true}}));
        assert!(parse_yaml(b"a: [1\n").is_err());
        assert!(parse_yaml(&b"- ".repeat(MAX_DEPTH + 1)).is_err());
    }

    #[test]
    fn yaml_unfolds_to_no_more_than_a_body_may_have() {
        let text = |aliases: usize| {
            let anchor = format!("a: &a {}\n", "x".repeat(100_000));
            let aliases: String = (0..aliases).map(|i| format!("a{i}: *a\n")).collect();
            parse_yaml(format!("{anchor}{aliases}").as_bytes())
        };
        assert_eq!(text(20).unwrap().value["a19"], "x".repeat(100_000));
        assert!(text(40).is_err());
        let mut laughs = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..30 {
            laughs += &format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1);
        }
        assert!(parse_yaml(laughs.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_json(&bytes);
            let _ = parse_yaml(&bytes);
        }
    }
}
