//! What the manager asks the driver to send, and what the driver reports back.
//!
//! A request is owned and bounded: it can cross an `await` while the manager goes on with other
//! keys. Its body is one of three: none; a small document that [`Manager::write_body`] writes on
//! demand; or a [`Splice`], which streams a source object into the new body.
//!
//! [`Manager::write_body`]: crate::manager::Manager::write_body

use core::fmt;

use crate::limits::Target;
use crate::splice::Splice;
use crate::time::Timestamp;

/// Tells which request an answer belongs to. Good for one request: when that has ended, a late
/// answer under the same ticket is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ticket {
    pub(crate) lane: u8,
    pub(crate) serial: u16,
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Method {
    /// GET
    Get = 1,
    /// POST
    Post,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

impl Method {
    /// The name of the verb.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// `Content-Type` of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ContentType {
    /// A whole object, or options.
    Json = 1,
    /// A JSON merge patch.
    MergePatch,
    /// A strategic merge patch: lists merge by key.
    StrategicMergePatch,
    /// A list of operations.
    JsonPatch,
}

impl ContentType {
    /// The media type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MergePatch => "application/merge-patch+json",
            Self::StrategicMergePatch => "application/strategic-merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
        }
    }
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The number under which everything about this request is reported.
    pub ticket: Ticket,
    /// The verb.
    pub method: Method,
    /// Path and query.
    pub target: Target,
    /// What the body is, if there is one.
    pub content_type: ContentType,
    /// The body.
    pub body: Body,
}

/// The head of a response: what of it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ResponseHead {
    /// The HTTP status.
    pub status: u16,
    /// `Date`: the server's clock is the only one.
    pub date: Option<Timestamp>,
    /// `Retry-After` in seconds.
    pub retry_after: Option<u32>,
}

impl ResponseHead {
    /// A head with the texts of its headers `Date` and `Retry-After`. One that is not understood is as
    /// good as none.
    pub fn new(status: u16, date: Option<&[u8]>, retry_after: Option<&[u8]>) -> Self {
        let seconds = |text| core::str::from_utf8(text).ok()?.trim().parse().ok();
        Self {
            status,
            date: date.and_then(Timestamp::parse_http_date),
            retry_after: retry_after.and_then(seconds),
        }
    }

    /// A head without headers.
    pub const fn of_status(status: u16) -> Self {
        Self { status, date: None, retry_after: None }
    }
}

/// The body of a request.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is no allocator to box with")]
pub enum Body {
    /// None.
    Empty,
    /// A small document: [`Manager::write_body`](crate::manager::Manager::write_body) writes it, the same
    /// each time, as long as the request has not ended.
    Document,
    /// A document made of another one while that streams by.
    Splice(Splice),
}

/// How a request failed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Failure {
    /// Nothing reached the server, or not to its end: the request has had no effect.
    NotSent,
    /// The request was sent but no complete answer came: the server may have acted.
    Ambiguous,
    /// The source of a [`Splice`] could not be read: the server answered with this status.
    Source(u16),
    /// The source of a [`Splice`] is not what it was. Nothing was written.
    SourceChanged,
}

impl Failure {
    /// What happened, for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotSent => "the request could not be sent",
            Self::Ambiguous => "no complete answer came",
            Self::Source(_) => "the source object could not be read",
            Self::SourceChanged => "the source object has changed meanwhile",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match self {
            Self::Source(status) => write!(f, ": {status}"),
            Self::NotSent | Self::Ambiguous | Self::SourceChanged => Ok(()),
        }
    }
}
