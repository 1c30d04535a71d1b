//! What is known about a request, written to the access log and the audit log when it is over.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Result;
use http::HeaderMap;
use hyper::header;
use serde_json::Value;

use crate::server::call::{Body as CallBody, Call};
use crate::server::request::{ResourceTarget, Target, User};
use crate::server::response::{Body, Response};
use crate::time;

use super::audit::{self, ObjectMeta, Stage};
use super::log::{Log, LogTarget};
use super::metrics::Subject;

/// Upstream's limit for what a client says about itself.
const MAX_USER_AGENT: usize = 1024;

/// The logs that requests are written to.
#[derive(Debug, Default)]
pub struct Logs {
    audit: Option<Log>,
    access: Option<Log>,
}

impl Logs {
    /// Opens the logs that are wanted.
    pub fn open(audit: Option<&LogTarget>, access: Option<&LogTarget>) -> Result<Self> {
        Ok(Self {
            audit: audit.map(|target| Log::open("audit", target)).transpose()?,
            access: access.map(|target| Log::open("access", target)).transpose()?,
        })
    }

    /// Waits until everything is written, but not for ever.
    pub fn finish(&self) {
        [&self.audit, &self.access].into_iter().flatten().for_each(Log::finish);
    }

    /// The Prometheus text format, in kube-apiserver's names.
    pub(super) fn render(&self) -> String {
        let Some(audit) = &self.audit else { return String::new() };
        let (written, lost) = audit.counts();
        format!(
            "# HELP apiserver_audit_event_total Events written to the audit log.\n\
             # TYPE apiserver_audit_event_total counter\n\
             apiserver_audit_event_total {written}\n\
             # HELP apiserver_audit_error_total Events that the audit log has lost.\n\
             # TYPE apiserver_audit_error_total counter\n\
             apiserver_audit_error_total{{plugin=\"log\"}} {lost}\n"
        )
    }
}

/// A request and what became of it. It is written down when this is dropped: after the answer was
/// sent, or when the client has gone.
#[derive(Debug)]
pub(super) struct Record {
    logs: Arc<Logs>,
    pub(super) audit_id: String,
    pub(super) received: SystemTime,
    started: Instant,
    method: http::Method,
    pub(super) uri: String,
    pub(super) verb: &'static str,
    pub(super) target: Option<ResourceTarget>,
    pub(super) object: ObjectMeta,
    pub(super) user: Option<User>,
    pub(super) source_ips: Vec<String>,
    pub(super) user_agent: String,
    pub(super) status: Option<u16>,
    /// The Status object of a refusal.
    pub(super) refusal: Option<Value>,
    sent: u64,
}

impl Record {
    /// Begins a record; `None` if there is no log to write it to.
    pub(super) fn begin<B>(
        logs: &Arc<Logs>,
        request: &hyper::Request<B>,
        subject: Subject,
        peer: IpAddr,
        audit_id: &str,
    ) -> Option<Box<Self>> {
        if logs.audit.is_none() && logs.access.is_none() {
            return None;
        }
        let uri = request.uri();
        let target = match Target::parse(uri.path()) {
            Ok(Target::Resource(target)) => Some(target),
            _ => None,
        };
        Some(Box::new(Self {
            logs: logs.clone(),
            audit_id: audit_id.to_owned(),
            received: SystemTime::now(),
            started: Instant::now(),
            method: request.method().clone(),
            uri: uri.path_and_query().map_or_else(|| uri.to_string(), ToString::to_string),
            verb: subject.verb,
            target,
            object: ObjectMeta::default(),
            user: None,
            source_ips: source_ips(request.headers(), peer),
            user_agent: user_agent(request.headers()),
            status: None,
            refusal: None,
            sent: 0,
        }))
    }

    /// Takes note of what is to be written: names that are not in the path.
    pub(super) fn note_call(&mut self, call: &Call) {
        if let CallBody::Object(decoded) = &call.body {
            self.object = ObjectMeta::of(&decoded.object);
        }
    }

    /// Takes note of the answer, which is about to be sent.
    pub(super) fn note_response(&mut self, response: &Response) {
        self.status = Some(response.status);
        if let (400.., Body::Whole(bytes)) = (response.status, &response.body) {
            self.refusal = serde_json::from_slice(bytes).ok();
        }
        if let (Some(log), Body::Watch(_)) = (&self.logs.audit, &response.body) {
            log.write(audit::event(self, Stage::ResponseStarted));
        }
    }

    /// Takes note of bytes of the answer's body.
    pub(super) fn note_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// A line in logfmt, as kube-apiserver's own log of requests is.
    fn access_line(&self) -> Vec<u8> {
        let status = self.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let user = self.user.as_ref().map_or("-", |user| user.name.as_str());
        let source = self.source_ips.first().map_or("-", String::as_str);
        let millis = self.started.elapsed().as_secs_f64() * 1000.0;
        let line = format!(
            "time={} method={} uri={:?} verb={} status={status} bytes={} ms={millis:.3} user={user:?} \
             source={source} agent={:?} audit-id={:?}\n",
            time::micro_time(SystemTime::now()),
            self.method,
            self.uri,
            self.verb,
            self.sent,
            self.user_agent,
            self.audit_id,
        );
        line.into_bytes()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(log) = &self.logs.access {
            log.write(self.access_line());
        }
        if let Some(log) = &self.logs.audit {
            log.write(audit::event(self, Stage::ResponseComplete));
        }
    }
}

/// Who asks, as proxies on the way tell it, and then whoever is connected.
fn source_ips(headers: &HeaderMap, peer: IpAddr) -> Vec<String> {
    let listed = |name: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let addresses = values.flat_map(|value| value.split(','));
        addresses.filter_map(|text| text.trim().parse().ok()).collect::<Vec<IpAddr>>()
    };
    let mut all = listed("x-forwarded-for");
    all.extend(listed("x-real-ip").into_iter().find(|address| !all.contains(address)));
    let peer = peer.to_canonical();
    if all.last() != Some(&peer) {
        all.push(peer);
    }
    all.iter().map(ToString::to_string).collect()
}

fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    audit::shortened(agent.unwrap_or_default(), MAX_USER_AGENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_and_the_peer_are_told_in_order() {
        let mut headers = HeaderMap::new();
        let peer: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        assert_eq!(source_ips(&headers, peer), ["127.0.0.1"]);
        headers.append("x-forwarded-for", "192.0.2.1, 192.0.2.2, nonsense".parse().unwrap());
        headers.append("x-real-ip", "192.0.2.1".parse().unwrap());
        assert_eq!(source_ips(&headers, peer), ["192.0.2.1", "192.0.2.2", "127.0.0.1"]);
    }
}
