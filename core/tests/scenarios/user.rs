//! What users do and see.

use serde_json::{Value, json};

use crate::cluster::Cluster;

/// A Deployment as a server that has defaulted it would hand it out.
pub(crate) fn deployment(name: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app:v1"}]},
            },
        },
    })
}

/// A ReplicaSet of nobody's.
pub(crate) fn replica_set(name: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": "app:v1"}]},
            },
        },
    })
}

#[cfg(feature = "replication-controller")]
pub(crate) fn replication_controller(name: &str, replicas: i32) -> Value {
    let mut object = replica_set(name, replicas);
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("ReplicationController");
    object["spec"]["selector"] = json!({"app": name});
    object
}

fn api_of(plural: &str) -> &'static str {
    match plural {
        "pods" | "persistentvolumeclaims" | "replicationcontrollers" => "/api/v1",
        _ => "/apis/apps/v1",
    }
}

impl Cluster<'_> {
    pub(crate) fn create(&mut self, plural: &str, object: Value) -> Value {
        let api = api_of(plural);
        let target = format!("{api}/namespaces/default/{plural}");
        let (code, object) = self.server.request("POST", &target, "application/json", Some(object));
        assert_eq!(code, 201, "{object}");
        object
    }

    pub(crate) fn patch(&mut self, plural: &str, name: &str, patch: &Value) {
        let api = api_of(plural);
        let target = format!("{api}/namespaces/default/{plural}/{name}");
        let kind = "application/merge-patch+json";
        let (code, answer) = self.server.request("PATCH", &target, kind, Some(patch.clone()));
        assert_eq!(code, 200, "{answer}");
    }

    pub(crate) fn delete(&mut self, plural: &str, name: &str) {
        let api = api_of(plural);
        let target = format!("{api}/namespaces/default/{plural}/{name}");
        self.server.request("DELETE", &target, "application/json", None);
    }

    pub(crate) fn set_image(&mut self, name: &str, image: &str) {
        let template = json!({"spec": {"containers": [{"name": "app", "image": image}]}});
        self.patch("deployments", name, &json!({"spec": {"template": template}}));
    }

    pub(crate) fn scale(&mut self, name: &str, replicas: i32) {
        self.patch("deployments", name, &json!({"spec": {"replicas": replicas}}));
    }

    pub(crate) fn deployment(&self, name: &str) -> &Value {
        self.server.get("deployments", name).unwrap()
    }

    /// The status of a Deployment's condition and its reason.
    pub(crate) fn condition(&self, name: &str, kind: &str) -> Option<(String, String)> {
        let conditions = self.deployment(name)["status"]["conditions"].as_array()?;
        let condition = conditions.iter().find(|condition| condition["type"] == json!(kind))?;
        let text = |field: &str| condition[field].as_str().unwrap().to_string();
        Some((text("status"), text("reason")))
    }

    /// ReplicaSets of `default` in order of creation, as image and size.
    pub(crate) fn sets(&self) -> Vec<(String, i64)> {
        let is_ours = |set: &&Value| set["metadata"]["namespace"] == json!("default");
        let mut sets: Vec<_> = self.server.of("replicasets").filter(is_ours).collect();
        sets.sort_by_key(|set| set["metadata"]["uid"].as_str().unwrap().to_string());
        let image = |set: &Value| {
            set["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_string()
        };
        sets.iter().map(|set| (image(set), set["spec"]["replicas"].as_i64().unwrap())).collect()
    }

    /// Names of ReplicaSets in order of creation.
    pub(crate) fn set_names(&self) -> Vec<String> {
        let mut sets: Vec<_> = self.server.of("replicasets").map(|set| &set["metadata"]).collect();
        sets.sort_by_key(|meta| meta["uid"].as_str().unwrap().to_string());
        sets.iter().map(|meta| meta["name"].as_str().unwrap().to_string()).collect()
    }

    /// Messages of the events for a reason as they came, names of ReplicaSets as `A`, `B`, …
    pub(crate) fn events(&self, reason: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (_, plural, change, object) in &self.server.history {
            if plural == "replicasets" && *change == "ADDED" {
                names.push(object["metadata"]["name"].as_str().unwrap().into());
            }
        }
        let events = self.server.history.iter().filter(|(_, plural, _, object)| {
            plural == "events" && object["reason"] == json!(reason)
        });
        events
            .map(|(.., event)| {
                let text = event["message"].as_str().unwrap();
                let text = text.replace("(combined from similar events): ", "");
                names.iter().zip('A'..).fold(text, |text, (name, letter)| {
                    text.replace(name.as_str(), &letter.to_string())
                })
            })
            .collect()
    }

    /// All sizes a ReplicaSet has had.
    pub(crate) fn sizes(&self, name: &str) -> Vec<i64> {
        let states = self.server.history.iter().filter(|(_, plural, _, object)| {
            plural == "replicasets" && object["metadata"]["name"] == json!(name)
        });
        let mut sizes: Vec<i64> =
            states.map(|(.., set)| set["spec"]["replicas"].as_i64().unwrap()).collect();
        sizes.dedup();
        sizes
    }

    /// No write of ours was refused because of another one of ours, and none changed nothing.
    pub(crate) fn assert_economy(&self) {
        let refused: Vec<_> = self.server.log.iter().filter(|(.., code)| *code >= 400).collect();
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(self.server.no_ops, 0);
    }
}
