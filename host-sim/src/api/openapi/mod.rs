//! OpenAPI v2 and v3 documents, made from the type table.
//!
//! `kubectl explain` reads the schemas and their descriptions; apply, create and replace look whether an
//! operation takes `fieldValidation` and `dryRun`. The documents are made once, when first asked for.

mod paths;
mod schemas;
mod v2_protobuf;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::discovery;

/// The content type of the v2 document in protobuf, which client-side validation insists on.
/// Clients ask for it with `@v1.0+protobuf` or `.v1.0+protobuf` after it; the first is no media
/// type that Go could read in an answer.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2";

/// A document and a tag that changes with it.
#[derive(Debug)]
pub struct Document {
    /// The document as JSON text.
    pub json: String,
    /// A tag for `ETag` and for the hash in v3 addresses.
    pub tag: String,
}

static V3: LazyLock<BTreeMap<String, Document>> = LazyLock::new(|| {
    let groups = std::iter::once("").chain(discovery::group_names());
    let versions = groups.flat_map(|g| discovery::versions(g).into_iter().map(move |v| (g, v)));
    versions.map(|(group, version)| (address(group, version), make_v3(group, version))).collect()
});

static V3_INDEX: LazyLock<Document> = LazyLock::new(|| {
    let entry = |(path, document): (&String, &Document)| {
        let url = format!("/openapi/v3/{path}?hash={}", document.tag);
        (path.clone(), json!({"serverRelativeURL": url}))
    };
    let paths: Map<String, Value> = V3.iter().map(entry).collect();
    document(&json!({"paths": paths}))
});

static V2: LazyLock<Document> = LazyLock::new(|| document(&make_v2()));

static V2_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| v2_protobuf::encode(&make_v2()));

/// `/openapi/v3`: where the documents are.
pub fn v3_index() -> &'static Document {
    &V3_INDEX
}

/// `/openapi/v3/<path>`, with `api/v1` or `apis/<group>/<version>` for the path.
pub fn v3(path: &str) -> Option<&'static Document> {
    V3.get(path)
}

/// `/openapi/v2` as JSON.
pub fn v2() -> &'static Document {
    &V2
}

/// `/openapi/v2` as protobuf ([`V2_PROTOBUF`]).
pub fn v2_protobuf() -> &'static [u8] {
    &V2_BYTES
}

fn address(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn make_v3(group: &str, version: &str) -> Document {
    document(&json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths::v3(group, version),
        "components": {"schemas": schemas::of_version(group, version)},
    }))
}

fn make_v2() -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths::v2(),
        "definitions": schemas::all_v2(),
    })
}

fn document(value: &Value) -> Document {
    let json = value.to_string();
    let tag = format!("{:016X}", fnv1a(json.as_bytes()));
    Document { json, tag }
}

/// FNV-1a: enough to tell versions of a document apart.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kind;

    fn parsed(document: &Document) -> Value {
        serde_json::from_str(&document.json).unwrap()
    }

    #[test]
    fn every_group_version_has_a_document_with_its_kinds() {
        let index = parsed(v3_index());
        for kind in kind::ALL {
            let path = address(kind.group, kind.version);
            let url = index["paths"][&path]["serverRelativeURL"].as_str().unwrap();
            assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")));
            let document = parsed(v3(&path).unwrap());
            let gvk = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
            let schemas = document["components"]["schemas"].as_object().unwrap();
            let has = |s: &Value| {
                let list = s["x-kubernetes-group-version-kind"].as_array();
                list.is_some_and(|l| l.contains(&gvk))
            };
            assert!(schemas.values().any(has), "{}", kind.qualified_kind());
        }
    }

    #[test]
    fn every_reference_resolves() {
        fn check(value: &Value, prefix: &str, known: &Map<String, Value>) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(reference)) = map.get("$ref") {
                        let name = reference.strip_prefix(prefix).unwrap();
                        assert!(known.contains_key(name), "{reference}");
                    }
                    map.values().for_each(|v| check(v, prefix, known));
                }
                Value::Array(items) => items.iter().for_each(|v| check(v, prefix, known)),
                _ => {}
            }
        }
        for document in V3.values() {
            let value = parsed(document);
            let schemas = value["components"]["schemas"].as_object().unwrap();
            check(&value, "#/components/schemas/", schemas);
        }
        let value = parsed(v2());
        check(&value, "#/definitions/", value["definitions"].as_object().unwrap());
    }

    #[test]
    fn patches_take_what_kubectl_looks_for() {
        let apps = parsed(v3("apis/apps/v1").unwrap());
        let patch =
            &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
        let names: Vec<&str> = patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|p| p["name"].as_str())
            .collect();
        for wanted in ["fieldValidation", "dryRun", "fieldManager", "force"] {
            assert!(names.contains(&wanted), "{wanted}");
        }
    }

    #[test]
    fn fields_are_explained() {
        let apps = parsed(v3("apis/apps/v1").unwrap());
        let spec = &apps["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"];
        let replicas = &spec["properties"]["replicas"];
        assert_eq!((&replicas["type"], &replicas["format"]), (&json!("integer"), &json!("int32")));
        assert!(replicas["description"].as_str().unwrap().starts_with("Number of desired pods"));
        assert_eq!(spec["required"], json!(["selector", "template"]));
        let containers = &apps["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
            ["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    }

    #[test]
    fn a_replication_controller_is_explained_in_both_versions() {
        const SPEC: &str = "io.k8s.api.core.v1.ReplicationControllerSpec";
        let core = parsed(v3("api/v1").unwrap());
        let path = "/api/v1/namespaces/{namespace}/replicationcontrollers/{name}";
        for below in ["", "/scale", "/status"] {
            assert!(core["paths"][format!("{path}{below}")]["patch"].is_object(), "{below}");
        }
        for schemas in [&core["components"]["schemas"], &parsed(v2())["definitions"]] {
            let fields = &schemas[SPEC]["properties"];
            let replicas = fields["replicas"]["description"].as_str().unwrap();
            assert!(replicas.starts_with("Replicas is the number of desired replicas."));
            let template = fields["template"]["description"].as_str().unwrap();
            assert!(template.starts_with("Template is the object that describes the pod"));
            let selector = &fields["selector"];
            assert_eq!(selector["additionalProperties"], json!({"type": "string"}));
            assert_eq!(selector["x-kubernetes-map-type"], "atomic");
        }
    }
}
