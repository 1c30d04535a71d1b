//! Names that are the same in every run.
//!
//! Hashes and random suffixes differ from run to run. ReplicaSets become `web-rsA`, `web-rsB` and
//! so on by order of creation, their pods `web-rsA-p1`, `web-rsA-p2`, ControllerRevisions
//! `db-revA`; the hashes in labels become `hashA`. Names given by hand stay.

use std::collections::BTreeMap;

use serde_json::Value;

use super::object::{controller, name, text};
use super::resource::Resource;

/// The aliases of one namespace, given as objects appear.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    /// ReplicaSets and ControllerRevisions.
    owners: BTreeMap<(Resource, String), String>,
    /// How many aliases a prefix has had.
    counts: BTreeMap<(Resource, String), usize>,
    /// The base of a generated pod name, and the pod's number among those with this base. The base
    /// is made an alias when asked, as a pod may be seen before the ReplicaSet it belongs to.
    pods: BTreeMap<String, Option<(String, usize)>>,
    hashes: BTreeMap<String, String>,
}

impl Aliases {
    /// Takes note of an object that has appeared.
    pub fn see(&mut self, resource: Resource, object: &Value) {
        let name = name(object);
        match resource {
            Resource::ReplicaSets => self.see_replica_set(name, object),
            Resource::ControllerRevisions => self.see_revision(name, object),
            Resource::Pods => self.see_pod(name, object),
            _ => {}
        }
    }

    /// The real name behind an alias; none as long as there is no such object.
    pub fn resolve(&self, alias: &str) -> Option<&str> {
        let mut owners = self.owners.iter();
        if let Some(((_, name), _)) = owners.find(|(_, given)| *given == alias) {
            return Some(name);
        }
        self.pods.keys().find(|name| self.pod(name) == alias).map(String::as_str)
    }

    /// Every name that has an alias of its own, with the alias.
    pub fn renamed(&self) -> BTreeMap<String, String> {
        let owners = self.owners.iter().map(|((_, name), alias)| (name.clone(), alias.clone()));
        let pods = self.pods.keys().map(|name| (name.clone(), self.pod(name)));
        owners.chain(pods).filter(|(name, alias)| name != alias).collect()
    }

    /// Every hash with what stands for it.
    pub fn hashes(&self) -> &BTreeMap<String, String> {
        &self.hashes
    }

    fn pod(&self, name: &str) -> String {
        match self.pods.get(name) {
            Some(Some((base, number))) => {
                let key = (Resource::ReplicaSets, base.clone());
                let base = self.owners.get(&key).unwrap_or(base);
                format!("{base}-p{number}")
            }
            _ => name.to_owned(),
        }
    }

    fn see_replica_set(&mut self, name: &str, object: &Value) {
        let key = (Resource::ReplicaSets, name.to_owned());
        if self.owners.contains_key(&key) {
            return;
        }
        let hash = text(&object["metadata"]["labels"]["pod-template-hash"]);
        let prefix = name.strip_suffix(hash).and_then(|rest| rest.strip_suffix('-'));
        let alias = match prefix {
            Some(prefix) if !hash.is_empty() => {
                let letters = self.next_letters(Resource::ReplicaSets, prefix);
                self.hashes.entry(hash.to_owned()).or_insert(format!("hash{letters}"));
                format!("{prefix}-rs{letters}")
            }
            _ => name.to_owned(),
        };
        self.owners.insert(key, alias);
    }

    fn see_revision(&mut self, name: &str, object: &Value) {
        let key = (Resource::ControllerRevisions, name.to_owned());
        if self.owners.contains_key(&key) {
            return;
        }
        let prefix = name.rsplit_once('-').map_or(name, |(prefix, _)| prefix);
        let letters = self.next_letters(Resource::ControllerRevisions, prefix);
        let hash = text(&object["metadata"]["labels"]["controller.kubernetes.io/hash"]);
        if !hash.is_empty() {
            self.hashes.entry(hash.to_owned()).or_insert(format!("hash{letters}"));
        }
        self.owners.insert(key, format!("{prefix}-rev{letters}"));
    }

