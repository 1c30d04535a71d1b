//! The `Status` object: how the server says no, with Kubernetes' codes, reasons and words.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::field::FieldErrors;
use super::kind::Kind;

/// The largest request body, as upstream's default.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

const MODIFIED: &str = "the object has been modified; \
    please apply your changes to the latest version and try again";

/// A machine-readable class of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Reason {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
}

impl Reason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Expired => "Expired",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::ServerTimeout => "ServerTimeout",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
        }
    }

    /// The HTTP status code that goes with it.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Gone | Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::ServerTimeout => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
        }
    }
}

/// One of the causes in the details of a Status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// A machine-readable word; empty when there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What happened, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// What a Status is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Resource (or, for `Invalid`, kind).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Uid of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// More exact reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again; 0 says nothing about it.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

fn is_zero(seconds: &u32) -> bool {
    *seconds == 0
}

/// A refusal, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The class of failure.
    pub reason: Reason,
    /// What happened, for people.
    pub message: String,
    /// What it is about; absent where upstream sends none.
    pub details: Option<Box<Details>>,
    /// A token with which an expired list can be continued, inconsistently.
    pub continue_token: Option<String>,
}

impl Status {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        self.reason.code()
    }

    /// Seconds for a `Retry-After` header, if the Status asks for one.
    pub fn retry_after(&self) -> Option<u32> {
        self.details.as_ref().map(|d| d.retry_after_seconds).filter(|s| *s > 0)
    }

    /// The Status as a JSON object.
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), json!(token));
        }
        let mut value = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason.as_str(),
            "code": self.code(),
        });
        if let (Some(details), Some(map)) = (&self.details, value.as_object_mut()) {
            map.insert("details".to_owned(), json!(details));
        }
        value
    }

    /// The Status that says an object was deleted.
    pub fn deleted(kind: &Kind, name: &str, uid: &str) -> Value {
        let details = Details { uid: uid.to_owned(), ..about(kind, name) };
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        })
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(Reason::BadRequest, message)
    }

    /// 401: who is asking is not known.
    pub fn unauthorized() -> Self {
        Self::plain(Reason::Unauthorized, "Unauthorized")
    }

    /// 403: not allowed, for the reason given.
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.qualified_resource();
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} \"{name}\" is forbidden: {why}")
        };
        Self::with(Reason::Forbidden, message, about(kind, name))
    }

    /// 403: the request is not allowed, whatever it is about.
    pub fn forbidden_request(message: impl Into<String>) -> Self {
        Self::plain(Reason::Forbidden, message)
    }

    /// 403: the namespace takes no new objects because it is going away.
    pub fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut status = Self::forbidden(kind, name, &why);
        if let Some(details) = &mut status.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            });
        }
        status
    }

    /// 404: there is no such object.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified_resource());
        Self::with(Reason::NotFound, message, about(kind, name))
    }

    /// 404: there is no such path or resource.
    pub fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::with(Reason::NotFound, message, Details::default())
    }

    /// 405: the path exists, but not with this HTTP method.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::with(Reason::MethodNotAllowed, message, Details::default())
    }

    /// 405: the kind does not have this verb.
    pub fn method_not_supported(kind: &Kind, verb: &str) -> Self {
        let resource = kind.qualified_resource();
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::with(Reason::MethodNotAllowed, message, about(kind, ""))
    }

    /// 406: none of the accepted media types can be produced.
    pub fn not_acceptable(produced: &[&str]) -> Self {
        let list = produced.join(", ");
        let message = format!("only the following media types are accepted: {list}");
        Self::plain(Reason::NotAcceptable, message)
    }

    /// 409: the name is taken; `terminating` if its holder is on the way out.
    pub fn already_exists(kind: &Kind, name: &str, terminating: bool) -> Self {
        let prefix = if terminating { "object is being deleted: " } else { "" };
        let resource = kind.qualified_resource();
        let message = format!("{prefix}{resource} \"{name}\" already exists");
        Self::with(Reason::AlreadyExists, message, about(kind, name))
    }

    /// 409: every generated name was taken.
    pub fn generate_name_conflict(kind: &Kind, name: &str) -> Self {
        let message = format!(
            "{} \"{name}\" already exists, \
             the server was not able to generate a unique name for the object",
            kind.qualified_resource()
        );
        let details = Details { retry_after_seconds: 1, ..about(kind, name) };
        Self::with(Reason::AlreadyExists, message, details)
    }

    /// 409: the object is not what the writer thought, for the reason given.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.qualified_resource();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::with(Reason::Conflict, message, about(kind, name))
    }

    /// 409: the resourceVersion of the writer is not the latest.
    pub fn modified(kind: &Kind, name: &str) -> Self {
        Self::conflict(kind, name, MODIFIED)
    }

    /// 409: a uid precondition does not hold.
    pub fn uid_precondition(kind: &Kind, name: &str, wanted: &str, found: &str) -> Self {
        let why = format!(
            "Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        );
        Self::conflict(kind, name, &why)
    }

    /// 409: a resourceVersion precondition does not hold.
    pub fn version_precondition(kind: &Kind, name: &str, wanted: &str, found: &str) -> Self {
        let why = format!(
            "Precondition failed: ResourceVersion in precondition: {wanted}, \
             ResourceVersion in object meta: {found}"
        );
        Self::conflict(kind, name, &why)
    }

    /// 409: another manager owns fields that an apply wants to change.
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Cause>) -> Self {
        Self::with(Reason::Conflict, message, Details { causes, ..Details::default() })
    }

    /// 410: a watch asked for versions that are no longer kept.
    pub fn expired_watch() -> Self {
        Self::plain(Reason::Expired, "The resourceVersion for the provided watch is too old.")
    }

    /// 410: a watch asked for versions that are no longer kept, with the numbers.
    pub fn too_old(requested: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {requested} ({oldest})");
        Self::plain(Reason::Expired, message)
    }

    /// 410: a list asked for a version that is no longer kept.
    pub fn expired_list() -> Self {
        Self::plain(Reason::Expired, "The resourceVersion for the provided list is too old.")
    }

    /// 410: a continue token is too old; `token` continues without consistency.
    pub fn expired_continue(token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list \
            result. You can start a new list without the continue parameter, or use the continue \
            token in this response to retrieve the remainder of the results. Continuing with the \
            provided token results in an inconsistent list - objects that were created, modified, \
            or deleted between the time the first chunk was returned and now may show up in the \
            list.";
        Self { continue_token: Some(token), ..Self::plain(Reason::Expired, message) }
    }

    /// 413: the body is larger than the limit.
    pub fn request_entity_too_large() -> Self {
        let message = format!("Request entity too large: limit is {MAX_BODY_BYTES}");
        Self::plain(Reason::RequestEntityTooLarge, message)
    }

    /// 415: the body has a media type that is not understood.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::plain(Reason::UnsupportedMediaType, message)
    }

    /// 422: the object breaks the rules of its kind.
    pub fn invalid(kind: &Kind, name: &str, errors: &FieldErrors) -> Self {
        Self::invalid_kind(kind.group, kind.kind, name, errors)
    }

    /// 422 for something that is not one of the served kinds (a patch, query options).
    pub fn invalid_kind(group: &str, kind: &str, name: &str, errors: &FieldErrors) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = if errors.is_empty() {
            format!("{qualified} \"{name}\" is invalid")
        } else {
            format!("{qualified} \"{name}\" is invalid: {}", errors.message())
        };
        let details = Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes: errors.causes(),
            ..Details::default()
        };
        Self::with(Reason::Invalid, message, details)
    }

    /// 429: too much at once.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let details = Details { retry_after_seconds, ..Details::default() };
        Self::with(Reason::TooManyRequests, message, details)
    }

    /// 500: the server failed.
    pub fn internal(why: &str) -> Self {
        let cause = Cause { message: why.to_owned(), ..Cause::default() };
        let details = Details { causes: vec![cause], ..Details::default() };
        Self::with(Reason::InternalError, format!("Internal error occurred: {why}"), details)
    }

    /// 503: the server cannot answer now.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::plain(Reason::ServiceUnavailable, message)
    }

    /// 504: the request took too long.
    pub fn timeout(message: &str) -> Self {
        Self::with(Reason::Timeout, format!("Timeout: {message}"), Details::default())
    }

    /// 504: the version asked for is not there yet.
    pub fn version_too_large(requested: u64, current: u64) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            ..Cause::default()
        };
        let message =
            format!("Timeout: Too large resource version: {requested}, current: {current}");
        let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
        Self::with(Reason::Timeout, message, details)
    }

    fn plain(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), details: None, continue_token: None }
    }

    fn with(reason: Reason, message: impl Into<String>, details: Details) -> Self {
        Self { details: Some(Box::new(details)), ..Self::plain(reason, message) }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.reason.as_str(), self.code(), self.message)
    }
}

