//! A small double of the API server: enough semantics for whole scenarios, nothing more.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A kind's place in paths.
pub(crate) type Plural = String;

/// An object's place: plural, namespace, name.
pub(crate) type Key = (Plural, String, String);

#[derive(Default)]
pub(crate) struct Server {
    pub(crate) objects: BTreeMap<Key, Value>,
    /// What watches are told: version, type, object.
    pub(crate) history: Vec<(u64, Plural, &'static str, Value)>,
    pub(crate) version: u64,
    uids: u64,
    /// Seconds since the epoch.
    pub(crate) now: i64,
    /// Pods that may exist at a time.
    pub(crate) quota: Option<usize>,
    pub(crate) terminating_namespace: bool,
    /// Every write that reached the server, with its answer's code.
    pub(crate) log: Vec<(String, String, u16)>,
    /// Writes that changed nothing.
    pub(crate) no_ops: usize,
}

pub(crate) type Answer = (u16, Value);

impl Server {
    pub(crate) fn new() -> Self {
        Self { version: 100, now: 1_800_000_000, ..Self::default() }
    }

    pub(crate) fn of<'s>(&'s self, plural: &'s str) -> impl Iterator<Item = &'s Value> {
        self.objects.iter().filter(move |((kind, ..), _)| kind == plural).map(|(_, object)| object)
    }

    pub(crate) fn get(&self, plural: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(plural.into(), "default".into(), name.into()))
    }

    /// A request of the controllers or of a user.
    pub(crate) fn request(
        &mut self,
        method: &str,
        target: &str,
        content_type: &str,
        body: Option<Value>,
    ) -> Answer {
        let path = target.split('?').next().unwrap();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let at = parts.iter().position(|part| *part == "namespaces").unwrap();
        let key =
            |name: &str| (parts[at + 2].to_string(), parts[at + 1].to_string(), name.to_string());
        let name = parts.get(at + 3).copied();
        let sub = parts.get(at + 4).copied();
        let answer = match (method, name) {
            ("POST", None) => self.create(key(""), body.unwrap()),
            ("GET", Some(name)) => match self.objects.get(&key(name)) {
                Some(object) => (200, object.clone()),
                None => not_found(&key(name)),
            },
            ("PATCH", Some(name)) => self.patch(&key(name), sub, content_type, &body.unwrap()),
            ("DELETE", Some(name)) => self.delete(&key(name), body.as_ref()),
            _ => panic!("{method} {target}"),
        };
        self.log.push((method.into(), target.into(), answer.0));
        answer
    }

    fn create(&mut self, key: Key, mut object: Value) -> Answer {
        let (plural, namespace, _) = key;
        if self.terminating_namespace {
            let mut answer = status(403, "Forbidden", "the namespace is being terminated");
            answer.1["details"] = json!({"causes": [{"reason": "NamespaceTerminating"}]});
            return answer;
        }
        let meta = object["metadata"].as_object_mut().unwrap();
        let base = meta.get("generateName").and_then(Value::as_str);
        if let Some(base) = base.filter(|_| !meta.contains_key("name")) {
            let name = format!("{base}{}", suffix(self.uids));
            meta.insert("name".into(), json!(name));
        }
        let name = meta["name"].as_str().unwrap().to_string();
        if plural == "pods" && self.quota.is_some_and(|quota| self.of("pods").count() >= quota) {
            self.uids += 1;
            let message = format!("pods \"{name}\" is forbidden: exceeded quota: q");
            return status(403, "Forbidden", &message);
        }
        let key = (plural.clone(), namespace.clone(), name.clone());
        if self.objects.contains_key(&key) {
            let message = format!("{plural} \"{name}\" already exists");
            return status(409, "AlreadyExists", &message);
        }
        self.uids += 1;
        let meta = object["metadata"].as_object_mut().unwrap();
        meta.insert("namespace".into(), json!(namespace));
        meta.insert("uid".into(), json!(format!("00000000-0000-4000-8000-{:012x}", self.uids)));
        meta.insert("creationTimestamp".into(), json!(rfc3339(self.now)));
        meta.insert("generation".into(), json!(1));
        if plural == "pods" {
            object["status"] = json!({"phase": "Pending"});
        }
        self.store("ADDED", key, object, 201)
    }

