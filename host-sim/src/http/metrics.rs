//! Counters for `/metrics`, in the names that kube-apiserver uses.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::server::Server;

/// What the server has done since it was started.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    watch_bytes: AtomicU64,
    pub(super) watches: AtomicU64,
    pub(super) connections: AtomicU64,
}

impl Metrics {
    /// Counts an answered request.
    pub(super) fn answered(&self, verb: &'static str, code: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((verb, code)).or_default() += 1;
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
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let requests: Vec<_> = requests
            .into_iter()
            .map(|((verb, code), count)| (format!("{{verb=\"{verb}\",code=\"{code}\"}}"), count))
            .collect();
        section(
            "apiserver_request_total",
            "counter",
            "Answered requests by verb and HTTP status code.",
            &requests,
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
