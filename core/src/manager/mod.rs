//! The whole: controllers over one cache, as a state machine without I/O.
//!
//! Read [`Manager`] first, then [`Request`]. A driver
//!
//! - runs one connection per watched [`Kind`]: [`Manager::poll_watch`] says what to send or
//!   close, [`Manager::handle_watch`] takes what comes back;
//! - runs some request connections: [`Manager::poll`] hands out requests as long as there is
//!   something to send, [`Manager::response_head`], [`response_body`](Manager::response_body) and
//!   [`response_end`](Manager::response_end) take the answers, in any order between tickets;
//! - calls `poll_watch` and `poll` again whenever something came in, and at
//!   [`Manager::poll_at`] at the latest.

mod registry;
mod request;
mod settings;

pub use registry::{Controller, Enabled, UnknownController};
pub use request::{
    Body, ContentType, Failure, Make, Method, ObjectName, Request, Splice, TARGET, Target, Ticket,
};
pub use settings::{Rate, Settings};

use core::fmt;

use crate::resources::Parts;
use crate::store::Kind;
use crate::time::{Instant, Timestamp};
use crate::watch;

/// The controllers, their cache and their requests.
#[derive(Debug)]
pub struct Manager<'a> {
    parts: Parts<'a>,
    settings: Settings,
}

impl<'a> Manager<'a> {
    /// Controllers that have not begun.
    pub fn new(parts: Parts<'a>, settings: Settings) -> Self {
        Self { parts, settings }
    }

    /// The next thing to do for the watch of a kind, if any. To be called until it returns
    /// `None`. `random` is a fresh uniform number.
    pub fn poll_watch(
        &mut self,
        kind: Kind,
        now: Instant,
        random: u32,
    ) -> Option<watch::Command<'_>> {
        let _ = (kind, now, random, &mut self.parts);
        None
    }

    /// Takes in what came back for a request of a watch. `random` is a fresh uniform number.
    pub fn handle_watch(
        &mut self,
        kind: Kind,
        now: Instant,
        random: u32,
        id: watch::RequestId,
        input: watch::Input<'_>,
    ) {
        let _ = (kind, now, random, id, input);
    }

    /// The server's `Date`, from the head of any response, those of watches included.
    pub fn set_date(&mut self, now: Instant, date: Timestamp) {
        let _ = (now, date);
    }

    /// The next request to send now, if any. To be called until it returns `None`, or while the
    /// driver has a connection to spare. `random` is a fresh uniform number.
    pub fn poll(&mut self, now: Instant, random: u32) -> Option<Request> {
        let _ = (now, random, &self.settings);
        None
    }

    /// When [`poll`](Self::poll) or [`poll_watch`](Self::poll_watch) has something to do, if
    /// nothing comes in before.
    pub fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// Writes a [`Body::Document`]. An error is that of `out`, or the object is gone: then the
    /// request cannot be sent any more ([`Failure::NotSent`]).
    pub fn write_body(&self, ticket: Ticket, out: &mut dyn fmt::Write) -> fmt::Result {
        let _ = (ticket, out);
        Err(fmt::Error)
    }

    /// The head of a response has come.
    pub fn response_head(
        &mut self,
        ticket: Ticket,
        now: Instant,
        status: u16,
        retry_after: Option<u32>,
    ) {
        let _ = (ticket, now, status, retry_after);
    }

    /// Bytes of the body of a response, cut anywhere.
    pub fn response_body(&mut self, ticket: Ticket, bytes: &[u8]) {
        let _ = (ticket, bytes);
    }

    /// The request has ended: with a complete response, or with a failure. The ticket is void.
    pub fn response_end(&mut self, ticket: Ticket, now: Instant, end: Result<(), Failure>) {
        let _ = (ticket, now, end);
    }
}