    fn see_pod(&mut self, name: &str, object: &Value) {
        if self.pods.contains_key(name) {
            return;
        }
        let owner = controller(object);
        let owner_is = |kind: &str| owner.is_some_and(|owner| owner["kind"] == kind);
        let mut generated = text(&object["metadata"]["generateName"]).to_owned();
        if generated.is_empty() && owner_is("ReplicaSet") {
            // Not every server keeps generateName.
            generated = format!("{}-", text(&owner.unwrap_or(&Value::Null)["name"]));
        }
        let base = generated.trim_end_matches('-').to_owned();
        let is_generated =
            !generated.is_empty() && name.starts_with(&generated) && !owner_is("StatefulSet");
        let numbered = is_generated.then(|| {
            let number = self.next_number(Resource::Pods, &base) + 1;
            (base, number)
        });
        self.pods.insert(name.to_owned(), numbered);
    }

    fn next_letters(&mut self, resource: Resource, prefix: &str) -> String {
        letters(self.next_number(resource, prefix))
    }

    fn next_number(&mut self, resource: Resource, prefix: &str) -> usize {
        let count = self.counts.entry((resource, prefix.to_owned())).or_default();
        *count += 1;
        *count - 1
    }
}

/// A to Z, then AA, AB and so on.
fn letters(number: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = number;
    loop {
        letters.push(char::from(b'A' + (rest % 26) as u8));
        if rest < 26 {
            return letters.iter().rev().collect();
        }
        rest = rest / 26 - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn replica_set(name: &str, hash: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"pod-template-hash": hash}}})
    }

    fn pod(name: &str, generate_name: &str, owner_kind: &str) -> Value {
        let owner = json!({"kind": owner_kind, "name": "web-6f7", "controller": true});
        json!({"metadata": {
            "name": name, "generateName": generate_name, "ownerReferences": [owner],
        }})
    }

    #[test]
    fn objects_are_numbered_in_the_order_they_appear() {
        let mut aliases = Aliases::default();
        aliases.see(Resource::Pods, &pod("web-6f7-zzzzz", "web-6f7-", "ReplicaSet"));
        aliases.see(Resource::ReplicaSets, &replica_set("web-6f7", "6f7"));
        aliases.see(Resource::ReplicaSets, &replica_set("web-9c4", "9c4"));
        aliases.see(Resource::ReplicaSets, &replica_set("web-6f7", "6f7"));
        aliases.see(Resource::ReplicaSets, &replica_set("api-111", "111"));
        aliases.see(Resource::Pods, &pod("web-6f7-aaaaa", "web-6f7-", "ReplicaSet"));
        assert_eq!(aliases.resolve("web-rsA"), Some("web-6f7"));
        assert_eq!(aliases.resolve("web-rsB"), Some("web-9c4"));
        assert_eq!(aliases.resolve("api-rsA"), Some("api-111"));
        assert_eq!(aliases.resolve("web-rsA-p1"), Some("web-6f7-zzzzz"));
        assert_eq!(aliases.resolve("web-rsA-p2"), Some("web-6f7-aaaaa"));
        assert_eq!(aliases.resolve("web-rsA-p3"), None);
        assert_eq!(aliases.hashes()["9c4"], "hashB");
        assert_eq!(aliases.hashes()["111"], "hashA");
    }

    #[test]
    fn pods_are_numbered_where_the_server_forgets_generate_name() {
        let mut aliases = Aliases::default();
        aliases.see(Resource::ReplicaSets, &replica_set("web-6f7", "6f7"));
        aliases.see(Resource::Pods, &pod("web-6f7-abcde", "", "ReplicaSet"));
        assert_eq!(aliases.resolve("web-rsA-p1"), Some("web-6f7-abcde"));
    }

    #[test]
    fn names_given_by_hand_and_ordinals_stay() {
        let mut aliases = Aliases::default();
        aliases.see(Resource::ReplicaSets, &json!({"metadata": {"name": "rs"}}));
        aliases.see(Resource::Pods, &json!({"metadata": {"name": "lone"}}));
        aliases.see(Resource::Pods, &pod("db-0", "db-", "StatefulSet"));
        let revision = json!({"metadata": {
            "name": "db-5d8", "labels": {"controller.kubernetes.io/hash": "5d8"},
        }});
        aliases.see(Resource::ControllerRevisions, &revision);
        assert_eq!(aliases.resolve("rs"), Some("rs"));
        assert_eq!(aliases.resolve("lone"), Some("lone"));
        assert_eq!(aliases.resolve("db-0"), Some("db-0"));
        assert_eq!(aliases.resolve("db-revA"), Some("db-5d8"));
        assert_eq!(aliases.renamed().len(), 1);
    }

    #[test]
    fn letters_go_on_after_z() {
        let first: Vec<String> = [0, 25, 26, 27, 51, 52].map(letters).to_vec();
        assert_eq!(first, ["A", "Z", "AA", "AB", "AZ", "BA"]);
    }
}
