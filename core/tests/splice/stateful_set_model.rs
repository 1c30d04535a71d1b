//! A plain model of the bodies of a StatefulSet, and random sources for them.

use super::{name, path, uid_of};
use picokube_core::json::{Digest, Digester, ShortHash, Tokenizer};
use picokube_core::kind::Kind;
use picokube_core::manager::{Make, Splice};
use picokube_core::wire::{POD_TEMPLATE, Uid};
use serde_json::{Map, Value, json};

pub(crate) const HASH: &str = "7d4b9c6f85";
pub(crate) const POD_OWNER_UID: &str = "5f0c7a4b-52a1-4d2c-8b3a-4c5d6e7f8091";
const REVISION_UID: &str = "7d3f1c20-52a1-4d2c-8b3a-4c5d6e7f8091";

pub(crate) fn digest(template: &Value) -> Digest {
    let mut tokenizer = Tokenizer::new();
    let mut digester = Digester::new(&POD_TEMPLATE);
    tokenizer.feed(template.to_string().as_bytes(), &mut digester).unwrap();
    tokenizer.finish(&mut digester).unwrap();
    digester.finish().unwrap()
}

fn request(source: &str, template: &str, make: Make) -> Splice {
    let value: Value = serde_json::from_str(source).unwrap();
    let template = digest(value.pointer(template).unwrap_or(&Value::Null));
    Splice { source: path("/s"), kind: Kind::Deployment, uid: uid_of(source), template, make }
}

/// Asks for the revision of a StatefulSet.
pub(crate) fn revision(set: &str) -> Splice {
    let make = Make::ControllerRevision {
        name: name("db-7d4b9c6f85"),
        owner: name("db"),
        hash: ShortHash::try_from(HASH).unwrap(),
        revision: 7,
    };
    request(set, "/spec/template", make)
}

/// Asks for a pod of a revision.
pub(crate) fn pod(cr: &str, owner: &str, ordinal: i32, subdomain: &str, claims: &str) -> Splice {
    let make = Make::StatefulSetPod {
        owner: name(owner),
        owner_uid: Uid::parse(POD_OWNER_UID).unwrap(),
        ordinal,
        revision: "db-1".try_into().unwrap(),
        subdomain: subdomain.try_into().unwrap(),
        claims: claims.try_into().unwrap(),
    };
    request(cr, "/data/spec/template", make)
}

/// Asks for a claim of a StatefulSet.
pub(crate) fn claim(set: &str, index: u16) -> Splice {
    request(set, "/no/template", Make::Claim { name: name("data-db-0"), index })
}

