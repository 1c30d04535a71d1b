//! The descriptions of types and fields, for OpenAPI and `kubectl explain`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

type Docs = HashMap<&'static str, HashMap<&'static str, Doc>>;

#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Doc(#[serde(borrow)] Cow<'static, str>);

static DOCS: LazyLock<Docs> =
    LazyLock::new(|| serde_json::from_str(include_str!("docs.json")).unwrap_or_default());

/// What a type is for, or, with a field name, what the field is for.
pub fn description(type_name: &str, field: &str) -> &'static str {
    DOCS.get(type_name).and_then(|fields| fields.get(field)).map_or("", |doc| &doc.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_fields_are_described() {
        let replicas = description("io.k8s.api.apps.v1.DeploymentSpec", "replicas");
        assert!(replicas.starts_with("Number of desired pods."), "{replicas}");
        assert!(!description("io.k8s.api.core.v1.Pod", "").is_empty());
        assert_eq!(description("io.k8s.api.core.v1.Pod", "nope"), "");
    }

    #[test]
    fn no_description_tells_of_a_removed_field() {
        for (name, fields) in DOCS.iter() {
            for (field, doc) in fields {
                assert!(!doc.0.contains("`json:"), "{name}.{field}: {}", doc.0);
            }
        }
    }
}
