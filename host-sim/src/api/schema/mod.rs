//! The types of the Kubernetes API as data: fields, types, merge keys, list types, protobuf numbers.
//!
//! `types.json` and `docs.json` are extracted from the upstream Go types by `extract.py`.
//! Everything that depends on the shape of objects is driven by this one table: decoding,
//! unknown fields, strategic merge patch, server-side apply, OpenAPI and protobuf bodies.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::kind::Kind;

mod docs;

pub use docs::description;

static SCHEMA: LazyLock<Schema> = LazyLock::new(load);

/// All types by name and by number.
struct Schema {
    types: Vec<ObjectType>,
    by_name: HashMap<&'static str, usize>,
}

/// A struct of the API.
#[derive(Debug)]
pub struct ObjectType {
    /// OpenAPI name, such as `io.k8s.api.core.v1.Pod`.
    pub name: &'static str,
    /// The fields as JSON sees them: inlined structs are flattened.
    pub fields: Vec<Field>,
    /// Structs that JSON inlines but protobuf nests: their number and type.
    pub inlined: Vec<(u32, TypeId)>,
    /// Whether server-side apply treats it as one value.
    pub atomic: bool,
    by_name: HashMap<&'static str, usize>,
}

/// The number of a type in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeId(usize);

/// A field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// JSON name.
    pub name: &'static str,
    /// What it holds.
    pub ty: Type,
    /// Protobuf field number; `None` for fields protobuf does not carry at this level.
    pub number: Option<u32>,
    /// Left out of JSON when it is Go's zero value (structs and pointers are never "empty").
    pub omit_empty: bool,
    /// Left out of JSON when it is zero, structs included.
    pub omit_zero: bool,
    /// Must be there.
    pub required: bool,
    /// A pointer in Go: unset differs from zero.
    pub pointer: bool,
    /// Strategic merge patch merges the list instead of replacing it.
    pub patch_merge: bool,
    /// Strategic merge patch drops keys that are not in `$retainKeys`.
    pub patch_retain_keys: bool,
    /// The key by which strategic merge patch tells list elements apart.
    pub patch_merge_key: Option<&'static str>,
    /// How server-side apply sees a list.
    pub list: ListType,
    /// Whether server-side apply treats the map or struct as one value.
    pub atomic: bool,
    /// The value an absent field stands for.
    pub default: Option<Value>,
    /// The values an enumeration can have; empty for anything else.
    pub enumeration: Vec<&'static str>,
    /// Inside an inlined struct: protobuf nests it there.
    pub inlined: bool,
}

/// How server-side apply sees a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// One value, owned as a whole.
    Atomic,
    /// Unique scalars, each owned by itself.
    Set,
    /// Elements told apart by these keys.
    Map(Vec<&'static str>),
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text.
    String,
    /// `true` or `false`.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A floating-point number.
    Float64,
    /// Bytes, base64 in JSON.
    Bytes,
    /// An RFC 3339 time with second precision.
    Time,
    /// An RFC 3339 time with microseconds.
    MicroTime,
    /// A duration as Go writes it (`1m30s`).
    Duration,
    /// A resource quantity (`100m`, `2Gi`).
    Quantity,
    /// A number or a string (a percentage, a port name).
    IntOrString,
    /// Any JSON, kept as it is.
    Raw,
    /// A list.
    List(Box<Type>),
    /// A map with string keys.
    Map(Box<Type>),
    /// A struct.
    Object(TypeId),
}

impl Kind {
    /// The type of this kind's objects.
    pub fn object_type(&self) -> Option<&'static ObjectType> {
        object_type(&model_name(self.group, self.version, self.kind))
    }
}

/// The OpenAPI name of a kind's type.
pub fn model_name(group: &str, version: &str, kind: &str) -> String {
    if group == "meta.k8s.io" {
        return format!("io.k8s.apimachinery.pkg.apis.meta.{version}.{kind}");
    }
    let package = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) };
    format!("io.k8s.api.{package}.{version}.{kind}")
}

/// The type with that OpenAPI name.
pub fn object_type(name: &str) -> Option<&'static ObjectType> {
    SCHEMA.by_name.get(name).and_then(|id| SCHEMA.types.get(*id))
}