/// A revision of the StatefulSet, the members of its template in the same order.
pub(crate) fn revision_of(set: &str) -> String {
    let start = set.find("\"template\":").unwrap() + "\"template\":".len();
    let mut values = serde_json::Deserializer::from_str(&set[start..]).into_iter::<Value>();
    let is_object = values.next().unwrap().unwrap().is_object();
    let template = &set[start..start + values.byte_offset()];
    let template = match template.strip_prefix('{') {
        Some(members) if is_object => format!("{{\"$patch\":\"replace\",{members}"),
        _ => template.to_owned(),
    };
    let metadata = format!(r#""metadata":{{"name":"db-1","uid":"{REVISION_UID}"}}"#);
    let data = format!(r#""data":{{"spec":{{"template":{template}}}}}"#);
    match set.starts_with(r#"{"status""#) {
        true => format!("{{\"revision\":1,{metadata},{data}}}"),
        false => format!("{{{metadata},{data},\"revision\":1}}"),
    }
}

/// The body as `serde_json` would make it.
pub(crate) fn body(make: &Make, source: &Value) -> Value {
    match make {
        Make::ControllerRevision { name, owner, hash, revision } => {
            let mut template = source["spec"]["template"].clone();
            let mut labels = map(&template["metadata"]["labels"]);
            labels.insert("controller.kubernetes.io/hash".to_owned(), json!(hash.as_str()));
            template["$patch"] = json!("replace");
            json!({
                "apiVersion": "apps/v1", "kind": "ControllerRevision",
                "metadata": {"name": name.as_str(), "labels": labels,
                    "annotations": map(&source["metadata"]["annotations"]),
                    "ownerReferences": owner_references(owner, &source["metadata"]["uid"])},
                "data": {"spec": {"template": template}},
                "revision": revision,
            })
        }
        Make::StatefulSetPod { owner, owner_uid, ordinal, revision, subdomain, claims } => {
            let template = &source["data"]["spec"]["template"];
            let name = format!("{owner}-{ordinal}");
            let mut labels = map(&template["metadata"]["labels"]);
            labels.insert("statefulset.kubernetes.io/pod-name".to_owned(), json!(name));
            labels.insert("apps.kubernetes.io/pod-index".to_owned(), json!(ordinal.to_string()));
            labels.insert("controller-revision-hash".to_owned(), json!(revision.as_str()));
            let uid = json!(owner_uid.to_string());
            let dash = if owner.len() < 253 { "-" } else { "" };
            let mut metadata = json!({"name": name, "generateName": format!("{owner}{dash}"),
                "labels": labels, "ownerReferences": owner_references(owner, &uid)});
            copy(&template["metadata"], &["annotations", "finalizers"], &mut metadata);
            let mut spec = map(&template["spec"]);
            spec.insert("hostname".to_owned(), json!(name));
            match subdomain.as_str() {
                "" => drop(spec.remove("subdomain")),
                some => drop(spec.insert("subdomain".to_owned(), json!(some))),
            }
            if !claims.is_empty() {
                let of_claim = |claim: &str| {
                    json!({"name": claim, "persistentVolumeClaim":
                        {"claimName": format!("{claim}-{name}")}})
                };
                let mut volumes: Vec<_> = claims.split(',').map(of_claim).collect();
                let others = spec.get("volumes").and_then(Value::as_array).cloned();
                volumes.extend(others.unwrap_or_default().into_iter().filter(|volume| {
                    let name = volume.get("name").and_then(Value::as_str);
                    name.is_none_or(|name| !claims.split(',').any(|claim| claim == name))
                }));
                spec.insert("volumes".to_owned(), json!(volumes));
            }
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        }
        Make::Claim { name, index } => {
            let template = &source["spec"]["volumeClaimTemplates"][usize::from(*index)];
            let mut labels = map(&template["metadata"]["labels"]);
            labels.extend(map(&source["spec"]["selector"]["matchLabels"]));
            let mut metadata = json!({"name": name.as_str(), "labels": labels});
            copy(&template["metadata"], &["annotations", "finalizers"], &mut metadata);
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata,
                "spec": template["spec"]})
        }
        _ => panic!("no body of a StatefulSet: {make:?}"),
    }
}

fn owner_references(name: &str, uid: &Value) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true}])
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn copy(from: &Value, members: &[&str], to: &mut Value) {
    for member in members {
        if !from[member].is_null() {
            to[member] = from[member].clone();
        }
    }
}

/// Random objects, and random ways to write them.
pub(crate) struct Spelling(u64);

impl Spelling {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Names of claim templates, with commas between.
    pub(crate) fn claims(&mut self) -> String {
        let mut claims = vec!["data", "wal", "data-2", "volumes", "d"];
        claims.rotate_left(self.below(5));
        claims.truncate(self.below(5));
        claims.join(",")
    }

    pub(crate) fn stateful_set(&mut self) -> Value {
        let templates = self.below(4);
        let claims: Vec<_> = (0..templates).map(|_| self.template(Self::claim_spec)).collect();
        let mut set = json!({
            "metadata": {"uid": POD_OWNER_UID},
            "spec": {"template": self.template(Self::pod_spec), "volumeClaimTemplates": claims},
            "status": {"spec": {"template": 1}, "metadata": []},
        });
        self.put(&mut set["metadata"], "annotations", Self::texts);
        self.put(&mut set["spec"], "selector", |random| {
            let mut selector = json!({"matchExpressions": []});
            random.put(&mut selector, "matchLabels", Self::texts);
            selector
        });
        set
    }

    pub(crate) fn controller_revision(&mut self, set: &Value) -> Value {
        let mut template = set["spec"]["template"].clone();
        template["$patch"] = json!("replace");
        json!({"metadata": {"uid": REVISION_UID, "annotations": self.texts()}, "revision": 5,
            "data": {"spec": {"template": template}}})
    }

