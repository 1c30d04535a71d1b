//! Takes out of texts what differs from run to run: generated names, hashes, uids, the namespace.

use anyhow::Result;
use regex::{Captures, Regex};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::alias::Aliases;

/// A pod that was refused has had a name for the length of a message only.
static REFUSED_PODS: LazyLock<Regex> =
    LazyLock::new(|| pattern("(-rs[A-Z]+|pods \"[a-z0-9.-]*?)-[bcdfghjklmnpqrstvwxz2456789]{5}\""));
static UIDS: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));

/// A pattern that is known to be one.
fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern")
}

/// Replaces names by their aliases in everything it is given.
#[derive(Debug)]
pub struct Normaliser {
    renamed: BTreeMap<String, String>,
    hashes: BTreeMap<String, String>,
    names_in_text: Option<Regex>,
    hashes_in_text: Option<Regex>,
    namespace: String,
}

impl Normaliser {
    /// One that knows the aliases given so far.
    pub fn new(aliases: &Aliases, namespace: &str) -> Result<Self> {
        let renamed = aliases.renamed();
        let hashes = aliases.hashes().clone();
        Ok(Self {
            names_in_text: any_of(renamed.keys(), "", "")?,
            hashes_in_text: any_of(hashes.keys(), r"\b", r"\b")?,
            renamed,
            hashes,
            namespace: namespace.to_owned(),
        })
    }

    /// The value with every text in it normalised, keys included.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(members) => members.iter().map(|member| self.value(member)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (self.text(key), self.value(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// The text with what differs from run to run replaced.
    pub fn text(&self, text: &str) -> String {
        let replace = |pattern: &Option<Regex>, by: &BTreeMap<String, String>, text: &str| {
            let Some(pattern) = pattern else { return text.to_owned() };
            pattern.replace_all(text, |found: &Captures<'_>| by[&found[0]].clone()).into_owned()
        };
        let text = replace(&self.names_in_text, &self.renamed, text);
        let text = replace(&self.hashes_in_text, &self.hashes, &text);
        let text = REFUSED_PODS.replace_all(&text, "${1}-?????\"");
        UIDS.replace_all(&text, "UID").replace(&self.namespace, "NS")
    }
}

/// A pattern for any of these, the longest first: one name may begin like another.
fn any_of<'a>(
    names: impl Iterator<Item = &'a String>,
    before: &str,
    after: &str,
) -> Result<Option<Regex>> {
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() {
        return Ok(None);
    }
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let names: Vec<String> = names.iter().map(|name| regex::escape(name)).collect();
    Ok(Some(Regex::new(&format!("{before}(?:{}){after}", names.join("|")))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;
    use serde_json::json;

    fn normaliser() -> Normaliser {
        let mut aliases = Aliases::default();
        let replica_set = json!({"metadata": {
            "name": "web-6f7", "labels": {"pod-template-hash": "6f7"},
        }});
        let owner = json!({"kind": "ReplicaSet", "name": "web-6f7", "controller": true});
        let pod = json!({"metadata": {
            "name": "web-6f7-abcde", "generateName": "web-6f7-", "ownerReferences": [owner],
        }});
        aliases.see(Resource::ReplicaSets, &replica_set);
        aliases.see(Resource::Pods, &pod);
        Normaliser::new(&aliases, "g-test-1").unwrap()
    }

    #[test]
    fn names_hashes_uids_and_namespace_are_replaced() {
        let normaliser = normaliser();
        let text = |text| normaliser.text(text);
        assert_eq!(text("Created pod: web-6f7-abcde"), "Created pod: web-rsA-p1");
        assert_eq!(
            text("Scaled up replica set web-6f7 to 3"),
            "Scaled up replica set web-rsA to 3"
        );
        assert_eq!(text("6f7"), "hashA");
        assert_eq!(text("a6f7b"), "a6f7b");
        assert_eq!(text("in g-test-1"), "in NS");
        assert_eq!(text("uid 01234567-89ab-cdef-0123-456789abcdef."), "uid UID.");
    }

    #[test]
    fn pods_that_were_refused_lose_their_suffix() {
        let message = "pods \"web-6f7-x2c4v\" is forbidden: exceeded quota";
        let expected = "pods \"web-rsA-?????\" is forbidden: exceeded quota";
        assert_eq!(normaliser().text(message), expected);
        let message = "pods \"rs-x2c4v\" is forbidden: exceeded quota";
        assert_eq!(normaliser().text(message), "pods \"rs-?????\" is forbidden: exceeded quota");
    }

    #[test]
    fn whole_values_are_normalised() {
        let value = json!({"web-6f7": ["6f7", 1, {"a": "web-6f7-abcde"}]});
        let expected = json!({"web-rsA": ["hashA", 1, {"a": "web-rsA-p1"}]});
        assert_eq!(normaliser().value(&value), expected);
    }
}
