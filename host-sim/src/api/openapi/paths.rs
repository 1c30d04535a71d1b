//! Paths and operations, as far as clients look at them.

use serde_json::{Map, Value, json};

use super::schemas::gvk;
use crate::api::kind::{ALL, Kind};
use crate::api::patch;
use crate::api::schema;

/// The query options of an operation that writes.
const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const LIST: &[&str] = &[
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
    "watch",
    "allowWatchBookmarks",
    "sendInitialEvents",
];

#[derive(Clone, Copy, PartialEq)]
enum Dialect {
    V2,
    V3,
}

/// The paths of a group and version.
pub(super) fn v3(group: &str, version: &str) -> Map<String, Value> {
    let kinds = ALL.iter().filter(|k| k.group == group && k.version == version);
    paths(kinds, Dialect::V3)
}

/// All paths.
pub(super) fn v2() -> Map<String, Value> {
    paths(ALL.iter(), Dialect::V2)
}

fn paths(kinds: impl Iterator<Item = &'static Kind>, dialect: Dialect) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in kinds {
        let root = if kind.group.is_empty() {
            format!("/api/{}", kind.version)
        } else {
            format!("/apis/{}/{}", kind.group, kind.version)
        };
        let plural = kind.plural;
        let collection = if kind.namespaced {
            format!("{root}/namespaces/{{namespace}}/{plural}")
        } else {
            format!("{root}/{plural}")
        };
        if kind.namespaced && kind.allows("list") {
            let operations = operations(kind, &["list"], dialect);
            paths.insert(format!("{root}/{plural}"), operations);
        }
        let verbs = ["list", "create", "deletecollection"];
        paths.insert(collection.clone(), operations(kind, &verbs, dialect));
        let verbs = ["get", "update", "patch", "delete"];
        let item = operations(kind, &verbs, dialect);
        if item.as_object().is_some_and(|o| !o.is_empty()) {
            paths.insert(format!("{collection}/{{name}}"), item);
        }
        for sub in kind.subresources {
            let mut body = Map::new();
            for verb in sub.verbs {
                let target = gvk(sub.group, sub.version, sub.kind);
                let model = schema::model_name(sub.group, sub.version, sub.kind);
                let operation = operation(verb, &target, &model, dialect);
                body.insert(method(verb).to_owned(), operation);
            }
            let path = format!("{collection}/{{name}}/{}", sub.name);
            paths.insert(path, Value::Object(body));
        }
    }
    paths
}

fn operations(kind: &Kind, verbs: &[&str], dialect: Dialect) -> Value {
    let mut body = Map::new();
    for verb in verbs.iter().filter(|verb| kind.allows(verb)) {
        let target = gvk(kind.group, kind.version, kind.kind);
        let name = if *verb == "list" { kind.list_kind } else { kind.kind };
        let model = schema::model_name(kind.group, kind.version, name);
        body.insert(method(verb).to_owned(), operation(verb, &target, &model, dialect));
    }
    Value::Object(body)
}

fn method(verb: &str) -> &'static str {
    match verb {
        "create" => "post",
        "update" => "put",
        "patch" => "patch",
        "delete" | "deletecollection" => "delete",
        _ => "get",
    }
}

fn operation(verb: &str, target: &Value, model: &str, dialect: Dialect) -> Value {
    let options: Vec<&str> = match verb {
        "create" | "update" => WRITE.to_vec(),
        "patch" => WRITE.iter().copied().chain(["force"]).collect(),
        "delete" => vec!["dryRun", "gracePeriodSeconds", "propagationPolicy"],
        "list" | "deletecollection" => LIST.to_vec(),
        _ => Vec::new(),
    };
    let parameters: Vec<Value> = options.iter().map(|name| parameter(name, dialect)).collect();
    let action = match verb {
        "create" => "post",
        "update" => "put",
        other => other,
    };
    let mut body = json!({
        "parameters": parameters,
        "responses": responses(model, dialect),
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": target,
    });
    let taken: &[&str] = match verb {
        "create" | "update" => &["application/json", "application/yaml"],
        "patch" => &patch::MEDIA_TYPES,
        _ => &[],
    };
    if !taken.is_empty() {
        put_body(&mut body, taken, model, dialect);
    }
    body
}

fn parameter(name: &str, dialect: Dialect) -> Value {
    let kind = match name {
        "force" | "watch" | "allowWatchBookmarks" | "sendInitialEvents" => "boolean",
        "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
        _ => "string",
    };
    match dialect {
        Dialect::V2 => json!({"name": name, "in": "query", "type": kind, "uniqueItems": true}),
        Dialect::V3 => json!({"name": name, "in": "query",
                              "schema": {"type": kind, "uniqueItems": true}}),
    }
}

fn responses(model: &str, dialect: Dialect) -> Value {
    match dialect {
        Dialect::V2 => {
            let schema = json!({"$ref": format!("#/definitions/{model}")});
            json!({"200": {"description": "OK", "schema": schema}})
        }
        Dialect::V3 => {
            let schema = json!({"$ref": format!("#/components/schemas/{model}")});
            let content = json!({"application/json": {"schema": schema}});
            json!({"200": {"description": "OK", "content": content}})
        }
    }
}

fn put_body(operation: &mut Value, taken: &[&str], model: &str, dialect: Dialect) {
    match dialect {
        Dialect::V2 => {
            operation["consumes"] = json!(taken);
            let schema = json!({"$ref": format!("#/definitions/{model}")});
            let body = json!({"name": "body", "in": "body", "required": true, "schema": schema});
            if let Some(parameters) = operation["parameters"].as_array_mut() {
                parameters.insert(0, body);
            }
        }
        Dialect::V3 => {
            let schema = json!({"$ref": format!("#/components/schemas/{model}")});
            let content: Map<String, Value> =
                taken.iter().map(|t| ((*t).to_owned(), json!({"schema": schema}))).collect();
            operation["requestBody"] = json!({"content": content, "required": true});
        }
    }
}