    /// Puts an object where it is, just as it is.
    #[cfg(all(feature = "statefulset", feature = "replication-controller"))]
    pub(crate) fn import(&mut self, plural: &str, namespace: &str, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_string();
        self.store("ADDED", (plural.into(), namespace.into(), name), object, 201);
    }

    /// Takes an object away, whatever it says.
    #[cfg(all(feature = "statefulset", feature = "replication-controller"))]
    pub(crate) fn expel(&mut self, plural: &str, namespace: &str, name: &str) {
        let key = (plural.to_string(), namespace.to_string(), name.to_string());
        if let Some(object) = self.objects.get(&key).cloned() {
            self.store("DELETED", key, object, 200);
        }
    }

    /// Takes away what a path is about, and what belongs to it.
    #[cfg(feature = "statefulset")]
    pub(crate) fn expel_target(&mut self, target: &str) {
        let mut parts = target.split('/').skip_while(|part| *part != "namespaces").skip(1);
        let (namespace, plural, name) = (parts.next(), parts.next(), parts.next());
        let key = (plural.unwrap().into(), namespace.unwrap().into(), name.unwrap().into());
        self.delete(&key, Some(&json!({"gracePeriodSeconds": 0})));
    }

    fn store(&mut self, change: &'static str, key: Key, mut object: Value, code: u16) -> Answer {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.history.push((self.version, key.0.clone(), change, object.clone()));
        if change == "DELETED" {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, object.clone());
        }
        (code, object)
    }

    fn patch(&mut self, key: &Key, sub: Option<&str>, kind: &str, patch: &Value) -> Answer {
        let Some(old) = self.objects.get(key).cloned() else { return not_found(key) };
        let mut new = old.clone();
        if kind == "application/json-patch+json" {
            if !json_patch(&mut new, patch) {
                return status(422, "Invalid", "a test failed");
            }
        } else {
            let wanted = &patch["metadata"];
            let differs = |field: &str| {
                wanted.get(field).is_some_and(|value| *value != old["metadata"][field])
            };
            if differs("resourceVersion") || differs("uid") {
                return status(409, "Conflict", "the object has been modified");
            }
            merge(&mut new, patch, kind.contains("strategic"));
        }
        let controllers = new["metadata"]["ownerReferences"].as_array().map_or(0, |owners| {
            owners.iter().filter(|owner| owner["controller"] == json!(true)).count()
        });
        if controllers > 1 {
            return status(422, "Invalid", "Only one reference can have Controller set to true");
        }
        match sub {
            Some("status") => new["spec"] = old["spec"].clone(),
            _ if old.get("status").is_some() => new["status"] = old["status"].clone(),
            _ => {}
        }
        let annotations = |object: &Value| object["metadata"]["annotations"].clone();
        let spec_changed = new["spec"] != old["spec"]
            || (key.0 == "deployments" && sub.is_none() && annotations(&new) != annotations(&old));
        if spec_changed {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            new["metadata"]["generation"] = json!(generation);
        }
        if new == old {
            self.no_ops += 1;
            return (200, old);
        }
        self.store("MODIFIED", key.clone(), new, 200)
    }

    fn delete(&mut self, key: &Key, options: Option<&Value>) -> Answer {
        let Some(object) = self.objects.get(key).cloned() else { return not_found(key) };
        let uid = options.and_then(|options| options["preconditions"]["uid"].as_str());
        if uid.is_some_and(|uid| object["metadata"]["uid"] != json!(uid)) {
            return status(409, "Conflict", "the uid in the precondition is another");
        }
        let graceful = key.0 == "pods"
            && !object["spec"]["nodeName"].is_null()
            && options.is_none_or(|options| options["gracePeriodSeconds"] != json!(0))
            && !["Failed", "Succeeded"].iter().any(|phase| object["status"]["phase"] == *phase);
        if graceful {
            if object["metadata"]["deletionTimestamp"].is_null() {
                let mut object = object;
                object["metadata"]["deletionTimestamp"] = json!(rfc3339(self.now + 30));
                return self.store("MODIFIED", key.clone(), object, 200);
            }
            return (200, object);
        }
        let uid = object["metadata"]["uid"].clone();
        let mut object = object;
        if key.0 == "pods" {
            // Servers first mark what they then take away.
            object["metadata"]["deletionTimestamp"] = json!(rfc3339(self.now));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            object = self.store("MODIFIED", key.clone(), object, 200).1;
        }
        let answer = self.store("DELETED", key.clone(), object, 200);
        self.collect_garbage(&uid);
        if key.0 == "controllerrevisions" {
            // As servers do where nobody waits for finalizers.
            return (200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}));
        }
        answer
    }

    /// Background cascade.
    fn collect_garbage(&mut self, owner: &Value) {
        let owned = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().any(|other| other["uid"] == *owner))
        };
        let orphans: Vec<Key> = self
            .objects
            .iter()
            .filter(|(_, object)| owned(object))
            .map(|(key, _)| key.clone())
            .collect();
        for key in orphans {
            self.delete(&key, None);
        }
    }
}

