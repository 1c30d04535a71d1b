//! What is owed to the server.
//!
//! No frame is ever queued: what has to be said is kept as numbers, and becomes frames when there is room
//! for them.

use crate::frame::{ErrorCode, PREFACE, flag, kind, setting};
use crate::hpack::MAX_HEADER_LIST;
use crate::output::{Full, Output};

use super::{Connection, Stage};

/// How many pings may wait for their answer. A server that sends more at once wants no answers.
pub(super) const MAX_PINGS: usize = 4;
/// What our own pings carry.
const PING: [u8; 8] = *b"picokube";

#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    greeting: bool,
    pub(super) settings_acks: u8,
    pings: [[u8; 8]; MAX_PINGS],
    ping_count: u8,
    own_ping: OwnPing,
    go_away: Option<ErrorCode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnPing {
    None,
    Wanted,
    Sent,
}

impl Owed {
    pub(super) const NOTHING: Self = Self {
        greeting: false,
        settings_acks: 0,
        pings: [[0; 8]; MAX_PINGS],
        ping_count: 0,
        own_ping: OwnPing::None,
        go_away: None,
    };
    pub(super) const GREETING: Self = Self { greeting: true, ..Self::NOTHING };

    pub(super) fn ping(&mut self) {
        if self.own_ping == OwnPing::None {
            self.own_ping = OwnPing::Wanted;
        }
    }

    /// Whether this is the answer to a ping of ours.
    pub(super) fn pong(&mut self, payload: [u8; 8]) -> bool {
        let is_ours = self.own_ping == OwnPing::Sent && payload == PING;
        if is_ours {
            self.own_ping = OwnPing::None;
        }
        is_ours
    }

    /// Keeps a ping to be answered, if there is room.
    pub(super) fn answer(&mut self, payload: [u8; 8]) -> Option<()> {
        *self.pings.get_mut(usize::from(self.ping_count))? = payload;
        self.ping_count += 1;
        Some(())
    }

    pub(super) fn go_away(&mut self, code: ErrorCode) {
        self.go_away = Some(code);
    }

    /// Nothing matters any more but why, unless the server has not even heard of us.
    pub(super) fn fail(&mut self, code: ErrorCode) {
        let go_away = if self.greeting { None } else { Some(code) };
        *self = Self { go_away, ..Self::NOTHING };
    }

    fn is_any(&self) -> bool {
        self.greeting
            || self.settings_acks > 0
            || self.ping_count > 0
            || self.own_ping == OwnPing::Wanted
            || self.go_away.is_some()
    }
}

impl<const N: usize> Connection<N> {
    /// Whether [`write`](Self::write) has something to say. It should be called soon: a server waits for it.
    pub fn owes(&self) -> bool {
        match self.stage {
            Stage::Closed => return false,
            Stage::Failed(_) => return self.owed.go_away.is_some(),
            Stage::Greeting | Stage::Open => {}
        }
        let is_due = self.streams.iter().any(|stream| {
            stream.reset.is_some() || stream.is_live() && stream.receive_window.due().is_some()
        });
        is_due || self.owed.is_any() || self.receive_window.due().is_some()
    }

    /// Writes what is owed to the server, as far as there is room: [`owes`](Self::owes) tells whether
    /// something is left. After an error that is why the connection ends, after which it should be closed.
    pub fn write(&mut self, out: &mut Output<'_>) {
        // What does not fit is still owed.
        let _ = match self.stage {
            Stage::Closed => Ok(()),
            Stage::Failed(_) => self.write_go_away(out),
            Stage::Greeting | Stage::Open => self.write_all(out),
        };
    }

    fn write_all(&mut self, out: &mut Output<'_>) -> Result<(), Full> {
        self.acknowledge(out)?;
        while let Some(last) = self.owed.ping_count.checked_sub(1) {
            let payload = self.owed.pings.first().copied().unwrap_or_default();
            out.frame(kind::PING, flag::ACK, 0, &payload)?;
            // In the order in which they came.
            self.owed.pings.rotate_left(1);
            self.owed.ping_count = last;
        }
        self.write_go_away(out)?;
        self.write_resets(out)?;
        if let Some(increment) = self.receive_window.due() {
            out.frame(kind::WINDOW_UPDATE, 0, 0, &increment.to_be_bytes())?;
            self.receive_window.told();
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.is_live()) {
            if let Some(increment) = stream.receive_window.due() {
                out.frame(kind::WINDOW_UPDATE, 0, stream.id, &increment.to_be_bytes())?;
                stream.receive_window.told();
            }
        }
        if self.owed.own_ping == OwnPing::Wanted {
            out.frame(kind::PING, 0, 0, &PING)?;
            self.owed.own_ping = OwnPing::Sent;
        }
        Ok(())
    }

    /// What comes before everything else: our preface, and that we know the server's settings (RFC 9113
    /// §3.4 and §6.5.3). Only then may we use what they allow.
    pub(super) fn acknowledge(&mut self, out: &mut Output<'_>) -> Result<(), Full> {
        if self.owed.greeting {
            self.greet(out)?;
            self.owed.greeting = false;
        }
        while self.owed.settings_acks > 0 {
            out.frame(kind::SETTINGS, flag::ACK, 0, &[])?;
            self.owed.settings_acks -= 1;
        }
        Ok(())
    }

    fn greet(&self, out: &mut Output<'_>) -> Result<(), Full> {
        let settings = [
            (setting::HEADER_TABLE_SIZE, 0),
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, self.config.stream_window),
            (setting::MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST),
        ];
        out.all_or_nothing(|out| {
            out.put(PREFACE)?;
            out.frame_of(kind::SETTINGS, 0, 0, |out| {
                settings.iter().try_for_each(|(name, value)| {
                    out.put(&name.to_be_bytes())?;
                    out.put(&u32::to_be_bytes(*value))
                })
            })
        })?;
        Ok(())
    }

    /// Resets make room for other streams.
    pub(super) fn write_resets(&mut self, out: &mut Output<'_>) -> Result<(), Full> {
        for stream in &mut self.streams {
            if let Some(code) = stream.reset {
                out.frame(kind::RST_STREAM, 0, stream.id, &code.0.to_be_bytes())?;
                stream.reset = None;
                stream.settle();
            }
        }
        Ok(())
    }

    /// The last stream of the server's that we looked at is none: there are no pushes (§6.8).
    fn write_go_away(&mut self, out: &mut Output<'_>) -> Result<(), Full> {
        if let Some(code) = self.owed.go_away {
            let [a, b, c, d] = code.0.to_be_bytes();
            out.frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 0, a, b, c, d])?;
            self.owed.go_away = None;
        }
        Ok(())
    }
}
