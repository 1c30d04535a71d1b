//! Those who have one request under way at a time, and no keys: the recorder of events.

use core::fmt;

use crate::event::{Recorder, Sending};
use crate::limits::Target;
use crate::request::{ContentType, Failure, Method};
use crate::text::Interner;
use crate::time::Instant;

/// Somebody with one request at a time.
pub(super) trait Client {
    /// What is to be sent now, if anything. The same until it is answered.
    fn poll(&mut self, texts: &mut Interner, now: Instant) -> Option<(Method, ContentType)>;

    /// Which component sends it.
    fn component(&self) -> Option<&'static str>;

    /// Writes the path of the request at hand.
    fn write_target(&self, texts: &Interner, target: &mut Target) -> fmt::Result;

    /// Writes the body of the request at hand.
    fn write_body(&self, texts: &Interner, out: &mut dyn fmt::Write) -> fmt::Result;

    /// The server has answered with this status, or not at all. `random` is a fresh uniform number.
    fn answered(
        &mut self,
        texts: &mut Interner,
        end: Result<u16, Failure>,
        now: Instant,
        random: u32,
    );

    /// When there is something to send, if there is.
    fn poll_at(&self) -> Option<Instant>;
}

/// The request of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientRequest {
    /// It is under way under this number.
    pub(super) serial: Option<u16>,
    /// HTTP status of the answer; 0 before its head.
    pub(super) status: u16,
    /// When it has to be given up.
    pub(super) expires_at: Option<Instant>,
}

impl ClientRequest {
    pub(super) const NONE: Self = Self { serial: None, status: 0, expires_at: None };
}

impl Client for Recorder {
    fn poll(&mut self, texts: &mut Interner, now: Instant) -> Option<(Method, ContentType)> {
        Some(match self.poll(texts, now)? {
            Sending::Create => (Method::Post, ContentType::Json),
            Sending::Count => (Method::Patch, ContentType::StrategicMergePatch),
        })
    }

    fn component(&self) -> Option<&'static str> {
        self.component()
    }

    fn write_target(&self, texts: &Interner, target: &mut Target) -> fmt::Result {
        self.write_target(texts, target)
    }

    fn write_body(&self, texts: &Interner, out: &mut dyn fmt::Write) -> fmt::Result {
        self.write_body(texts, out)
    }

    fn answered(
        &mut self,
        texts: &mut Interner,
        end: Result<u16, Failure>,
        now: Instant,
        random: u32,
    ) {
        match end {
            Ok(status) => self.answered(texts, status),
            Err(_) => self.failed(texts, now, random),
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        self.poll_at()
    }
}
