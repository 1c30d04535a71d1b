//! What frames about the connection mean, and those that concern a stream as a whole.

use crate::error::{Breach, Error, Flood, Reset};
use crate::event::Event;
use crate::frame::{ErrorCode, MAX_MAX_PAYLOAD, MAX_PAYLOAD, flag, kind, setting};
use crate::window;

use super::{Connection, Stage};

impl<const N: usize> Connection<N> {
    /// All of a frame is there that is neither data nor headers.
    pub(super) fn end_of_control_frame<'i>(&mut self) -> Result<Option<Event<'i>>, Error> {
        let frame = self.input.frame;
        match frame.kind {
            kind::SETTINGS if frame.has(flag::ACK) => Ok(None),
            kind::SETTINGS => self.end_of_settings(),
            kind::PING => self.pinged(frame.has(flag::ACK)),
            kind::RST_STREAM => self.reset(),
            kind::WINDOW_UPDATE => self.window_update(),
            kind::GOAWAY => self.go_away().map(Some),
            _ => Ok(None),
        }
    }

    /// One setting of the server's (RFC 9113 §6.5.2). Those that are unknown are ignored.
    pub(super) fn setting(&mut self, name: u16, value: u32) -> Result<(), Error> {
        match name {
            setting::HEADER_TABLE_SIZE => self.encoder.set_limit(value),
            // Only clients may want pushes.
            setting::ENABLE_PUSH if value != 0 => return Err(Error::Protocol(Breach::Setting)),
            setting::MAX_CONCURRENT_STREAMS => self.peer.max_streams = value,
            setting::INITIAL_WINDOW_SIZE => return self.resize_windows(value),
            setting::MAX_FRAME_SIZE if (MAX_PAYLOAD..=MAX_MAX_PAYLOAD).contains(&value) => {
                self.peer.max_payload = value;
            }
            setting::MAX_FRAME_SIZE => return Err(Error::Protocol(Breach::Setting)),
            setting::MAX_HEADER_LIST_SIZE => self.peer.max_header_list = value,
            _ => {}
        }
        Ok(())
    }

    /// Windows of streams that are open change along (§6.9.2), that of the connection does not.
    fn resize_windows(&mut self, size: u32) -> Result<(), Error> {
        if size > window::MAX {
            return Err(Error::FlowControl);
        }
        let before = core::mem::replace(&mut self.peer.initial_window, size);
        let mut live = self.streams.iter_mut().filter(|stream| stream.is_live());
        live.try_for_each(|stream| stream.send_window.resize(before, size))
            .map_err(|_| Error::FlowControl)
    }

    fn end_of_settings<'i>(&mut self) -> Result<Option<Event<'i>>, Error> {
        let acks = self.owed.settings_acks.checked_add(1);
        self.owed.settings_acks = acks.ok_or(Error::Flood(Flood::Settings))?;
        if self.stage == Stage::Greeting {
            self.stage = Stage::Open;
            return Ok(Some(Event::Ready));
        }
        Ok(None)
    }

    /// §6.7: answered with the same content.
    fn pinged<'i>(&mut self, is_answer: bool) -> Result<Option<Event<'i>>, Error> {
        let payload = self.input.gathered();
        if is_answer {
            return Ok(self.owed.pong(payload).then_some(Event::Pong));
        }
        self.owed.answer(payload).ok_or(Error::Flood(Flood::Ping))?;
        Ok(None)
    }

    fn reset<'i>(&mut self) -> Result<Option<Event<'i>>, Error> {
        let id = self.input.frame.stream;
        let code = ErrorCode(u32::from_be_bytes(self.input.gathered()));
        let Some(key) = self.live_id(id) else {
            // If it crossed a reset of ours that is not sent yet, that need not be sent.
            if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
                stream.reset = None;
                stream.settle();
            }
            self.budget.spend(Flood::ClosedStreams)?;
            return Ok(None);
        };
        if let Some(stream) = self.live_mut(key) {
            // §8.7: by this code the server says that it did nothing.
            let is_unprocessed = code == ErrorCode::REFUSED_STREAM;
            stream.fail(if is_unprocessed { Reset::Unprocessed } else { Reset::ByServer(code) });
            self.has_outcome = true;
        }
        Ok(None)
    }

    /// §6.9 and §6.9.1: what is wrong with a stream's window concerns that stream.
    fn window_update<'i>(&mut self) -> Result<Option<Event<'i>>, Error> {
        let [a, b, c, d] = self.input.gathered();
        let increment = u32::from_be_bytes([a & 0x7f, b, c, d]);
        let id = self.input.frame.stream;
        if id == 0 {
            if increment == 0 {
                return Err(Error::Protocol(Breach::Increment));
            }
            self.send_window.grow(increment).map_err(|_| Error::FlowControl)?;
            return Ok(None);
        }
        let Some(key) = self.live_id(id) else { return Ok(None) };
        if increment == 0 {
            self.fault(key, Reset::FlowControl, ErrorCode::PROTOCOL_ERROR, false);
        } else if let Some(stream) = self.live_mut(key)
            && stream.send_window.grow(increment).is_err()
        {
            self.fault(key, Reset::FlowControl, ErrorCode::FLOW_CONTROL_ERROR, false);
        }
        Ok(None)
    }

    /// §6.8: streams after the last one that the server names were not looked at. It may name a lower one
    /// later, when it knows better, but never a higher one.
    fn go_away<'i>(&mut self) -> Result<Event<'i>, Error> {
        let [a, b, c, d, e, f, g, h] = self.input.gathered();
        let last = u32::from_be_bytes([a & 0x7f, b, c, d]);
        let code = ErrorCode(u32::from_be_bytes([e, f, g, h]));
        if self.last_id.is_some_and(|before| last > before) {
            return Err(Error::Protocol(Breach::GoAway));
        }
        self.last_id = Some(last);
        for stream in self.streams.iter_mut().filter(|stream| stream.id > last) {
            // Nor need the server hear that we have given up on them.
            stream.reset = None;
            if stream.is_live() {
                stream.fail(Reset::Unprocessed);
                self.has_outcome = true;
            }
            stream.settle();
        }
        Ok(Event::GoAway { code })
    }
}