/// All types.
pub fn all() -> impl Iterator<Item = &'static ObjectType> {
    SCHEMA.types.iter()
}

impl TypeId {
    /// The type with this number.
    pub fn get(self) -> Option<&'static ObjectType> {
        SCHEMA.types.get(self.0)
    }
}

impl ObjectType {
    /// The field with that JSON name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name).and_then(|i| self.fields.get(*i))
    }

    /// The name as Go error messages write it: `v1.PodSpec`.
    pub fn go_name(&self) -> String {
        let mut parts = self.name.rsplit('.');
        let (name, version) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        format!("{version}.{name}")
    }

    /// The name without its package: `PodSpec`.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

impl Type {
    /// The struct it holds, if it is one.
    pub fn object(&self) -> Option<&'static ObjectType> {
        match self {
            Self::Object(id) => id.get(),
            _ => None,
        }
    }

    /// What the elements of a list or the values of a map hold.
    pub fn element(&self) -> Option<&Type> {
        match self {
            Self::List(element) | Self::Map(element) => Some(element),
            _ => None,
        }
    }

    /// The type as Go error messages write it.
    pub fn go_name(&self) -> String {
        match self {
            Self::String => "string".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Int32 => "int32".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::Float64 => "float64".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Time => "v1.Time".to_owned(),
            Self::MicroTime => "v1.MicroTime".to_owned(),
            Self::Duration => "v1.Duration".to_owned(),
            Self::Quantity => "resource.Quantity".to_owned(),
            Self::IntOrString => "intstr.IntOrString".to_owned(),
            Self::Raw => "runtime.RawExtension".to_owned(),
            Self::List(element) => format!("[]{}", element.go_name()),
            Self::Map(element) => format!("map[string]{}", element.go_name()),
            Self::Object(id) => id.get().map(ObjectType::go_name).unwrap_or_default(),
        }
    }
}

/// A type as `types.json` writes it.
#[derive(Deserialize)]
struct RawType<'a> {
    #[serde(borrow)]
    fields: Vec<RawField<'a>>,
    #[serde(default)]
    atomic: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawField<'a> {
    n: &'a str,
    t: &'a str,
    p: Option<u32>,
    #[serde(default)]
    o: bool,
    #[serde(default)]
    z: bool,
    #[serde(default)]
    r: bool,
    #[serde(default)]
    ptr: bool,
    ps: Option<&'a str>,
    pk: Option<&'a str>,
    lt: Option<&'a str>,
    #[serde(default, borrow)]
    lk: Vec<&'a str>,
    #[serde(default)]
    at: bool,
    def: Option<Value>,
    #[serde(default, borrow)]
    en: Vec<&'a str>,
    #[serde(default)]
    inl: bool,
}

fn load() -> Schema {
    let raw: RawTypes = serde_json::from_str(include_str!("types.json")).unwrap_or_default();
    let by_name: HashMap<&'static str, usize> =
        raw.keys().enumerate().map(|(i, name)| (*name, i)).collect();
    let types = raw.iter().map(|(name, ty)| object(name, ty, &raw, &by_name)).collect();
    Schema { types, by_name }
}

type RawTypes = BTreeMap<&'static str, RawType<'static>>;

fn object(
    name: &'static str,
    ty: &RawType<'static>,
    raw: &RawTypes,
    by_name: &HashMap<&'static str, usize>,
) -> ObjectType {
    let mut fields = Vec::new();
    let mut inlined = Vec::new();
    for field in &ty.fields {
        if !field.inl {
            fields.push(plain_field(field, false, by_name));
            continue;
        }
        if let (Some(number), Some(id)) = (field.p, by_name.get(field.t)) {
            inlined.push((number, TypeId(*id)));
        }
        let inner = raw.get(field.t).map(|t| t.fields.as_slice()).unwrap_or_default();
        fields.extend(inner.iter().map(|f| plain_field(f, true, by_name)));
    }
    let index = fields.iter().enumerate().map(|(i, f)| (f.name, i)).collect();
    ObjectType { name, fields, inlined, atomic: ty.atomic, by_name: index }
}

