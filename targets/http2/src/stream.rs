//! One stream: a request and its response.

use crate::error::Reset;
use crate::frame::ErrorCode;
use crate::window::{ReceiveWindow, SendWindow};

/// Names a stream of a connection. It stays the name of this stream for ever: when the stream is over, calls
/// with it do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StreamKey {
    pub(crate) slot: u8,
    pub(crate) id: u32,
}

impl StreamKey {
    /// Which of the connection's `N` streams it is, for a table of the caller's. When a stream is over and
    /// that was told by an event (or it was cancelled), the next one may get its place.
    pub fn slot(self) -> usize {
        usize::from(self.slot)
    }

    /// The stream's number on the wire.
    pub fn id(self) -> u32 {
        self.id
    }
}

/// How far the response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is no stream in this place.
    Free,
    /// No head has come yet.
    Head,
    /// The head has come.
    Body,
    /// It is over. Something is left to tell: an event, or a reset, or both.
    Over,
}

/// How a stream ended, which the caller has yet to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)] // so that nothing is zero
pub(crate) enum Outcome {
    Nothing,
    End,
    Reset(Reset),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) phase: Phase,
    /// Our side is still open.
    pub(crate) is_sending: bool,
    /// A response that has no body, whatever its head says (RFC 9110 §6.4.1).
    pub(crate) is_bodiless: bool,
    /// The head said how long the body is: so much of it is still to come.
    pub(crate) has_length: bool,
    pub(crate) expected: u64,
    pub(crate) outcome: Outcome,
    /// RST_STREAM is to be sent, with this code.
    pub(crate) reset: Option<ErrorCode>,
    pub(crate) send_window: SendWindow,
    pub(crate) receive_window: ReceiveWindow,
}

impl Stream {
    pub(crate) const FREE: Self = Self {
        id: 0,
        phase: Phase::Free,
        is_sending: false,
        is_bodiless: false,
        has_length: false,
        expected: 0,
        outcome: Outcome::Nothing,
        reset: None,
        send_window: SendWindow::ZERO,
        receive_window: ReceiveWindow::ZERO,
    };

    /// Whether frames about it mean something.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Head | Phase::Body)
    }

    /// The response is complete. If our side is not, the server is told that no more will come (§8.1).
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Over;
        self.outcome = Outcome::End;
        self.reset = self.is_sending.then_some(ErrorCode::CANCEL);
    }

    /// The server will send no more of it.
    pub(crate) fn fail(&mut self, why: Reset) {
        self.phase = Phase::Over;
        self.outcome = Outcome::Reset(why);
    }

    /// The server broke a rule that concerns only this stream: it is told so (§5.4.2), unless both sides have
    /// ended the stream, after which nothing may be said about it (§5.1).
    pub(crate) fn fault(&mut self, why: Reset, code: ErrorCode, is_ended: bool) {
        self.fail(why);
        self.reset = (self.is_sending || !is_ended).then_some(code);
    }

    /// The caller has lost interest, and will not be told anything more.
    pub(crate) fn cancel(&mut self) {
        if self.is_live() {
            self.reset = Some(ErrorCode::CANCEL);
            self.phase = Phase::Over;
        }
        self.outcome = Outcome::Nothing;
        self.settle();
    }

    /// Makes room if nothing is left to tell.
    pub(crate) fn settle(&mut self) {
        if self.phase == Phase::Over && self.outcome == Outcome::Nothing && self.reset.is_none() {
            *self = Self::FREE;
        }
    }
}
