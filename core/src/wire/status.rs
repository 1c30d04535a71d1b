//! `v1` Status: how the API server says no.

use crate::limits;
use heapless::String;

/// A Status as it came in an answer or in a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The HTTP code; 0 when the body did not tell.
    pub code: u16,
    /// Why, for machines.
    pub reason: Reason,
    /// Why, for people, cut off at 256 bytes.
    pub message: String<{ limits::MESSAGE }>,
    /// `details.name`: the object it is about.
    pub name: String<{ limits::NAME }>,
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
pub enum Reason {
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

impl Reason {
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
