//! Events of the audit log: audit.k8s.io/v1 at level Metadata, one JSON object a line.
//!
//! Bodies are never in it. What a refusal says about a Secret may quote the Secret, so that only
//! code and reason are kept.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::server::request::ResourceTarget;
use crate::time;

use super::record::Record;

/// Upstream's mark for what was cut off.
const TRUNCATED: &str = "...TRUNCATED";

/// A refusal may quote what was sent; so much of it is kept.
const MAX_MESSAGE: usize = 1024;

/// Details of a refusal beyond this size lose their causes.
const MAX_DETAILS: usize = 4096;

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Stage {
    /// The head of an answer that goes on for long was sent.
    ResponseStarted,
    /// Nothing more will be sent.
    ResponseComplete,
}

/// What the body of a request says about the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
}

impl ObjectMeta {
    pub(super) fn of(object: &Value) -> Self {
        let text = |field: &str| {
            shortened(object["metadata"][field].as_str().unwrap_or_default(), MAX_MESSAGE)
        };
        Self {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
        }
    }
}

/// An event, in the order in which kube-apiserver writes its fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'static str,
    user: UserInfo<'a>,
    #[serde(rename = "sourceIPs")]
    source_ips: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<ObjectReference<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<ResponseStatus>,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Value>,
}

#[derive(Default, Serialize)]
struct UserInfo<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReference<'a> {
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: &'a str,
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
}

#[derive(Debug, Serialize)]
struct ResponseStatus {
    metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "Value::is_null")]
    status: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Value::is_null")]
    reason: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    details: Value,
    code: u16,
}

/// The line for a request.
pub(super) fn event(record: &Record, stage: Stage) -> Vec<u8> {
    let user = record.user.as_ref();
    let is_secret = record.target.as_ref().is_some_and(|target| target.kind.kind == "Secret");
    let status = |code| ResponseStatus::of(code, record.refusal.as_ref(), is_secret);
    let event = Event {
        kind: "Event",
        api_version: "audit.k8s.io/v1",
        level: "Metadata",
        audit_id: &record.audit_id,
        stage,
        request_uri: &record.uri,
        verb: record.verb,
        user: user.map_or_else(UserInfo::default, |user| UserInfo {
            username: &user.name,
            groups: &user.groups,
            extra: user.extra(),
        }),
        source_ips: &record.source_ips,
        user_agent: &record.user_agent,
        object_ref: record.target.as_ref().map(|target| ObjectReference::of(target, &record.object)),
        response_status: record.status.map(status),
        request_received_timestamp: time::micro_time(record.received),
        stage_timestamp: time::micro_time(SystemTime::now()),
        // Whoever is known may do everything.
        annotations: user.map(|_| {
            json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""})
        }),
    };
    let mut line = serde_json::to_vec(&event).unwrap_or_default();
    line.push(b'\n');
    line
}

impl<'a> ObjectReference<'a> {
    /// What the path names, and what it leaves to the body.
    fn of(target: &'a ResourceTarget, given: &'a ObjectMeta) -> Self {
        let or = |path: &'a str, body: &'a str| if path.is_empty() { body } else { path };
        Self {
            resource: target.kind.plural,
            // In the path of a namespace, its name is the namespace as well.
            namespace: match target.kind.kind {
                "Namespace" => &target.name,
                _ => or(&target.namespace, &given.namespace),
            },
            name: or(&target.name, &given.name),
            uid: &given.uid,
            api_group: target.kind.group,
            api_version: target.kind.version,
            resource_version: &given.resource_version,
            subresource: &target.subresource,
        }
    }
}

impl ResponseStatus {
    fn of(code: u16, refusal: Option<&Value>, is_secret: bool) -> Self {
        let mut status = Self {
            metadata: Map::new(),
            status: Value::Null,
            message: None,
            reason: Value::Null,
            details: Value::Null,
            code,
        };
        let Some(refusal) = refusal.filter(|refusal| refusal["kind"] == "Status") else {
            return status;
        };
        (status.status, status.reason) = (refusal["status"].clone(), refusal["reason"].clone());
        if !is_secret {
            status.message = refusal["message"].as_str().map(|text| shortened(text, MAX_MESSAGE));
            status.details = refusal["details"].clone();
            if status.details.to_string().len() > MAX_DETAILS {
                status.details.as_object_mut().map(|details| details.remove("causes"));
            }
        }
        status
    }
}

/// At most `most` bytes of a text, and a mark if there was more.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{TRUNCATED}", text.get(..end).unwrap_or_default())
}

/// Ids of requests: UUIDs that nobody can foresee, or what the client has chosen.
#[derive(Debug)]
pub(super) struct AuditIds(Mutex<Random>);

impl AuditIds {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Random::from_entropy()))
    }

    /// The id of a request with these headers.
    pub(super) fn id(&self, headers: &http::HeaderMap) -> String {
        let given = headers.get("audit-id").and_then(|value| value.to_str().ok());
        match given.filter(|given| !given.is_empty()) {
            Some(given) => given.to_owned(),
            None => self.0.lock().unwrap_or_else(PoisonError::into_inner).uuid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, refusal: Option<&Value>, is_secret: bool) -> Value {
        json!(ResponseStatus::of(code, refusal, is_secret))
    }

    #[test]
    fn refusals_are_told_but_not_what_they_quote_of_a_secret() {
        let refusal = json!({
            "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422,
            "message": "Secret \"s\" is invalid: data: Invalid value: \"hunter2\"",
            "details": {"name": "s", "causes": [{"message": "Invalid value: \"hunter2\""}]},
        });
        let open = status(422, Some(&refusal), false);
        assert_eq!((&open["reason"], &open["message"]), (&refusal["reason"], &refusal["message"]));
        let hidden = status(422, Some(&refusal), true).to_string();
        assert!(hidden.contains("Invalid") && !hidden.contains("hunter2"), "{hidden}");
        assert_eq!(status(200, None, false), json!({"metadata": {}, "code": 200}));
    }

    #[test]
    fn lines_stay_short_whatever_is_refused() {
        let causes: Vec<_> = (0..10_000).map(|_| json!({"message": "no"})).collect();
        let refusal = json!({
            "kind": "Status", "message": "ä".repeat(100_000), "details": {"causes": causes},
        });
        assert!(status(422, Some(&refusal), false).to_string().len() < 2 * MAX_DETAILS);
    }
}
