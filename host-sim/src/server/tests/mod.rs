//! Tests of the whole server, without sockets and in virtual time.

mod claims;
mod deleting;
mod garbage;
mod listing;
mod managing;
mod namespaces;
mod published;
mod revisions;
mod stateful_sets;
mod watching;
mod writing;

use http::Method;
use serde_json::{Value, json};

use super::request::Request;
use super::response::{Body, Response};
use super::watch::{Watch, WatchState};
use super::*;

/// A server with a clock that the test moves.
pub(super) struct Cluster {
    pub(super) server: Server,
    pub(super) now: Timestamp,
}

pub(super) const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(super) const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
pub(super) const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
pub(super) const CONTROLLERS: &str = "/api/v1/namespaces/default/replicationcontrollers";

impl Cluster {
    pub(super) fn new() -> Self {
        Self::with_history(HistoryLimits::default())
    }

    pub(super) fn with_history(limits: HistoryLimits) -> Self {
        let now = Timestamp::from_unix_millis(1_763_253_600_000);
        let mut server = Server::new(42, limits);
        server.bootstrap(now);
        server.settle(now);
        Self { server, now }
    }

    pub(super) fn advance(&mut self, seconds: i64) {
        self.now = self.now.plus_seconds(seconds);
    }

    /// Lets the cluster do its own work, also what is due within a second.
    pub(super) fn settle(&mut self) {
        let end = self.now.plus_seconds(1);
        self.server.settle(self.now);
        while let Some(at) = self.server.step_at().filter(|at| *at < end) {
            self.server.settle(at);
        }
    }

    fn send(&mut self, request: &Request) -> (u16, Value) {
        let response = self.server.handle(self.now, request);
        (response.status, response.into_value())
    }

    pub(super) fn get(&mut self, path: &str) -> (u16, Value) {
        self.send(&Request::new(Method::GET, path))
    }

    pub(super) fn post(&mut self, path: &str, body: Value) -> (u16, Value) {
        let request = Request::new(Method::POST, path);
        self.send(&request.with_body("application/json", body.to_string()))
    }

    pub(super) fn put(&mut self, path: &str, body: Value) -> (u16, Value) {
        let request = Request::new(Method::PUT, path);
        self.send(&request.with_body("application/json", body.to_string()))
    }

    pub(super) fn merge(&mut self, path: &str, body: Value) -> (u16, Value) {
        let request = Request::new(Method::PATCH, path);
        self.send(&request.with_body("application/merge-patch+json", body.to_string()))
    }

    pub(super) fn strategic(&mut self, path: &str, body: Value) -> (u16, Value) {
        let request = Request::new(Method::PATCH, path);
        self.send(&request.with_body("application/strategic-merge-patch+json", body.to_string()))
    }

    pub(super) fn apply(&mut self, path: &str, query: &str, body: Value) -> (u16, Value) {
        let request = Request::new(Method::PATCH, &format!("{path}?{query}"));
        self.send(&request.with_body("application/apply-patch+yaml", body.to_string()))
    }

    pub(super) fn delete(&mut self, path: &str, options: Value) -> (u16, Value) {
        let request = Request::new(Method::DELETE, path);
        self.send(&request.with_body("application/json", options.to_string()))
    }

    /// Creates and expects that to work.
    pub(super) fn make(&mut self, path: &str, body: Value) -> Value {
        let (status, object) = self.post(path, body);
        assert_eq!(status, 201, "{object}");
        object
    }

    pub(super) fn watch(&mut self, path: &str) -> Result<Watcher, Response> {
        let response = self.server.handle(self.now, &Request::new(Method::GET, path));
        match response.body {
            Body::Watch(watch) => Ok(Watcher { watch: *watch }),
            _ => Err(response),
        }
    }

    pub(super) fn names(&mut self, path: &str) -> Vec<String> {
        let (status, list) = self.get(path);
        assert_eq!(status, 200, "{list}");
        let items = list["items"].as_array().expect("a list").iter();
        items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect()
    }
}

/// A watch that collects its events.
pub(super) struct Watcher {
    watch: Watch,
}

impl Watcher {
    /// Everything that is there to be told, as `(type, object)`.
    pub(super) fn events(&mut self, cluster: &Cluster) -> Vec<(String, Value)> {
        self.events_and_state(cluster).0
    }

    pub(super) fn events_and_state(
        &mut self,
        cluster: &Cluster,
    ) -> (Vec<(String, Value)>, WatchState) {
        let mut out = Vec::new();
        let mut state = WatchState::Open;
        loop {
            let before = out.len();
            // A small limit, so that every test also resumes in the middle.
            let limit = before + 1;
            state = match self.watch.fill(cluster.server.store(), cluster.now, &mut out, limit) {
                WatchState::Ended => WatchState::Ended,
                WatchState::Open => state,
            };
            if out.len() == before || state == WatchState::Ended {
                break;
            }
        }
        let text = String::from_utf8(out).expect("UTF-8");
        let events = text.lines().map(|line| {
            let mut event: Value = serde_json::from_str(line).expect("one document a line");
            let kind = event["type"].as_str().expect("a type").to_owned();
            (kind, event["object"].take())
        });
        (events.collect(), state)
    }

    pub(super) fn summary(&mut self, cluster: &Cluster) -> Vec<String> {
        let events = self.events(cluster).into_iter();
        let line = |(kind, object): (String, Value)| {
            format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or("-"))
        };
        events.map(line).collect()
    }
}

pub(super) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "img:v1"}]},
    })
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

pub(super) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "img:v1"}]},
            },
        },
    })
}

pub(super) fn owned(mut object: Value, owner: &Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    object
}

pub(super) fn replica_set(name: &str) -> Value {
    let mut object = deployment(name);
    object["kind"] = json!("ReplicaSet");
    object
}

pub(super) fn stateful_set(name: &str) -> Value {
    let mut object = deployment(name);
    object["kind"] = json!("StatefulSet");
    object
}

pub(super) fn replication_controller(name: &str) -> Value {
    let mut object = deployment(name);
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("ReplicationController");
    object["spec"]["selector"] = json!({"app": name});
    object
}

#[test]
fn the_resources_that_the_server_works_with_are_served() {
    let resources = Resources::new();
    for (id, plural) in [
        (resources.namespaces, "namespaces"),
        (resources.pods, "pods"),
        (resources.events, "events"),
        (resources.quotas, "resourcequotas"),
        (resources.claims, "persistentvolumeclaims"),
        (resources.config_maps, "configmaps"),
        (resources.service_accounts, "serviceaccounts"),
        (resources.services, "services"),
    ] {
        assert_eq!(resources.kind_of(id).plural, plural);
    }
}

#[test]
fn the_same_requests_at_the_same_times_give_the_same_bytes() {
    let run = || {
        let mut cluster = Cluster::new();
        let mut all = Vec::new();
        for round in 0..20 {
            let mut body = pod("x");
            body["metadata"] = json!({"generateName": "web-"});
            all.push(cluster.post(PODS, body).1.to_string());
            all.push(cluster.post(DEPLOYMENTS, deployment(&format!("d{round}"))).1.to_string());
            cluster.advance(1);
            cluster.settle();
        }
        all.push(cluster.get("/api/v1/pods").1.to_string());
        all
    };
    assert_eq!(run(), run());
}
