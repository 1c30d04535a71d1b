//! `v1` Status: how the API server says no.

use super::project::{Fault, Value};
use super::table::{Field, FieldTable, Rule};
use crate::limits;
use heapless::String;

/// A Status as it came in an answer or in a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The document is a Status, and not the object that was asked for.
    pub is_present: bool,
    /// The HTTP code; 0 when the body did not tell.
    pub code: u16,
    /// Why, for machines.
    pub reason: StatusReason,
    /// Why, for people, cut off at 256 bytes.
    pub message: String<{ limits::MESSAGE }>,
    /// `details.causes` has `NamespaceTerminating`.
    pub namespace_terminating: bool,
    /// `details.causes` has `ResourceVersionTooLarge`.
    pub resource_version_too_large: bool,
    /// `details.retryAfterSeconds`
    pub retry_after_seconds: Option<u32>,
}

/// `reason` of a Status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StatusReason {
    /// None given, or one that nothing here depends on.
    #[default]
    Unknown,
    /// 400
    BadRequest,
    /// 401
    Unauthorized,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 406
    NotAcceptable,
    /// 409 on create
    AlreadyExists,
    /// 409 on update
    Conflict,
    /// 410, of old servers
    Gone,
    /// 410
    Expired,
    /// 413
    RequestEntityTooLarge,
    /// 415
    UnsupportedMediaType,
    /// 422
    Invalid,
    /// 429
    TooManyRequests,
    /// 500
    InternalError,
    /// 500, worth another try
    ServerTimeout,
    /// 503
    ServiceUnavailable,
    /// 504
    Timeout,
}

impl StatusReason {
    /// The reason of this name.
    pub fn parse(text: &str) -> Self {
        match text {
            "BadRequest" => Self::BadRequest,
            "Unauthorized" => Self::Unauthorized,
            "Forbidden" => Self::Forbidden,
            "NotFound" => Self::NotFound,
            "MethodNotAllowed" => Self::MethodNotAllowed,
            "NotAcceptable" => Self::NotAcceptable,
            "AlreadyExists" => Self::AlreadyExists,
            "Conflict" => Self::Conflict,
            "Gone" => Self::Gone,
            "Expired" => Self::Expired,
            "RequestEntityTooLarge" => Self::RequestEntityTooLarge,
            "UnsupportedMediaType" => Self::UnsupportedMediaType,
            "Invalid" => Self::Invalid,
            "TooManyRequests" => Self::TooManyRequests,
            "InternalError" => Self::InternalError,
            "ServerTimeout" => Self::ServerTimeout,
            "ServiceUnavailable" => Self::ServiceUnavailable,
            "Timeout" => Self::Timeout,
            _ => Self::Unknown,
        }
    }
}

/// A Status, or, where that is what came, an object: no kind has these members of its own.
pub(super) static STATUS: FieldTable = FieldTable::new(&[
    ("kind", Rule::Keep(Field::Kind)),
    ("code", Rule::Keep(Field::Code)),
    ("reason", Rule::Keep(Field::Reason)),
    ("message", Rule::Keep(Field::Message)),
    ("details", Rule::Object(Field::Details, &DETAILS)),
]);

static DETAILS: FieldTable = FieldTable::new(&[
    ("retryAfterSeconds", Rule::Keep(Field::RetryAfterSeconds)),
    ("causes", Rule::Each(Field::Cause, &CAUSE)),
]);

static CAUSE: FieldTable = FieldTable::new(&[("reason", Rule::Keep(Field::CauseType))]);

impl Status {
    /// No Status.
    pub const EMPTY: Self = Self {
        is_present: false,
        code: 0,
        reason: StatusReason::Unknown,
        message: String::new(),
        namespace_terminating: false,
        resource_version_too_large: false,
        retry_after_seconds: None,
    };

    pub(super) fn clear(&mut self) {
        self.is_present = false;
        self.code = 0;
        self.reason = StatusReason::Unknown;
        self.message.clear();
        self.namespace_terminating = false;
        self.resource_version_too_large = false;
        self.retry_after_seconds = None;
    }

    /// Takes a field of a Status; `None` if the field is none of its.
    pub(super) fn keep(&mut self, field: Field, value: Value<'_>) -> Option<Result<(), Fault>> {
        Some(match field {
            Field::Kind => value.text().map(|kind| self.is_present = kind == "Status"),
            Field::Code => value.int().map(|code| self.code = code),
            Field::Reason => value.text().map(|reason| self.reason = StatusReason::parse(reason)),
            Field::Message => value.cut(&mut self.message),
            Field::RetryAfterSeconds => {
                value.int().map(|seconds| self.retry_after_seconds = Some(seconds))
            }
            Field::CauseType => value.text().map(|cause| match cause {
                "NamespaceTerminating" => self.namespace_terminating = true,
                "ResourceVersionTooLarge" => self.resource_version_too_large = true,
                _ => {}
            }),
            _ => return None,
        })
    }
}
