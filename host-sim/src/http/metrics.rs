//! Counters for `/metrics`, in the names that kube-apiserver uses.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::server::Server;
use crate::server::request::Target;

/// What the server has done since it was started.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<(Subject, u16), u64>>,
    watch_bytes: AtomicU64,
    pub(super) watches: AtomicU64,
    pub(super) connections: AtomicU64,
}

/// What a request was about. The names are those of served kinds, so that clients cannot invent
/// any; they are empty for everything that is no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// The verb, in RBAC's words; the HTTP method in lower case for what is no resource.
    pub verb: &'static str,
    /// The API group.
    pub group: &'static str,
    /// The API version.
    pub version: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// The subresource.
    pub subresource: &'static str,
}

impl Subject {
    /// What an HTTP request is about.
    pub(super) fn of(method: &http::Method, uri: &http::Uri) -> Self {
        let other =
            Self { verb: verb_of(method), group: "", version: "", resource: "", subresource: "" };
        let Ok(Target::Resource(target)) = Target::parse(uri.path()) else { return other };
        let mut query = uri.query().unwrap_or_default().split('&');
        let watch = query.any(|part| matches!(part, "watch=1" | "watch=true" | "watch"));
        let Ok(verb) = target.verb(method, watch) else { return other };
        let kind = target.kind;
        let mut subresources = kind.subresources.iter();
        let subresource = subresources.find(|subresource| subresource.name == target.subresource);
        Self {
            verb,
            group: kind.group,
            version: kind.version,
            resource: kind.plural,
            subresource: subresource.map_or("", |subresource| subresource.name),
        }
    }
}

impl Metrics {
    /// Counts an answered request.
    pub(super) fn answered(&self, subject: Subject, code: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((subject, code)).or_default() += 1;
    }

    /// How often each request was answered in each way.
    pub(super) fn requests(&self) -> BTreeMap<(Subject, u16), u64> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts bytes that went out in watch events.
    pub(super) fn watch_bytes(&self, bytes: usize) {
        self.watch_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The Prometheus text format.
    pub(super) fn render(&self, server: &Server) -> String {
        let mut text = String::new();
        let mut section = |name: &str, kind: &str, help: &str, lines: &[(String, u64)]| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in lines {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let requests = self.requests().into_iter().map(|((subject, code), count)| {
            let Subject { verb, group, version, resource, subresource } = subject;
            let verb = verb.to_uppercase();
            let labels = format!(
                "{{verb=\"{verb}\",group=\"{group}\",version=\"{version}\",\
                 resource=\"{resource}\",subresource=\"{subresource}\",code=\"{code}\"}}"
            );
            (labels, count)
        });
        section(
            "apiserver_request_total",
            "counter",
            "Answered requests by verb, resource and HTTP status code.",
            &requests.collect::<Vec<_>>(),
        );
        let gauge = |value: &AtomicU64| vec![(String::new(), value.load(Ordering::Relaxed))];
        section("apiserver_longrunning_requests", "gauge", "Open watches.", &gauge(&self.watches));
        section(
            "apiserver_open_connections",
            "gauge",
            "Open connections.",
            &gauge(&self.connections),
        );
        section(
            "apiserver_watch_events_bytes_total",
            "counter",
            "Bytes sent in watch events.",
            &gauge(&self.watch_bytes),
        );
        let objects: Vec<_> = server
            .stored_kinds()
            .iter()
            .enumerate()
            .map(|(id, kind)| {
                let resource = server.store().resource(crate::store::ResourceId(id as u16));
                let name = kind.qualified_resource();
                (format!("{{resource=\"{name}\"}}"), resource.len() as u64)
            })
            .collect();
        section("apiserver_storage_objects", "gauge", "Stored objects by resource.", &objects);
        section(
            "apiserver_storage_revision",
            "gauge",
            "The resourceVersion of the latest write.",
            &[(String::new(), server.store().revision())],
        );
        text
    }
}

fn verb_of(method: &http::Method) -> &'static str {
    match *method {
        http::Method::GET => "get",
        http::Method::HEAD => "head",
        http::Method::POST => "post",
        http::Method::PUT => "put",
        http::Method::PATCH => "patch",
        http::Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_as_rbac_tells_them() {
        for (method, uri, wanted) in [
            ("GET", "/api/v1/pods", "list  pods "),
            ("GET", "/api/v1/namespaces/a/pods?watch=true", "watch  pods "),
            ("GET", "/api/v1/namespaces/a/pods/b", "get  pods "),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b/status",
                "patch apps deployments status",
            ),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/replicasets",
                "deletecollection apps replicasets ",
            ),
            ("POST", "/api/v1/namespaces/a/pods/b/eviction", "create  pods eviction"),
            ("GET", "/healthz", "get   "),
            ("GET", "/apis/invented/v1/things", "get   "),
            ("BREW", "/coffee", "other   "),
        ] {
            let method = http::Method::from_bytes(method.as_bytes()).unwrap();
            let Subject { verb, group, resource, subresource, .. } =
                Subject::of(&method, &uri.parse().unwrap());
            assert_eq!(format!("{verb} {group} {resource} {subresource}"), wanted, "{uri}");
        }
    }
}