pub(crate) fn status(code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message});
    (code, status)
}

fn not_found((plural, _, name): &Key) -> Answer {
    status(404, "NotFound", &format!("{plural} \"{name}\" not found"))
}

/// Five characters as the server appends them, different for each number.
fn suffix(number: u64) -> String {
    let alphabet: Vec<char> = "bcdfghjklmnpqrstvwxz2456789".chars().collect();
    (0..5).map(|place| alphabet[(number / 27_u64.pow(place)) as usize % 27]).collect()
}

/// Merge patch; lists of conditions and owners merge by key if it is a strategic one.
fn merge(target: &mut Value, patch: &Value, strategic: bool) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let target = target.as_object_mut().unwrap();
    for (name, value) in patch {
        let by = match name.as_str() {
            "conditions" => Some("type"),
            "ownerReferences" => Some("uid"),
            _ => None,
        };
        match (by.filter(|_| strategic), value) {
            (_, Value::Null) => {
                target.remove(name);
            }
            (Some(by), Value::Array(elements)) => {
                let list = target.entry(name).or_insert(json!([])).as_array_mut().unwrap();
                for element in elements {
                    list.retain(|old| old[by] != element[by]);
                    if element["$patch"] != json!("delete") {
                        list.push(element.clone());
                    }
                }
                if list.is_empty() {
                    target.remove(name);
                }
            }
            _ => merge(target.entry(name).or_insert(Value::Null), value, strategic),
        }
    }
}

fn json_patch(target: &mut Value, operations: &Value) -> bool {
    operations.as_array().unwrap().iter().all(|operation| {
        let path = operation["path"].as_str().unwrap();
        let (parent, last) = path.rsplit_once('/').unwrap();
        let last = last.replace("~1", "/").replace("~0", "~");
        let Some(parent) = target.pointer_mut(parent) else { return false };
        match operation["op"].as_str().unwrap() {
            "test" => parent[&last] == operation["value"],
            "remove" => parent.as_object_mut().unwrap().remove(&last).is_some(),
            "add" | "replace" => {
                parent[&last] = operation["value"].clone();
                true
            }
            other => panic!("{other}"),
        }
    })
}

pub(crate) fn rfc3339(seconds: i64) -> String {
    picokube_core::time::Timestamp::from_secs(seconds).rfc3339().to_string()
}
