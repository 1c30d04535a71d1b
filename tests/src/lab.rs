//! A namespace of its own in a running cluster, and what a test does there.
//!
//! Whoever runs the controllers, the tests are the same: everything goes through the API.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::http::Answer;
use crate::picokube::Picokube;

/// A namespace in a cluster.
pub struct Lab<'a> {
    cluster: &'a Picokube,
    namespace: String,
}

impl<'a> Lab<'a> {
    /// A new namespace in which the cluster's nodes run the pods.
    pub fn new(cluster: &'a Picokube, namespace: &str) -> Result<Self> {
        Self::with_annotations(cluster, namespace, json!({}))
    }

    /// A new namespace in which nobody but the test moves pods.
    pub fn manual(cluster: &'a Picokube, namespace: &str) -> Result<Self> {
        Self::with_annotations(cluster, namespace, json!({"sim.picokube.dev/manual": "true"}))
    }

    fn with_annotations(
        cluster: &'a Picokube,
        namespace: &str,
        annotations: Value,
    ) -> Result<Self> {
        let metadata = json!({"name": namespace, "annotations": annotations});
        cluster.create("/api/v1/namespaces", &json!({"metadata": metadata}))?;
        Ok(Self { cluster, namespace: namespace.to_owned() })
    }

    /// The cluster.
    pub fn cluster(&self) -> &'a Picokube {
        self.cluster
    }

    /// Its name.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Asks for `RESOURCE`, `RESOURCE/NAME` or `RESOURCE/NAME/SUBRESOURCE`, with or without a
    /// query. The answer may be an error.
    pub fn send(&self, method: &str, object: &str, body: &Value) -> Result<Answer> {
        let path = self.path(object);
        match method {
            "GET" => self.cluster.get(&path),
            _ => self.cluster.send_json(method, &path, body),
        }
    }

    /// Asks for something that has to work; gives the answer.
    pub fn ask(&self, method: &str, object: &str, body: &Value) -> Result<Value> {
        let answer = self.send(method, object, body)?;
        ensure!(answer.status < 300, "{method} {object}: {}", answer.text());
        answer.json()
    }

    /// Creates an object.
    pub fn create(&self, resource: &str, object: &Value) -> Result<Value> {
        self.ask("POST", resource, object)
    }

    /// An object that is there.
    pub fn get(&self, object: &str) -> Result<Value> {
        self.ask("GET", object, &Value::Null)
    }

    /// Whether there is such an object.
    pub fn has(&self, object: &str) -> Result<bool> {
        let answer = self.send("GET", object, &Value::Null)?;
        ensure!(matches!(answer.status, 200 | 404), "GET {object}: {}", answer.text());
        Ok(answer.status == 200)
    }

    /// All objects of a resource, of a label selector if it has a query.
    pub fn list(&self, resource: &str) -> Result<Vec<Value>> {
        let list = self.get(resource)?;
        Ok(list["items"].as_array().context("a list without items")?.clone())
    }

    /// Changes an object by a merge patch.
    pub fn patch(&self, object: &str, patch: &Value) -> Result<Value> {
        self.ask("PATCH", object, patch)
    }

    /// Changes an object by a strategic merge patch, as Kubernetes' own clients do.
    pub fn patch_strategically(&self, object: &str, patch: &Value) -> Result<Value> {
        let headers = [("content-type", "application/strategic-merge-patch+json")];
        let body = patch.to_string();
        let mut client = self.cluster.client()?;
        let answer = client.send("PATCH", &self.path(object), &headers, body.as_bytes())?;
        ensure!(answer.status < 300, "PATCH {object}: {}", answer.text());
        answer.json()
    }

    /// Reads an object, changes it and writes it back, again if somebody else was faster.
    pub fn update(&self, object: &str, change: impl Fn(&mut Value)) -> Result<Value> {
        loop {
            let mut changed = self.get(object)?;
            change(&mut changed);
            let answer = self.send("PUT", object, &changed)?;
            if answer.status != 409 {
                ensure!(answer.status < 300, "PUT {object}: {}", answer.text());
                return answer.json();
            }
        }
    }

    /// Deletes an object in one of the three ways: `Background`, `Foreground` or `Orphan`.
    pub fn delete(&self, object: &str, propagation: &str) -> Result<()> {
        let options = json!({"propagationPolicy": propagation});
        self.ask("DELETE", object, &options).map(|_| ())
    }

    /// Waits until an object is as it should be; gives it.
    pub fn wait_for(
        &self,
        object: &str,
        what: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = Value::Null;
        let seen = self.wait(&format!("{object}: {what}"), || {
            last = self.get(object)?;
            Ok(condition(&last))
        });
        seen.with_context(|| format!("it is {last:#}"))?;
        Ok(last)
    }

    /// Waits until `condition` holds.
    pub fn wait(&self, what: &str, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
        let condition = std::cell::RefCell::new(&mut condition);
        self.cluster.wait_until(what, || (condition.borrow_mut())())
    }

    /// The messages of an object's events with this reason, in the order of their first time.
    pub fn events(&self, object: &str, reason: &str) -> Result<Vec<String>> {
        let mut events = self.list("events")?;
        events
            .retain(|event| event["involvedObject"]["name"] == object && event["reason"] == reason);
        events.sort_by_key(|event| text(&event["firstTimestamp"]).to_owned());
        Ok(events.iter().map(|event| text(&event["message"]).to_owned()).collect())
    }

    fn path(&self, object: &str) -> String {
        let root = match object.split(['/', '?']).next() {
            Some("deployments" | "replicasets" | "statefulsets" | "controllerrevisions") => {
                "/apis/apps/v1"
            }
            _ => "/api/v1",
        };
        format!("{root}/namespaces/{}/{object}", self.namespace)
    }
}

/// A Deployment of pods with the label `app=NAME`.
pub fn deployment(name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    })
}

/// The text in a field; none is empty.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The number in a field; none is 0.
pub fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// The name of an object.
pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// The condition of a type; null if there is none.
pub fn condition<'v>(object: &'v Value, kind: &str) -> &'v Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == kind));
    found.unwrap_or(&Value::Null)
}

/// Whether the controllers have acted on what the object's spec says now.
pub fn is_observed(object: &Value) -> bool {
    number(&object["status"]["observedGeneration"]) >= number(&object["metadata"]["generation"])
}

/// Clusters that tests of one process share. Each ends with the last test that uses it.
pub struct Shared {
    arguments: &'static [&'static str],
    running: Mutex<Weak<Picokube>>,
}

impl Shared {
    /// A cluster of `picokube` with these arguments.
    pub const fn new(arguments: &'static [&'static str]) -> Self {
        Self { arguments, running: Mutex::new(Weak::new()) }
    }

    /// The cluster, started if nobody uses it.
    pub fn cluster(&self) -> Result<Arc<Picokube>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = running.upgrade() {
            return Ok(cluster);
        }
        let cluster = Arc::new(Picokube::start(self.arguments)?);
        *running = Arc::downgrade(&cluster);
        Ok(cluster)
    }
}