impl std::error::Error for Status {}

fn about(kind: &Kind, name: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: kind.group.to_owned(),
        kind: kind.plural.to_owned(),
        ..Details::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kind;

    fn deployments() -> &'static Kind {
        kind::find("apps", "v1", "deployments").expect("served")
    }

    fn pods() -> &'static Kind {
        kind::find("", "v1", "pods").expect("served")
    }

    #[test]
    fn refusals_have_upstreams_codes_and_words() {
        let cases = [
            (Status::not_found(deployments(), "web"), 404, "deployments.apps \"web\" not found"),
            (Status::not_found(pods(), "a"), 404, "pods \"a\" not found"),
            (
                Status::already_exists(deployments(), "web", false),
                409,
                "deployments.apps \"web\" already exists",
            ),
            (
                Status::already_exists(pods(), "a", true),
                409,
                "object is being deleted: pods \"a\" already exists",
            ),
            (
                Status::modified(deployments(), "web"),
                409,
                "Operation cannot be fulfilled on deployments.apps \"web\": the object has been \
                 modified; please apply your changes to the latest version and try again",
            ),
            (
                Status::forbidden(
                    pods(),
                    "a",
                    "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2",
                ),
                403,
                "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, \
                 limited: pods=2",
            ),
            (
                Status::version_too_large(9, 3),
                504,
                "Timeout: Too large resource version: 9, current: 3",
            ),
            (Status::request_entity_too_large(), 413, "Request entity too large: limit is 3145728"),
        ];
        for (status, code, message) in cases {
            assert_eq!((status.code(), status.message.as_str()), (code, message));
        }
    }

    #[test]
    fn an_invalid_object_lists_its_causes() {
        let mut errors = FieldErrors::new();
        errors.invalid(&"spec.replicas".into(), -1, "must be greater than or equal to 0");
        errors.required(&"spec.selector".into(), "");
        let value = Status::invalid(deployments(), "web", &errors).to_value();
        assert_eq!(
            value,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Deployment.apps \"web\" is invalid: [spec.replicas: Invalid value: -1: \
                    must be greater than or equal to 0, spec.selector: Required value]",
                "reason": "Invalid",
                "details": {
                    "name": "web", "group": "apps", "kind": "Deployment",
                    "causes": [
                        {"reason": "FieldValueInvalid", "field": "spec.replicas",
                         "message": "Invalid value: -1: must be greater than or equal to 0"},
                        {"reason": "FieldValueRequired", "field": "spec.selector",
                         "message": "Required value"},
                    ],
                },
                "code": 422,
            })
        );
    }

    #[test]
    fn a_terminating_namespace_is_named_in_the_cause() {
        let status = Status::namespace_terminating(pods(), "a", "ns1");
        assert!(status.message.ends_with(
            "unable to create new content in namespace ns1 because it is being terminated"
        ));
        let value = status.to_value();
        assert_eq!(
            value["details"]["causes"],
            json!([{"reason": "NamespaceTerminating", "field": "metadata.namespace",
                    "message": "namespace ns1 is being terminated"}])
        );
    }
}