    fn template(&mut self, spec: fn(&mut Self) -> Value) -> Value {
        let mut template = json!({"spec": spec(self)});
        self.put(&mut template, "metadata", |random| {
            let mut metadata = json!({"name": "data"});
            random.put(&mut metadata, "labels", Self::texts);
            random.put(&mut metadata, "annotations", Self::texts);
            random.put(&mut metadata, "finalizers", |_| json!(["a", "b\n"]));
            metadata
        });
        template
    }

    fn claim_spec(&mut self) -> Value {
        json!({"accessModes": [self.one_of(&["ReadWriteOnce", "\u{1}"])], "labels": self.texts(),
            "metadata": {"labels": self.texts()}})
    }

    fn pod_spec(&mut self) -> Value {
        let mut spec = json!({"containers": [{"name": "data", "volumes": [{"name": "data"}]}]});
        self.put(&mut spec, "hostname", |_| json!({"odd": ["hostname"]}));
        self.put(&mut spec, "subdomain", |_| json!("old"));
        self.put(&mut spec, "nodeSelector", Self::texts);
        self.put(&mut spec, &"volumes".repeat(8), |_| json!([{"name": "data"}]));
        self.put(&mut spec, "volumes", |random| {
            (0..random.below(6)).map(|_| random.volume()).collect()
        });
        spec
    }

    fn volume(&mut self) -> Value {
        let names = ["data", "wal", "data-2", "volumes", "d", "dat", "data-", "other", "ata", ""];
        let mut volume = json!({});
        self.put(&mut volume, "name", |random| json!(random.one_of(&names)));
        self.put(&mut volume, "projected", |random| {
            json!({"name": random.one_of(&names), "sources": [{"name": "data"}, "name", "data"]})
        });
        self.put(&mut volume, "name2", |_| json!("data"));
        self.put(&mut volume, "nam", |_| json!("data"));
        volume
    }

    /// A map of texts; some of its keys are those that bodies have.
    fn texts(&mut self) -> Value {
        let long = format!("{}/{}", "p".repeat(60), "k".repeat(60));
        let keys = [
            "app",
            "tier",
            "controller.kubernetes.io/hash",
            "controller-revision-hash",
            "statefulset.kubernetes.io/pod-name",
            "apps.kubernetes.io/pod-index",
            "pod-template-hash",
            "kubectl.kubernetes.io/last-applied-configuration",
            "\"☕\\",
            &long,
        ];
        let texts = (0..self.below(8)).map(|_| {
            (self.one_of(&keys).to_owned(), json!(self.one_of(&["", "1", "a\n\"b", "☕☕"])))
        });
        texts.collect()
    }

    /// Puts a member, or `null`, or nothing.
    fn put(&mut self, object: &mut Value, name: &str, value: impl FnOnce(&mut Self) -> Value) {
        match self.below(6) {
            0 => {}
            1 => object[name] = Value::Null,
            _ => object[name] = value(self),
        }
    }

    /// Writes a value with its members in any order, and any characters escaped.
    pub(crate) fn spell(&mut self, value: &Value) -> String {
        match value {
            Value::Object(members) => {
                let mut rest: Vec<_> = members.iter().collect();
                // Half of the objects are as most servers write them.
                let is_shuffled = self.below(2) == 0;
                let mut spelt = Vec::new();
                while !rest.is_empty() {
                    let next = if is_shuffled { self.below(rest.len()) } else { 0 };
                    let (key, value) = rest.remove(next);
                    spelt.push(format!("{}: {}", self.text(key), self.spell(value)));
                }
                format!("{{{}}}", spelt.join(self.one_of(&[",", " ,\n"])))
            }
            Value::Array(all) => {
                let spelt: Vec<_> = all.iter().map(|element| self.spell(element)).collect();
                format!("[{}]", spelt.join(", "))
            }
            Value::String(text) => self.text(text),
            leaf => leaf.to_string(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let spelt = json!(text).to_string();
        if self.below(8) > 0 || !text.chars().all(|c| c.is_ascii_alphanumeric()) {
            return spelt;
        }
        let escaped = |c: char| match self.below(2) {
            0 => c.to_string(),
            _ => format!("\\u{:04x}", u32::from(c)),
        };
        format!("\"{}\"", text.chars().map(escaped).collect::<String>())
    }
}