fn plain_field(
    raw: &RawField<'static>,
    inlined: bool,
    by_name: &HashMap<&'static str, usize>,
) -> Field {
    let strategies = raw.ps.unwrap_or("");
    Field {
        name: raw.n,
        ty: parse_type(raw.t, by_name),
        number: raw.p,
        omit_empty: raw.o,
        omit_zero: raw.z,
        required: raw.r,
        pointer: raw.ptr,
        patch_merge: strategies.split(',').any(|s| s == "merge"),
        patch_retain_keys: strategies.split(',').any(|s| s == "retainKeys"),
        patch_merge_key: raw.pk,
        list: match raw.lt {
            Some("map") => ListType::Map(raw.lk.clone()),
            Some("set") => ListType::Set,
            _ => ListType::Atomic,
        },
        atomic: raw.at,
        default: raw.def.clone(),
        enumeration: raw.en.clone(),
        inlined,
    }
}

fn parse_type(text: &str, by_name: &HashMap<&'static str, usize>) -> Type {
    let inner = |text: &str| Box::new(parse_type(text, by_name));
    if let Some(element) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return Type::List(inner(element));
    }
    if let Some(element) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        return Type::Map(inner(element));
    }
    match text {
        "string" => Type::String,
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float64" => Type::Float64,
        "bytes" => Type::Bytes,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "duration" => Type::Duration,
        "quantity" => Type::Quantity,
        "intstr" => Type::IntOrString,
        name => by_name.get(name).map_or(Type::Raw, |id| Type::Object(TypeId(*id))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kind;

    #[test]
    fn every_served_kind_and_subresource_has_a_type() {
        for kind in kind::ALL {
            assert!(kind.object_type().is_some(), "{}", kind.qualified_kind());
            for sub in kind.subresources {
                let name = model_name(sub.group, sub.version, sub.kind);
                assert!(object_type(&name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn every_type_name_in_the_table_resolves() {
        let raw: RawTypes = serde_json::from_str(include_str!("types.json")).unwrap();
        for (name, ty) in &raw {
            for field in &ty.fields {
                let inner = field.t.trim_matches(['[', ']', '{', '}']);
                if inner.starts_with("io.k8s") {
                    assert!(raw.contains_key(inner), "{name}.{} is a {inner}", field.n);
                } else {
                    const KNOWN: [&str; 12] = [
                        "string",
                        "bool",
                        "int32",
                        "int64",
                        "float64",
                        "bytes",
                        "time",
                        "microtime",
                        "duration",
                        "quantity",
                        "intstr",
                        "raw",
                    ];
                    assert!(KNOWN.contains(&inner), "{name}.{} is a {inner}", field.n);
                }
            }
        }
    }

    #[test]
    fn no_field_is_newer_than_the_version_that_is_announced() {
        // 1.35 and 1.36 brought these.
        for (ty, field) in [
            ("PodSpec", "schedulingGroup"),
            ("PodStatus", "resources"),
            ("NodeStatus", "declaredFeatures"),
        ] {
            let found = object_type(&format!("io.k8s.api.core.v1.{ty}")).unwrap();
            assert!(found.field(field).is_none(), "{ty}.{field}");
        }
    }

    #[test]
    fn the_table_knows_merge_keys_and_list_types() {
        let pod_spec = object_type("io.k8s.api.core.v1.PodSpec").unwrap();
        let containers = pod_spec.field("containers").unwrap();
        assert!(containers.patch_merge && containers.patch_merge_key == Some("name"));
        assert_eq!(containers.list, ListType::Map(vec!["name"]));
        let container = containers.ty.element().and_then(Type::object).unwrap();
        let ports = container.field("ports").unwrap();
        assert_eq!(ports.patch_merge_key, Some("containerPort"));
        assert_eq!(ports.list, ListType::Map(vec!["containerPort", "protocol"]));
        let volume = object_type("io.k8s.api.core.v1.Volume").unwrap();
        assert!(volume.field("emptyDir").unwrap().inlined);
        assert_eq!(volume.inlined.len(), 1);
        assert!(pod_spec.field("volumes").unwrap().patch_retain_keys);
        let status = object_type("io.k8s.api.core.v1.ReplicationControllerStatus").unwrap();
        let conditions = status.field("conditions").unwrap();
        assert!(conditions.patch_merge && conditions.patch_merge_key == Some("type"));
        assert_eq!(conditions.list, ListType::Map(vec!["type"]));
    }
}
