//! The way simulated nodes talk to the server: ordinary requests, without the network.

use http::Method;
use serde_json::{Value, json};

use crate::server::Server;
use crate::server::request::Request;
use crate::store::{ResourceId, Store};
use crate::time::Timestamp;

const MERGE: &str = "application/merge-patch+json";

/// Requests of one component at one moment.
pub(super) struct Client<'a> {
    pub(super) server: &'a mut Server,
    pub(super) now: Timestamp,
    /// The component, as managedFields will show it.
    pub(super) agent: &'static str,
}

/// Where the objects are that nodes look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids {
    pub(super) pods: ResourceId,
    pub(super) nodes: ResourceId,
    pub(super) leases: ResourceId,
    pub(super) claims: ResourceId,
    pub(super) namespaces: ResourceId,
}

impl Ids {
    pub(super) fn of(server: &Server) -> Self {
        let id = |plural: &str| {
            let at = server.stored_kinds().iter().position(|kind| kind.plural == plural);
            ResourceId(at.unwrap_or(0) as u16)
        };
        Self {
            pods: id("pods"),
            nodes: id("nodes"),
            leases: id("leases"),
            claims: id("persistentvolumeclaims"),
            namespaces: id("namespaces"),
        }
    }
}

impl Client<'_> {
    pub(super) fn store(&self) -> &Store {
        self.server.store()
    }

    pub(super) fn post(&mut self, path: &str, body: &Value) -> bool {
        self.send(Method::POST, path, "application/json", body)
    }

    pub(super) fn merge(&mut self, path: &str, body: &Value) -> bool {
        self.send(Method::PATCH, path, MERGE, body)
    }

    pub(super) fn delete(&mut self, path: &str, options: &Value) -> bool {
        self.send(Method::DELETE, path, "application/json", options)
    }

    /// Tells about a pod with an Event.
    pub(super) fn event(&mut self, pod: &Value, kind: &str, reason: &str, message: &str) {
        let metadata = &pod["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let name = metadata["name"].as_str().unwrap_or_default();
        let at = self.now.to_rfc3339();
        // Every event is a write, so the version makes its name unique.
        let unique = self.store().revision();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{name}.{unique:016x}"), "namespace": namespace},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "name": name, "namespace": namespace,
                "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
            },
            "type": kind, "reason": reason, "message": message, "count": 1,
            "firstTimestamp": at, "lastTimestamp": at,
            "source": {"component": self.agent},
            "reportingComponent": self.agent,
            "reportingInstance": "",
        });
        self.post(&format!("/api/v1/namespaces/{namespace}/events"), &event);
    }

    fn send(&mut self, method: Method, path: &str, content_type: &str, body: &Value) -> bool {
        let mut request = Request::new(method, path).with_body(content_type, body.to_string());
        request.user_agent = self.agent.to_owned();
        self.server.handle(self.now, &request).status < 300
    }
}
