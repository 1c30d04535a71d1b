//! Makes a JSON value an object of its type, as Go's decoder and encoder would.
//!
//! Types are checked, unknown fields are dropped and noted, nulls and empty optional fields go, structs that
//! upstream always writes are filled in, times and quantities get their canonical form. Conforming twice
//! changes nothing more, and equal objects become equal values.

use std::fmt;

use serde_json::{Map, Value, json};

use super::body::{MAX_DEPTH, depth};
use super::quantity::{MALFORMED, Quantity};
use super::schema::{Field, ObjectType, Type};
use crate::time::Timestamp;

/// Conforms `value` in place. Returns the paths of unknown fields, or, in Go's words, why it cannot be done.
pub fn conform(ty: &ObjectType, value: &mut Value) -> Result<Vec<String>, String> {
    let mut walk = Walk { unknown: Vec::new(), error: None };
    match value {
        Value::Object(map) => walk.object(ty, map, &Place::Root),
        other => {
            let found = json_type(other);
            walk.fail(format!(
                "json: cannot unmarshal {found} into Go value of type {}",
                ty.go_name()
            ));
        }
    }
    match walk.error {
        Some(error) => Err(error),
        None => Ok(walk.unknown),
    }
}

/// The zero value of a type as Go writes it; `None` for types whose zero is not written.
pub(super) fn zero(ty: &Type) -> Option<Value> {
    zero_of(ty)
}

struct Walk {
    unknown: Vec<String>,
    error: Option<String>,
}

/// Where the walk is, as a chain of stack frames.
enum Place<'a> {
    Root,
    Field { parent: &'a Place<'a>, owner: &'static str, name: &'a str },
    Key { parent: &'a Place<'a>, key: &'a str },
    Index { parent: &'a Place<'a>, index: usize },
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field { parent: Self::Root, name: key, .. }
            | Self::Key { parent: Self::Root, key } => f.write_str(key),
            Self::Field { parent, name: key, .. } | Self::Key { parent, key } => {
                write!(f, "{parent}.{key}")
            }
            Self::Index { parent, index } => write!(f, "{parent}[{index}]"),
        }
    }
}

impl Place<'_> {
    /// The path as Go's JSON errors have it: without list positions and map keys.
    fn go_path(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field { parent, name, .. } => {
                let before = parent.go_path();
                if before.is_empty() { (*name).to_owned() } else { format!("{before}.{name}") }
            }
            Self::Key { parent, .. } | Self::Index { parent, .. } => parent.go_path(),
        }
    }

    /// How many values are around the one here.
    fn levels(&self) -> usize {
        match self {
            Self::Root => 0,
            Self::Field { parent, .. } | Self::Key { parent, .. } | Self::Index { parent, .. } => {
                1 + parent.levels()
            }
        }
    }

    fn owner(&self) -> &'static str {
        match self {
            Self::Root => "",
            Self::Field { owner, .. } => owner,
            Self::Key { parent, .. } | Self::Index { parent, .. } => parent.owner(),
        }
    }
}

impl Walk {
    fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    fn mismatch(&mut self, at: &Place<'_>, value: &Value, ty: &Type) {
        let found = match value {
            Value::Number(number) if matches!(ty, Type::Int32 | Type::Int64) => {
                format!("number {number}")
            }
            other => json_type(other).to_owned(),
        };
        self.fail(format!(
            "json: cannot unmarshal {found} into Go struct field {}.{} of type {}",
            at.owner(),
            at.go_path(),
            ty.go_name()
        ));
    }

    fn object(&mut self, ty: &ObjectType, map: &mut Map<String, Value>, at: &Place<'_>) {
        map.retain(|name, value| {
            let place = Place::Field { parent: at, owner: ty.short_name(), name };
            let Some(field) = ty.field(name) else {
                self.unknown.push(place.to_string());
                return false;
            };
            if value.is_null() {
                return false;
            }
            self.value(&field.ty, value, &place);
            !is_omitted(field, value)
        });
        for field in &ty.fields {
            if always_written(field)
                && !map.contains_key(field.name)
                && let Some(zero) = zero_of(&field.ty)
            {
                map.insert(field.name.to_owned(), zero);
            }
        }
    }

