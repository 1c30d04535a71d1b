//! What comes in: frames, put together from pieces of any size.
//!
//! Of a frame, no more than 9 bytes are ever held. Data is handed out where it lies, headers are decoded as
//! they come, and everything else is at most 8 bytes long.

use crate::budget;
use crate::error::{Breach, Error, Flood, Reset};
use crate::event::Event;
use crate::frame::{ErrorCode, HEADER, Header, MAX_PAYLOAD, flag, kind};
use crate::hpack::{Fault, Head};
use crate::stream::{Phase, StreamKey};

use super::{Connection, Stage};

/// The most bytes that a header block may have, however it is cut. Those of a head that is small enough are
/// fewer, whatever their code: no symbol takes more than four bytes.
const MAX_BLOCK: u32 = 4 * crate::hpack::MAX_HEADER_LIST;
/// The most settings in a frame. There are six, and some extensions.
const MAX_SETTINGS: u32 = 32;
/// The fields of the obsolete priority in a HEADERS frame (RFC 9113 §6.2).
const PRIORITY: u8 = 5;

/// Where we are in what comes in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    /// Between frames, the next frame's header; within some, their payload.
    scratch: [u8; HEADER],
    have: u8,
    is_in_frame: bool,
    pub(super) frame: Header,
    /// Of the frame's payload, padding included.
    left: u32,
    padding: u8,
    /// The length of the padding comes next.
    wants_padding: bool,
    /// Bytes of the obsolete priority that come next.
    priority: u8,
    block: Block,
}

/// A header block, which may go on in further frames.
#[derive(Clone, Copy, Debug)]
struct Block {
    is_open: bool,
    stream: u32,
    ends_stream: bool,
    length: u32,
}

impl Block {
    const ZERO: Self = Self { is_open: false, stream: 0, ends_stream: false, length: 0 };
}

impl Input {
    pub(super) const ZERO: Self = Self {
        scratch: [0; HEADER],
        have: 0,
        is_in_frame: false,
        frame: Header::ZERO,
        left: 0,
        padding: 0,
        wants_padding: false,
        priority: 0,
        block: Block::ZERO,
    };

    pub(super) fn is_between_frames(&self) -> bool {
        !self.is_in_frame && self.have == 0 && !self.block.is_open
    }

    /// Takes up to `want` bytes into the scratch; `true` when they are all there.
    fn gather(&mut self, bytes: &mut &[u8], want: usize) -> bool {
        let have = usize::from(self.have);
        let count = bytes.len().min(want.saturating_sub(have));
        let places = self.scratch.get_mut(have..have + count);
        if let (Some(places), Some((piece, rest))) = (places, bytes.split_at_checked(count)) {
            places.copy_from_slice(piece);
            *bytes = rest;
            self.have += count as u8;
        }
        usize::from(self.have) == want
    }

    /// The first bytes of what was gathered.
    pub(super) fn gathered<const S: usize>(&self) -> [u8; S] {
        self.scratch.first_chunk().copied().unwrap_or([0; S])
    }

    fn skip(&mut self, bytes: &mut &[u8], most: u32) -> u32 {
        let count = bytes.len().min(most as usize);
        *bytes = bytes.get(count..).unwrap_or_default();
        self.left -= count as u32;
        count as u32
    }
}

