//! One stored version of an object.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::time::Timestamp;

/// One version of one object: its JSON, serialised once, and the few parts of its metadata that
/// the server needs without parsing it again.
#[derive(Debug)]
pub struct Entry {
    /// `namespace/name`, or `name` for cluster-scoped kinds.
    pub key: Arc<str>,
    /// The resourceVersion of this version.
    pub revision: u64,
    /// The whole object, as it is sent to clients.
    pub json: Bytes,
    /// metadata.uid
    pub uid: Box<str>,
    /// metadata.labels, in key order.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// metadata.ownerReferences
    pub owners: Box<[OwnerReference]>,
    /// metadata.finalizers
    pub finalizers: Box<[Box<str>]>,
    /// metadata.deletionTimestamp
    pub deletion: Option<Timestamp>,
    fields: OnceLock<Value>,
}

/// A reference to an owner, as far as garbage collection needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerReference {
    /// apiVersion of the owner.
    pub api_version: Box<str>,
    /// kind of the owner.
    pub kind: Box<str>,
    /// name of the owner.
    pub name: Box<str>,
    /// uid of the owner.
    pub uid: Box<str>,
    /// Whether the owner's foreground deletion waits for this object.
    pub blocks_owner_deletion: bool,
}

impl Entry {
    /// Serialises `object`, which already carries `revision` as its resourceVersion.
    pub fn new(key: Arc<str>, revision: u64, object: &Value) -> Self {
        let json = serde_json::to_vec(object).unwrap_or_default();
        Self::from_parts(key, revision, Bytes::from(json.into_boxed_slice()), object)
    }

    /// An entry over JSON that was serialised before; `object` is the same JSON, parsed.
    pub fn from_parts(key: Arc<str>, revision: u64, json: Bytes, object: &Value) -> Self {
        let metadata = &object["metadata"];
        let text = |value: &Value, field: &str| boxed(value[field].as_str().unwrap_or_default());
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        Self {
            key,
            revision,
            json,
            uid: text(metadata, "uid"),
            labels: labels
                .map(|(name, value)| (boxed(name), boxed(value.as_str().unwrap_or_default())))
                .collect(),
            owners: owners
                .map(|owner| OwnerReference {
                    api_version: text(owner, "apiVersion"),
                    kind: text(owner, "kind"),
                    name: text(owner, "name"),
                    uid: text(owner, "uid"),
                    blocks_owner_deletion: owner["blockOwnerDeletion"] == true,
                })
                .collect(),
            finalizers: finalizers.filter_map(Value::as_str).map(boxed).collect(),
            deletion: metadata["deletionTimestamp"].as_str().and_then(Timestamp::parse),
            fields: OnceLock::new(),
        }
    }

    /// The namespace; empty for cluster-scoped kinds.
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&*self.key, |(_, name)| name)
    }

    /// The object, parsed from its JSON.
    pub fn parse(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
    }

    /// Whether the object has that finalizer.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| &**finalizer == name)
    }

    /// The object's scalar fields, two levels deep: what field selectors can ask for, kept from
    /// the first time somebody asks.
    pub fn fields(&self) -> &Value {
        self.fields.get_or_init(|| scalars(self.parse(), 3))
    }
}

fn scalars(value: Value, levels: usize) -> Value {
    match value {
        Value::Object(fields) if levels > 0 => fields
            .into_iter()
            .map(|(name, value)| (name, scalars(value, levels - 1)))
            .filter(|(_, value)| !value.is_null())
            .collect(),
        Value::Object(_) | Value::Array(_) => Value::Null,
        scalar => scalar,
    }
}

/// The key of an object: `namespace/name`, or the bare name where there is no namespace.
pub fn object_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

fn boxed(text: impl AsRef<str>) -> Box<str> {
    text.as_ref().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_what_the_server_needs() {
        let object = json!({"metadata": {
            "uid": "u", "labels": {"b": "2", "a": "1"}, "finalizers": ["x/y"],
            "deletionTimestamp": "2025-11-16T00:40:00Z",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o",
                 "blockOwnerDeletion": true}],
        }});
        let entry = Entry::new("ns/pod".into(), 5, &object);
        assert_eq!((entry.namespace(), entry.name()), ("ns", "pod"));
        assert_eq!((entry.label("a"), entry.label("c")), (Some("1"), None));
        assert!(entry.has_finalizer("x/y") && !entry.has_finalizer("x"));
        assert!(entry.owners[0].blocks_owner_deletion && entry.deletion.is_some());
        assert_eq!(entry.parse(), object);
    }

    #[test]
    fn fields_are_the_scalars_near_the_top() {
        let object = json!({
            "metadata": {"name": "p", "labels": {"a": "1"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c"}], "a": {"b": {"c": 1}}},
        });
        let expected = json!({
            "metadata": {"name": "p", "labels": {"a": "1"}},
            "spec": {"nodeName": "n", "a": {}},
        });
        assert_eq!(*Entry::new("ns/p".into(), 1, &object).fields(), expected);
    }

    #[test]
    fn cluster_scoped_keys_are_bare_names() {
        let entry = Entry::new(object_key("", "node-1").into(), 1, &json!({}));
        assert_eq!((entry.namespace(), entry.name()), ("", "node-1"));
    }
}