    fn value(&mut self, ty: &Type, value: &mut Value, at: &Place<'_>) {
        match (ty, &mut *value) {
            (Type::Raw, any) => {
                // It may come from protobuf, where JSON is read without what is around it.
                if at.levels() + depth(any) > MAX_DEPTH {
                    self.fail("exceeded max depth".to_owned());
                }
            }
            (Type::String | Type::Duration, Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Float64, Value::Number(_)) => {}
            (Type::Int32, Value::Number(n)) if n.as_i64().is_some_and(fits_i32) => {}
            (Type::Int64, Value::Number(n)) if n.as_i64().is_some() => {}
            (Type::IntOrString, Value::String(_)) => {}
            (Type::IntOrString, Value::Number(n)) if n.as_i64().is_some_and(fits_i32) => {}
            (Type::Bytes, Value::String(text)) => {
                if let Err(byte) = check_base64(text) {
                    self.fail(format!("illegal base64 data at input byte {byte}"));
                }
            }
            (Type::Time, Value::String(text)) => match Timestamp::parse(text) {
                Some(time) => *text = time.to_rfc3339(),
                None => self.fail(time_error(text, "2006-01-02T15:04:05Z07:00")),
            },
            (Type::MicroTime, Value::String(text)) => {
                if Timestamp::parse(text).is_none() {
                    self.fail(time_error(text, "2006-01-02T15:04:05.000000Z07:00"));
                }
            }
            (Type::Quantity, Value::String(text)) => {
                if Quantity::parse(text).is_none() {
                    self.fail(MALFORMED.to_owned());
                }
            }
            (Type::Quantity, Value::Number(number)) => {
                let text = number.to_string();
                if Quantity::parse(&text).is_none() {
                    self.fail(MALFORMED.to_owned());
                }
                *value = Value::String(text);
            }
            (Type::List(element), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let place = Place::Index { parent: at, index };
                    self.element(element, item, &place);
                }
            }
            (Type::Map(element), Value::Object(map)) => {
                for (key, item) in map.iter_mut() {
                    let place = Place::Key { parent: at, key };
                    self.element(element, item, &place);
                    if **element == Type::Quantity {
                        canonical_quantity(item);
                    }
                }
            }
            (Type::Object(id), Value::Object(map)) => {
                if let Some(ty) = id.get() {
                    self.object(ty, map, at);
                }
            }
            (ty, other) => {
                let found = other.clone();
                self.mismatch(at, &found, ty);
            }
        }
    }

    /// A null among elements is the zero value of its type.
    fn element(&mut self, ty: &Type, value: &mut Value, at: &Place<'_>) {
        if value.is_null() {
            *value = zero_of(ty).unwrap_or(Value::Null);
            if value.is_null() {
                return;
            }
        }
        self.value(ty, value, at);
    }
}

fn is_omitted(field: &Field, value: &Value) -> bool {
    if field.pointer || !(field.omit_empty || field.omit_zero) {
        return false;
    }
    match value {
        Value::String(text) => text.is_empty() && !matches!(field.ty, Type::Quantity),
        Value::Bool(on) => !on && field.ty == Type::Bool,
        Value::Number(number) => {
            number.as_i64() == Some(0) && matches!(field.ty, Type::Int32 | Type::Int64)
        }
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && matches!(field.ty, Type::Map(_)),
        Value::Null => true,
    }
}

/// Go leaves structs out only behind a pointer, and other fields only if they say so.
fn always_written(field: &Field) -> bool {
    if field.pointer || field.omit_zero {
        return false;
    }
    match field.ty {
        Type::Object(_) => true,
        Type::String | Type::Bool | Type::Int32 | Type::Int64 => {
            !field.omit_empty && !matches!(field.name, "apiVersion" | "kind")
        }
        _ => false,
    }
}

fn zero_of(ty: &Type) -> Option<Value> {
    match ty {
        Type::String => Some(json!("")),
        Type::Bool => Some(json!(false)),
        Type::Int32 | Type::Int64 => Some(json!(0)),
        Type::Object(id) => {
            let mut map = Map::new();
            for field in id.get()?.fields.iter().filter(|f| always_written(f)) {
                map.insert(field.name.to_owned(), zero_of(&field.ty)?);
            }
            Some(Value::Object(map))
        }
        _ => None,
    }
}

/// Values of resource lists are rounded up to thousandths and written canonically.
fn canonical_quantity(value: &mut Value) {
    if let Value::String(text) = value
        && let Some(quantity) = Quantity::parse(text)
    {
        *text = quantity.round_up_to_milli().to_string();
    }
}

fn fits_i32(number: i64) -> bool {
    i32::try_from(number).is_ok()
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn time_error(text: &str, layout: &str) -> String {
    format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{text}\" as \"2006\"")
}