impl<const N: usize> Connection<N> {
    /// Takes what came off the front of `input`, in pieces of any size, up to the next event. `None` means
    /// that all of it was taken and nothing is left to tell.
    ///
    /// Events that follow from what came before are told even if `input` is empty.
    ///
    /// # Errors
    /// The connection is then over, and so are all of its streams. [`write`](Self::write) tells the server
    /// why.
    pub fn receive<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Event<'i>>, Error> {
        match self.stage {
            Stage::Failed(error) => return Err(error),
            // Nobody is there who could have said something.
            Stage::Closed => {
                *input = &[];
                return Ok(None);
            }
            Stage::Greeting | Stage::Open => {}
        }
        loop {
            if let Some(event) = self.next_outcome() {
                return Ok(Some(event));
            }
            match self.step(input) {
                Ok(None) if input.is_empty() && !self.is_something_left() => return Ok(None),
                Ok(None) => {}
                Ok(event) => return Ok(event),
                Err(error) => {
                    self.stage = Stage::Failed(error);
                    self.owed.fail(error.code());
                    return Err(error);
                }
            }
        }
    }

    /// Whether something can be done without further input.
    fn is_something_left(&self) -> bool {
        self.has_outcome || self.input.is_in_frame && self.input.left == 0
    }

    fn step<'i>(&mut self, bytes: &mut &'i [u8]) -> Result<Option<Event<'i>>, Error> {
        if !self.input.is_in_frame {
            if self.input.gather(bytes, HEADER) {
                let header = Header::read(self.input.gathered());
                self.begin(header)?;
            }
            return Ok(None);
        }
        if self.input.left == 0 {
            self.input.is_in_frame = false;
            let event = self.end();
            self.input.have = 0;
            return event;
        }
        if self.input.wants_padding {
            if let Some((padding, rest)) = bytes.split_first() {
                *bytes = rest;
                self.input.left -= 1;
                self.padding(*padding)?;
            }
        } else if self.input.priority > 0 {
            let most = u32::from(self.input.priority);
            self.input.priority -= self.input.skip(bytes, most) as u8;
        } else if let Some(most @ 1..) = self.input.left.checked_sub(u32::from(self.input.padding))
        {
            let count = bytes.len().min(most as usize);
            let Some((piece, rest)) = bytes.split_at_checked(count) else { return Ok(None) };
            *bytes = rest;
            self.input.left -= count as u32;
            return self.payload(piece);
        } else {
            self.input.skip(bytes, self.input.left);
        }
        Ok(None)
    }

    /// The header of a frame is there.
    fn begin(&mut self, frame: Header) -> Result<(), Error> {
        let Header { length, kind, stream, .. } = frame;
        // §3.4: the first frame of a server is SETTINGS, and no acknowledgement. An HTTP/1.1 server's is not.
        if self.stage == Stage::Greeting && (kind != kind::SETTINGS || frame.has(flag::ACK)) {
            return Err(Error::NotHttp2);
        }
        // §4.2: we have not allowed more.
        if length > MAX_PAYLOAD {
            return Err(Error::FrameSize);
        }
        // §6.10: nothing comes between the frames of a header block, not even what is unknown.
        let block = &self.input.block;
        if block.is_open != (kind == kind::CONTINUATION) || block.is_open && block.stream != stream
        {
            return Err(Error::Protocol(Breach::HeaderBlock));
        }
        self.check_stream(frame)?;
        check_length(frame)?;
        let is_padded = matches!(kind, kind::DATA | kind::HEADERS) && frame.has(flag::PADDED);
        let has_priority = kind == kind::HEADERS && frame.has(flag::PRIORITY);
        self.input = Input {
            have: 0,
            is_in_frame: true,
            frame,
            left: length,
            padding: 0,
            wants_padding: is_padded,
            priority: if has_priority { PRIORITY } else { 0 },
            ..self.input
        };
        match kind {
            kind::DATA => self.begin_data(is_padded),
            kind::HEADERS => {
                let ends_stream = frame.has(flag::END_STREAM);
                self.input.block = Block { is_open: true, stream, ends_stream, length: 0 };
                Ok(())
            }
            kind::CONTINUATION => self.budget.spend(Flood::Headers),
            kind::PUSH_PROMISE => Err(Error::Protocol(Breach::Push)),
            kind::SETTINGS => self.budget.spend(Flood::Settings),
            kind::PING => self.budget.spend(Flood::Ping),
            kind::WINDOW_UPDATE => self.budget.spend(Flood::WindowUpdate),
            kind::RST_STREAM => Ok(()),
            // §4.1: unknown frames are ignored; §5.3.2: so are priorities.
            _ => self.budget.spend(Flood::Unknown),
        }
    }

    /// Whether a frame is about the connection or about a stream, as it should be (§6).
    fn check_stream(&self, frame: Header) -> Result<(), Error> {
        let is_right = match frame.kind {
            kind::SETTINGS | kind::PING | kind::GOAWAY => frame.stream == 0,
            // §5.1: on a stream that nobody has opened, only priorities may come. Those of the server would
            // have even numbers, and it may not open any.
            kind::DATA | kind::HEADERS | kind::RST_STREAM | kind::CONTINUATION => {
                !self.is_idle(frame.stream)
            }
            kind::WINDOW_UPDATE => frame.stream == 0 || !self.is_idle(frame.stream),
            kind::PRIORITY => frame.stream != 0,
            _ => true,
        };
        if is_right { Ok(()) } else { Err(Error::Protocol(Breach::Stream)) }
    }

    fn is_idle(&self, id: u32) -> bool {
        id.is_multiple_of(2) || id >= self.next_id
    }

    /// All of a DATA frame counts, padding included (§6.1), also on a stream that is over (§6.9).
    fn begin_data(&mut self, is_padded: bool) -> Result<(), Error> {
        let Header { length, stream: id, .. } = self.input.frame;
        self.receive_window.arrived(length).map_err(|_| Error::FlowControl)?;
        // The connection's window protects nothing that those of its streams do not protect. Given back at
        // once, it can never be the reason why some stream waits for another.
        self.receive_window.release(length);
        let Some(key) = self.live_id(id) else {
            return self.stray_data(length);
        };
        if let Some(stream) = self.live_mut(key) {
            stream.receive_window.arrived(length).map_err(|_| Error::FlowControl)?;
            if stream.phase == Phase::Head {
                // §8.1: a response begins with a head.
                self.malformed_data(key);
            }
        }
        if is_padded { Ok(()) } else { self.weigh(key, length) }
    }

    /// Data of a stream that is over. What was on its way when we gave streams up is nobody's fault.
    fn stray_data(&mut self, length: u32) -> Result<(), Error> {
        match self.stray.checked_sub(length) {
            Some(stray) if length > 0 => {
                self.stray = stray;
                Ok(())
            }
            _ => self.budget.spend(Flood::ClosedStreams),
        }
    }

    /// It is known how much data a DATA frame has. One without is of no use, unless it ends its stream.
    fn weigh(&mut self, key: StreamKey, data: u32) -> Result<(), Error> {
        if let Some(stream) = self.live_mut(key).filter(|stream| stream.has_length) {
            match stream.expected.checked_sub(u64::from(data)) {
                Some(expected) => stream.expected = expected,
                // §8.1.1: more than the head said.
                None => self.malformed_data(key),
            }
        }
        match data {
            0 if !self.input.frame.has(flag::END_STREAM) => self.budget.spend(Flood::EmptyData),
            0 => Ok(()),
            _ => {
                self.budget.earn(budget::DATA);
                Ok(())
            }
        }
    }

    /// How long the padding is. It has to fit, with what comes before it (§6.1 and §6.2).
    fn padding(&mut self, padding: u8) -> Result<(), Error> {
        self.input.wants_padding = false;
        self.input.padding = padding;
        let rest = self.input.left.checked_sub(u32::from(padding) + u32::from(self.input.priority));
        let rest = rest.ok_or(Error::Protocol(Breach::Padding))?;
        if self.input.frame.kind == kind::DATA
            && let Some(key) = self.live_id(self.input.frame.stream)
        {
            // Nobody else will give it back.
            self.release(key, usize::from(padding) + 1);
            self.weigh(key, rest)?;
        }
        Ok(())
    }

    /// Bytes of what a frame is about, at least one unless there is no input.
    fn payload<'i>(&mut self, mut piece: &'i [u8]) -> Result<Option<Event<'i>>, Error> {
        match self.input.frame.kind {
            kind::DATA => return Ok(self.data(piece)),
            kind::HEADERS | kind::CONTINUATION => self.headers(piece)?,
            kind::SETTINGS => {
                while self.input.gather(&mut piece, 6) {
                    let [a, b, c, d, e, f] = self.input.gathered();
                    self.input.have = 0;
                    self.setting(u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))?;
                }
            }
            kind::PING | kind::GOAWAY | kind::RST_STREAM | kind::WINDOW_UPDATE => {
                self.input.gather(&mut piece, 8);
            }
            _ => {}
        }
        Ok(None)
    }

    /// A frame has come to its end.
    fn end<'i>(&mut self) -> Result<Option<Event<'i>>, Error> {
        let Header { kind, stream, .. } = self.input.frame;
        match kind {
            kind::DATA => {
                if self.input.frame.has(flag::END_STREAM)
                    && let Some(key) = self.live_id(stream)
                {
                    self.finish(key);
                }
                Ok(None)
            }
            kind::HEADERS | kind::CONTINUATION if self.input.frame.has(flag::END_HEADERS) => {
                self.end_of_block()
            }
            _ => self.end_of_control_frame(),
        }
    }

    fn data<'i>(&mut self, bytes: &'i [u8]) -> Option<Event<'i>> {
        let key = self.live_id(self.input.frame.stream)?;
        (!bytes.is_empty()).then_some(Event::Data { stream: key, bytes })
    }

    fn malformed_data(&mut self, key: StreamKey) {
        let ends_stream = self.input.frame.has(flag::END_STREAM);
        self.fault(key, Reset::Malformed, ErrorCode::PROTOCOL_ERROR, ends_stream);
    }

    fn headers(&mut self, piece: &[u8]) -> Result<(), Error> {
        let block = &mut self.input.block;
        block.length = block.length.saturating_add(piece.len() as u32);
        if block.length > MAX_BLOCK {
            return Err(Error::Flood(Flood::Headers));
        }
        self.decoder.push(piece).map_err(|_| Error::Compression)
    }

    fn end_of_block<'i>(&mut self) -> Result<Option<Event<'i>>, Error> {
        let Block { stream: id, ends_stream, .. } = self.input.block;
        self.input.block = Block::ZERO;
        let read = self.decoder.finish().map_err(|_| Error::Compression)?;
        let Some(key) = self.live_id(id) else {
            self.budget.spend(Flood::ClosedStreams)?;
            return Ok(None);
        };
        let is_malformed = match read {
            Ok((head, has_status)) => match self.head(key, head, has_status, ends_stream)? {
                Some(event) => return Ok(event),
                None => true,
            },
            Err(fault) => fault == Fault::Malformed,
        };
        let (why, code) = match is_malformed {
            true => (Reset::Malformed, ErrorCode::PROTOCOL_ERROR),
            false => (Reset::HeadTooLarge, ErrorCode::CANCEL),
        };
        self.fault(key, why, code, ends_stream);
        Ok(None)
    }

    /// `None` if there can be no such head here (§8.1).
    fn head<'i>(
        &mut self,
        key: StreamKey,
        head: Head,
        has_status: bool,
        ends_stream: bool,
    ) -> Result<Option<Option<Event<'i>>>, Error> {
        let Some(stream) = self.live_mut(key) else { return Ok(None) };
        let event = match (stream.phase, head.status) {
            // Trailers.
            (Phase::Body, _) if !has_status && ends_stream => None,
            // Another head will follow. 101 is not for HTTP/2 (§8.6).
            (Phase::Head, 100 | 102..200) if !ends_stream => {
                self.budget.spend(Flood::Headers)?;
                return Ok(Some(None));
            }
            (Phase::Head, 200..600) => {
                stream.phase = Phase::Body;
                let is_bodiless = stream.is_bodiless || matches!(head.status, 204 | 304);
                stream.has_length = is_bodiless || head.content_length.is_some();
                stream.expected = if is_bodiless { 0 } else { head.content_length.unwrap_or(0) };
                Some(Event::Head { stream: key, head })
            }
            _ => return Ok(None),
        };
        if ends_stream {
            self.finish(key);
        }
        Ok(Some(event))
    }

    /// The server has sent all of a response, or says so.
    fn finish(&mut self, key: StreamKey) {
        let Some(stream) = self.live_mut(key) else { return };
        if stream.phase == Phase::Body && !(stream.has_length && stream.expected > 0) {
            stream.end();
        } else {
            // §8.1.1: less than the head said.
            stream.fault(Reset::Malformed, ErrorCode::PROTOCOL_ERROR, true);
        }
        self.has_outcome = true;
    }
}

/// Whether a frame has a length that it may have (§6).
fn check_length(frame: Header) -> Result<(), Error> {
    let length = frame.length;
    let is_right = match frame.kind {
        kind::PING => length == 8,
        kind::RST_STREAM | kind::WINDOW_UPDATE => length == 4,
        kind::PRIORITY => length == u32::from(PRIORITY),
        kind::GOAWAY => length >= 8,
        kind::SETTINGS if frame.has(flag::ACK) => length == 0,
        kind::SETTINGS => length.is_multiple_of(6),
        kind::DATA => length >= u32::from(frame.has(flag::PADDED)),
        kind::HEADERS => {
            let priority = if frame.has(flag::PRIORITY) { u32::from(PRIORITY) } else { 0 };
            length >= priority + u32::from(frame.has(flag::PADDED))
        }
        _ => true,
    };
    if !is_right {
        return Err(Error::FrameSize);
    }
    if frame.kind == kind::SETTINGS && length > 6 * MAX_SETTINGS {
        return Err(Error::Flood(Flood::Settings));
    }
    Ok(())
}
