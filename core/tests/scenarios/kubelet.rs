//! The node side, one cause at a time: bind all, else finish all that terminate, else make the
//! oldest unready pod ready.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::server::rfc3339;

impl Cluster<'_> {
    /// Lets the kubelet work until nothing is left to do.
    pub(crate) fn rollout(&mut self) {
        self.settle();
        for _ in 0..1_000 {
            if !self.kubelet() {
                return;
            }
            self.settle();
        }
        panic!("the kubelet never comes to rest");
    }

    /// One thing the kubelet does.
    pub(crate) fn kubelet(&mut self) -> bool {
        let unbound = self.pods(|pod| pod["spec"]["nodeName"].is_null());
        if !unbound.is_empty() {
            for (number, name) in unbound.iter().enumerate() {
                let node = format!("node-{}", number % 2);
                self.pod(name, None, &json!({"spec": {"nodeName": node}}));
            }
            return true;
        }
        let leaving = self.pods(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
        if !leaving.is_empty() {
            leaving.iter().for_each(|name| self.finish(name));
            return true;
        }
        let is_bad = |pod: &Value| pod["spec"]["containers"][0]["image"] == json!("app:bad");
        let unready = self.pods(|pod| pod["status"]["phase"] == json!("Pending") && !is_bad(pod));
        match unready.first() {
            Some(name) => self.make_ready(&name.clone()),
            None => return false,
        }
        true
    }

    pub(crate) fn make_ready(&mut self, name: &str) {
        let since = rfc3339(self.server.now);
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
        self.pod(
            name,
            Some("status"),
            &json!({"status": {"phase": "Running",
            "conditions": [ready]}}),
        );
    }

    /// A pod that is being deleted goes.
    pub(crate) fn finish(&mut self, name: &str) {
        let target = format!("/api/v1/namespaces/default/pods/{name}");
        let now = Some(json!({"gracePeriodSeconds": 0}));
        self.server.request("DELETE", &target, "application/json", now);
    }

    pub(crate) fn pod(&mut self, name: &str, sub: Option<&str>, patch: &Value) {
        let sub = sub.map(|sub| format!("/{sub}")).unwrap_or_default();
        let target = format!("/api/v1/namespaces/default/pods/{name}{sub}");
        let kind = "application/merge-patch+json";
        let (code, _) = self.server.request("PATCH", &target, kind, Some(patch.clone()));
        assert_eq!(code, 200, "{name}");
    }

    /// Names of the pods of `default` that are like this, oldest first.
    pub(crate) fn pods(&self, filter: impl Fn(&Value) -> bool) -> Vec<String> {
        let uid = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap().to_string();
        let ours =
            self.server.of("pods").filter(|pod| pod["metadata"]["namespace"] == json!("default"));
        let mut found: Vec<_> = ours.filter(|pod| filter(pod)).collect();
        found.sort_by_key(|pod| uid(pod));
        found.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_string()).collect()
    }
}

impl Cluster<'_> {
    /// Lets a kubelet work that does everything it can every `pace`.
    pub(crate) fn quick_rollout(&mut self, pace: picokube_core::time::Duration) {
        for _ in 0..10_000 {
            self.run(pace);
            self.advance(pace);
            let mut acted = false;
            for name in self.pods(|pod| pod["spec"]["nodeName"].is_null()) {
                self.pod(&name, None, &json!({"spec": {"nodeName": "node"}}));
                acted = true;
            }
            for name in self.pods(|pod| !pod["metadata"]["deletionTimestamp"].is_null()) {
                self.finish(&name);
                acted = true;
            }
            for name in self.pods(|pod| pod["status"]["phase"] == json!("Pending")) {
                self.make_ready(&name);
                acted = true;
            }
            let log = self.server.log.len();
            if !acted {
                self.settle();
                if self.server.log.len() == log {
                    return;
                }
            }
        }
        panic!("the kubelet never comes to rest");
    }
}