/// Standard base64 with padding, line breaks allowed; the error is the offset of the first bad byte.
fn check_base64(text: &str) -> Result<(), usize> {
    let (mut seen, mut padding) = (0usize, 0usize);
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'\r' | b'\n' => {}
            b'=' if seen % 4 >= 2 && padding < 2 => {
                padding += 1;
                seen += 1;
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if padding == 0 => seen += 1,
            _ => return Err(offset),
        }
    }
    if seen.is_multiple_of(4) { Ok(()) } else { Err(text.len()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::kind;
    use crate::api::testing::any_json;

    fn conformed(resource: (&str, &str), mut value: Value) -> Result<(Value, Vec<String>), String> {
        let kind = kind::find(resource.0, "v1", resource.1).unwrap();
        let unknown = conform(kind.object_type().unwrap(), &mut value)?;
        Ok((value, unknown))
    }

    #[test]
    fn json_of_any_form_is_no_deeper_than_it_can_be_read_again() {
        let fields = |levels| (0..levels).fold(json!({}), |below, _| json!({"f:a": below}));
        let object = |levels| {
            let entry = json!({"fieldsV1": fields(levels)});
            conformed(("", "configmaps"), json!({"metadata": {"managedFields": [entry]}}))
        };
        let (deepest, _) = object(122).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&deepest.to_string()).unwrap(), deepest);
        assert_eq!(object(123), Err("exceeded max depth".to_owned()));
    }

    #[test]
    fn empty_optional_fields_go_and_structs_stay() {
        let (pod, unknown) = conformed(
            ("", "pods"),
            json!({"metadata": {"labels": {}, "creationTimestamp": null, "name": "a"},
                   "spec": {"hostNetwork": false, "nodeName": "",
                            "containers": [{"name": "a", "env": [], "securityContext": {},
                                            "stdin": false}],
                            "terminationGracePeriodSeconds": 0}}),
        )
        .unwrap();
        assert_eq!(
            pod,
            json!({"metadata": {"name": "a"},
                   "spec": {"containers": [{"name": "a", "resources": {}, "securityContext": {}}],
                            "terminationGracePeriodSeconds": 0},
                   "status": {}})
        );
        assert!(unknown.is_empty());
    }

    #[test]
    fn unknown_fields_are_dropped_and_named_by_path() {
        let (_, unknown) = conformed(
            ("apps", "deployments"),
            json!({"spec": {"replicaz": 1, "template": {"spec": {"containers": [{"imag": "x"}]}}},
                   "extra": 1}),
        )
        .unwrap();
        assert_eq!(unknown, ["extra", "spec.replicaz", "spec.template.spec.containers[0].imag"]);
    }

    #[test]
    fn wrong_types_are_refused_in_gos_words() {
        let cases = [
            (
                json!({"spec": {"replicas": "3"}}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas \
                 of type int32",
            ),
            (
                json!({"spec": {"replicas": 1.5}}),
                "json: cannot unmarshal number 1.5 into Go struct field \
                 DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": {}}}}}),
                "json: cannot unmarshal object into Go struct field \
                 PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"name": 1}]}}}}),
                "json: cannot unmarshal number into Go struct field \
                 Container.spec.template.spec.containers.name of type string",
            ),
            (
                json!({"metadata": {"labels": ["a"]}}),
                "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels \
                 of type map[string]string",
            ),
            (json!([]), "json: cannot unmarshal array into Go value of type v1.Deployment"),
        ];
        for (value, error) in cases {
            assert_eq!(conformed(("apps", "deployments"), value).unwrap_err(), error);
        }
    }

    #[test]
    fn resource_lists_are_canonical() {
        let limits = json!({"cpu": 1, "memory": "1024Mi", "x": "1000m"});
        let (pod, _) = conformed(
            ("", "pods"),
            json!({"spec": {"containers": [{"name": "a", "resources": {"limits": limits}}]}}),
        )
        .unwrap();
        assert_eq!(
            pod["spec"]["containers"][0]["resources"]["limits"],
            json!({"cpu": "1", "memory": "1Gi", "x": "1"})
        );
        let bad = json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "1x"}}}]}});
        assert_eq!(conformed(("", "pods"), bad).unwrap_err(), MALFORMED);
    }

    #[test]
    fn secrets_must_be_base64() {
        assert!(conformed(("", "secrets"), json!({"data": {"a": "aGk="}})).is_ok());
        for text in ["a", "aGk", "a*==", "=aaa"] {
            assert!(conformed(("", "secrets"), json!({"data": {"a": text}})).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn conforming_twice_changes_nothing(value in any_json()) {
            for kind in kind::ALL {
                let ty = kind.object_type().unwrap();
                let mut once = value.clone();
                if conform(ty, &mut once).is_ok() {
                    let mut twice = once.clone();
                    prop_assert_eq!(conform(ty, &mut twice), Ok(vec![]));
                    prop_assert_eq!(once, twice);
                }
            }
        }
    }
}
