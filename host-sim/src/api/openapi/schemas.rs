//! Schemas of types, for OpenAPI v3 and v2.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::api::kind::ALL;
use crate::api::schema::{self, Field, ListType, ObjectType, Type, description};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// In which version of OpenAPI schemas are written.
#[derive(Clone, Copy, PartialEq)]
enum Dialect {
    V2,
    V3,
}

/// The v3 schemas of all types that the kinds of a group and version reach.
pub(super) fn of_version(group: &str, version: &str) -> Map<String, Value> {
    let mut reached = BTreeSet::new();
    for kind in ALL.iter().filter(|k| k.group == group && k.version == version) {
        for name in [kind.kind, kind.list_kind] {
            reach(&schema::model_name(group, version, name), &mut reached);
        }
        for sub in kind.subresources {
            reach(&schema::model_name(sub.group, sub.version, sub.kind), &mut reached);
        }
    }
    for name in ["DeleteOptions", "Status"] {
        reach(&schema::model_name("meta.k8s.io", "v1", name), &mut reached);
    }
    let types = schema::all().filter(|ty| reached.contains(ty.name));
    write(types, Dialect::V3)
}

/// The v2 schemas of all types.
pub(super) fn all_v2() -> Map<String, Value> {
    write(schema::all(), Dialect::V2)
}

fn reach(name: &str, reached: &mut BTreeSet<&'static str>) {
    let Some(ty) = schema::object_type(name) else { return };
    if !reached.insert(ty.name) {
        return;
    }
    for field in &ty.fields {
        let mut inner = &field.ty;
        while let Some(element) = inner.element() {
            inner = element;
        }
        if let Some(object) = inner.object() {
            reach(object.name, reached);
        }
    }
}

fn write(types: impl Iterator<Item = &'static ObjectType>, dialect: Dialect) -> Map<String, Value> {
    let mut schemas: Map<String, Value> =
        types.map(|ty| (ty.name.to_owned(), object(ty, dialect))).collect();
    let number_or_text = match dialect {
        Dialect::V2 => json!({"type": "string", "format": "int-or-string"}),
        Dialect::V3 => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
    };
    let quantity = match dialect {
        Dialect::V2 => json!({"type": "string"}),
        Dialect::V3 => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
    };
    schemas.insert(INT_OR_STRING.to_owned(), number_or_text);
    schemas.insert(QUANTITY.to_owned(), quantity);
    schemas.insert(RAW.to_owned(), json!({"type": "object"}));
    schemas
}

fn object(ty: &ObjectType, dialect: Dialect) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in &ty.fields {
        properties.insert(field.name.to_owned(), property(ty, field, dialect));
        if field.required {
            required.push(field.name);
        }
    }
    required.sort_unstable();
    let mut body = json!({"type": "object", "description": description(ty.name, "")});
    if !properties.is_empty() {
        body["properties"] = Value::Object(properties);
    }
    if !required.is_empty() {
        body["required"] = json!(required);
    }
    let kinds = group_version_kinds(ty.name);
    if !kinds.is_empty() {
        body["x-kubernetes-group-version-kind"] = json!(kinds);
    }
    if ty.atomic {
        body["x-kubernetes-map-type"] = json!("atomic");
    }
    body
}

/// The kinds a type is: its own and, for kinds that are served, that of its list.
fn group_version_kinds(name: &str) -> Vec<Value> {
    let mut kinds = Vec::new();
    for kind in ALL {
        for own in [kind.kind, kind.list_kind] {
            if !own.is_empty() && schema::model_name(kind.group, kind.version, own) == name {
                kinds.push(gvk(kind.group, kind.version, own));
            }
        }
        for sub in kind.subresources {
            let entry = gvk(sub.group, sub.version, sub.kind);
            let own = schema::model_name(sub.group, sub.version, sub.kind) == name;
            if own && !kinds.contains(&entry) {
                kinds.push(entry);
            }
        }
    }
    kinds.dedup();
    kinds
}

pub(super) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn property(ty: &ObjectType, field: &Field, dialect: Dialect) -> Value {
    let mut body = value(&field.ty, dialect);
    let text = match field.name {
        // Inlined structs are described where they are declared.
        "apiVersion" | "kind" if field.inlined => {
            description("io.k8s.apimachinery.pkg.apis.meta.v1.TypeMeta", field.name)
        }
        name => description(ty.name, name),
    };
    let text = if text.is_empty() { inlined_description(ty, field.name) } else { text };
    if let Some(reference) = body.get("$ref").cloned()
        && dialect == Dialect::V3
    {
        // Beside a reference v3 ignores everything, so it is wrapped.
        body = json!({"allOf": [{"$ref": reference}]});
    }
    let mut put = |name: &str, value: Value| body[name] = value;
    if !text.is_empty() {
        put("description", json!(text));
    }
    if !field.enumeration.is_empty() {
        put("enum", json!(field.enumeration));
    }
    if let Some(default) = &field.default {
        put("default", default.clone());
    }
    if let Some(key) = field.patch_merge_key {
        put("x-kubernetes-patch-merge-key", json!(key));
    }
    let strategy = match (field.patch_merge, field.patch_retain_keys) {
        (true, true) => Some("merge,retainKeys"),
        (true, false) => Some("merge"),
        (false, true) => Some("retainKeys"),
        (false, false) => None,
    };
    if let Some(strategy) = strategy {
        put("x-kubernetes-patch-strategy", json!(strategy));
    }
    match (&field.ty, &field.list) {
        (Type::List(_), ListType::Map(keys)) => {
            put("x-kubernetes-list-type", json!("map"));
            put("x-kubernetes-list-map-keys", json!(keys));
        }
        (Type::List(_), ListType::Set) => put("x-kubernetes-list-type", json!("set")),
        (Type::List(_), ListType::Atomic) => put("x-kubernetes-list-type", json!("atomic")),
        _ => {}
    }
    if field.atomic {
        put("x-kubernetes-map-type", json!("atomic"));
    }
    body
}

fn inlined_description(ty: &ObjectType, field: &str) -> &'static str {
    let inlined = ty.inlined.iter().filter_map(|(_, id)| id.get());
    inlined.map(|inner| description(inner.name, field)).find(|d| !d.is_empty()).unwrap_or("")
}

fn value(ty: &Type, dialect: Dialect) -> Value {
    let reference = |name: &str| match dialect {
        Dialect::V2 => json!({"$ref": format!("#/definitions/{name}")}),
        Dialect::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
    };
    match ty {
        Type::String | Type::Duration => json!({"type": "string"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Int32 => json!({"type": "integer", "format": "int32"}),
        Type::Int64 => json!({"type": "integer", "format": "int64"}),
        Type::Float64 => json!({"type": "number", "format": "double"}),
        Type::Bytes => json!({"type": "string", "format": "byte"}),
        Type::Time | Type::MicroTime => json!({"type": "string", "format": "date-time"}),
        Type::Quantity => reference(QUANTITY),
        Type::IntOrString => reference(INT_OR_STRING),
        Type::Raw => reference(RAW),
        Type::List(element) => json!({"type": "array", "items": value(element, dialect)}),
        Type::Map(element) => {
            json!({"type": "object", "additionalProperties": value(element, dialect)})
        }
        Type::Object(id) => id.get().map_or(Value::Null, |ty| reference(ty.name)),
    }
}
