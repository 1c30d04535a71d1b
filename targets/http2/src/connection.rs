//! One connection and its streams: what the caller does with them.
//!
//! What comes in is in `receive`, what the frames about the connection mean in `control`, what is owed to the
//! server in `owed`.

mod control;
mod owed;
mod receive;

use crate::budget::{self, Budget};
use crate::error::{Error, Gone, Refusal, Reset};
use crate::event::Event;
use crate::frame::{ErrorCode, HEADER, MAX_PAYLOAD, MAX_STREAM, flag, kind};
use crate::hpack::{Decoder, Encoder};
use crate::output::Output;
use crate::request::Request;
use crate::stream::{Outcome, Phase, Stream, StreamKey};
use crate::window::{self, ReceiveWindow, SendWindow};

use owed::Owed;
use receive::Input;

/// A piece of a body that is smaller is worth waiting for a new output.
const SMALL_PIECE: usize = 64;

/// What the server is told of us, and what we make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// How much of a response the server may send before any of it is given back by
    /// [`release`](Connection::release): whoever reads has to be able to hold so much, or takes it at once.
    /// At least 1, at most 2^31 - 1.
    pub stream_window: u32,
    /// The same for all streams together; at least 65,535, which the protocol does not let be less. It is
    /// given back as data comes, so that a stream whose reader is slow does not stop the others.
    pub connection_window: u32,
}

impl Config {
    /// Windows of 4 KiB: with them, kube-apiserver's TLS records stay as small.
    pub const SMALL: Self = Self { stream_window: 4096, connection_window: window::DEFAULT };
}

impl Default for Config {
    fn default() -> Self {
        Self::SMALL
    }
}

/// The client's side of a connection of up to `N` streams at a time (at most 255).
///
/// The caller sends what [`write`](Self::write), [`request`](Self::request) and [`send`](Self::send) put
/// into an [`Output`], and feeds what comes to [`receive`](Self::receive). See [the crate's
/// documentation](crate).
#[derive(Clone, Debug)]
pub struct Connection<const N: usize> {
    stage: Stage,
    config: Config,
    streams: [Stream; N],
    next_id: u32,
    /// The server looks at no stream after this one.
    last_id: Option<u32>,
    /// The caller wants no more streams.
    is_leaving: bool,

    input: Input,
    decoder: Decoder,
    /// Some stream has an outcome to tell.
    has_outcome: bool,
    budget: Budget,

    encoder: Encoder,
    peer: Peer,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// What may still be on its way of streams that we have given up.
    stray: u32,
    owed: Owed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)] // so that closed is zero
enum Stage {
    /// Not opened yet.
    Closed,
    /// Opened, and the server has said nothing yet.
    Greeting,
    Open,
    Failed(Error),
}

/// What the server wants.
#[derive(Clone, Copy, Debug)]
struct Peer {
    max_streams: u32,
    initial_window: u32,
    max_payload: u32,
    max_header_list: u32,
}

impl Peer {
    const ZERO: Self =
        Self { max_streams: 0, initial_window: 0, max_payload: 0, max_header_list: 0 };
    /// Until it says something (RFC 9113 §6.5.2).
    const DEFAULT: Self = Self {
        max_streams: u32::MAX,
        initial_window: window::DEFAULT,
        max_payload: MAX_PAYLOAD,
        max_header_list: u32::MAX,
    };
}

/// How much of a body was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sent {
    /// So many bytes were taken.
    pub bytes: usize,
    /// The end of the body was sent, too.
    pub is_ended: bool,
}

impl Sent {
    const NOTHING: Self = Self { bytes: 0, is_ended: false };
}

impl<const N: usize> Connection<N> {
    /// A connection that is not open. All zero, so that a `static` of this type costs no flash.
    #[expect(clippy::new_without_default, reason = "built in a static, where Default cannot be")]
    pub const fn new() -> Self {
        const { assert!(N > 0 && N <= 255) };
        Self {
            stage: Stage::Closed,
            config: Config { stream_window: 0, connection_window: 0 },
            streams: [Stream::FREE; N],
            next_id: 0,
            last_id: None,
            is_leaving: false,
            input: Input::ZERO,
            decoder: Decoder::new(),
            has_outcome: false,
            budget: Budget::ZERO,
            encoder: Encoder::new(),
            peer: Peer::ZERO,
            send_window: SendWindow::ZERO,
            receive_window: ReceiveWindow::ZERO,
            stray: 0,
            owed: Owed::NOTHING,
        }
    }

    /// The transport is connected: everything begins anew. Keys of streams of before mean nothing any more.
    pub fn open(&mut self, config: Config) {
        let config = Config {
            stream_window: config.stream_window.clamp(1, window::MAX),
            connection_window: config.connection_window.clamp(window::DEFAULT, window::MAX),
        };
        self.stage = Stage::Greeting;
        self.config = config;
        self.streams.fill(Stream::FREE);
        self.next_id = 1;
        self.last_id = None;
        self.is_leaving = false;
        self.input = Input::ZERO;
        self.decoder = Decoder::new();
        self.has_outcome = false;
        self.budget = Budget::FULL;
        self.encoder.open();
        self.peer = Peer::DEFAULT;
        self.send_window = SendWindow::new(window::DEFAULT);
        self.receive_window = ReceiveWindow::new(window::DEFAULT);
        self.receive_window.widen(config.connection_window - window::DEFAULT);
        self.stray = 0;
        self.owed = Owed::GREETING;
    }

    /// Sends the head of a request. A body, if there is one, goes on with [`send`](Self::send).
    ///
    /// # Errors
    /// A [`Refusal`] says what to wait for, or that this request cannot be sent on this connection. Nothing
    /// was sent then, though what was owed to the server may have been.
    pub fn request(
        &mut self,
        request: &Request<'_>,
        out: &mut Output<'_>,
    ) -> Result<StreamKey, Refusal> {
        self.check_ready()?;
        if !request.is_valid() {
            return Err(Refusal::Malformed);
        }
        if request.size() > self.peer.max_header_list {
            return Err(Refusal::TooLarge);
        }
        // A larger table may be used only after its SETTINGS were acknowledged, and resets make room.
        self.acknowledge(out).and_then(|()| self.write_resets(out)).map_err(|_| Refusal::NoRoom)?;
        let Some(slot) = self.free_slot() else { return Err(Refusal::Busy) };
        self.write_head(request, out)?;
        let stream = Stream {
            id: self.next_id,
            phase: Phase::Head,
            is_sending: request.has_body,
            is_bodiless: request.method == "HEAD",
            send_window: SendWindow::new(self.peer.initial_window),
            receive_window: ReceiveWindow::new(self.config.stream_window),
            ..Stream::FREE
        };
        let key = StreamKey { slot, id: self.next_id };
        if let Some(place) = self.streams.get_mut(key.slot()) {
            *place = stream;
        }
        // §5.1.1: clients have odd numbers, and they only grow.
        self.next_id += 2;
        self.budget.earn(budget::REQUEST);
        Ok(key)
    }

    /// Whether a request could be sent now, given room in the output.
    ///
    /// # Errors
    /// What [`request`](Self::request) would say.
    pub fn check_ready(&self) -> Result<(), Refusal> {
        match self.stage {
            Stage::Closed | Stage::Failed(_) => return Err(Refusal::Closed),
            Stage::Greeting => return Err(Refusal::NotReady),
            Stage::Open => {}
        }
        if self.is_leaving() {
            return Err(Refusal::Leaving);
        }
        let live = self.streams.iter().filter(|stream| stream.is_live()).count();
        // A stream whose reset is owed makes room when that is written, which a request sees to; one whose
        // end was not told does not.
        let held = self.streams.iter().filter(|stream| stream.outcome != Outcome::Nothing).count();
        if live + held >= N || live as u32 >= self.peer.max_streams {
            return Err(Refusal::Busy);
        }
        Ok(())
    }

    /// Sends what fits of a request's body, as one frame: in the output, and in what the server allows.
    /// `is_last` says that these are its last bytes; with none, only the end is sent.
    ///
    /// # Errors
    /// [`Gone`] if the stream is over, or the end was sent before.
    pub fn send(
        &mut self,
        key: StreamKey,
        bytes: &[u8],
        is_last: bool,
        out: &mut Output<'_>,
    ) -> Result<Sent, Gone> {
        let allowed = self.sendable(key).ok_or(Gone)?;
        // A larger window may be used only after its SETTINGS were acknowledged.
        if self.acknowledge(out).is_err() {
            return Ok(Sent::NOTHING);
        }
        let Some(room) = out.room().checked_sub(HEADER) else { return Ok(Sent::NOTHING) };
        let wanted = bytes.len().min(allowed);
        if room < wanted.min(SMALL_PIECE) && !out.is_empty() {
            return Ok(Sent::NOTHING);
        }
        let count = wanted.min(room).min(self.peer.max_payload as usize);
        let is_ended = is_last && count == bytes.len();
        let Some(piece) = bytes.get(..count).filter(|_| count > 0 || is_ended) else {
            return Ok(Sent::NOTHING);
        };
        let flags = if is_ended { flag::END_STREAM } else { 0 };
        if out.frame(kind::DATA, flags, key.id, piece).is_err() {
            return Ok(Sent::NOTHING);
        }
        let spent = count as u32;
        self.send_window.spend(spent);
        if let Some(stream) = self.live_mut(key) {
            stream.send_window.spend(spent);
            stream.is_sending = !is_ended;
        }
        self.budget.earn(budget::sent(count));
        Ok(Sent { bytes: count, is_ended })
    }

    /// How much of a request's body the server would take now; `None` if the stream is over, or the end was
    /// sent. It grows when something was received.
    pub fn sendable(&self, key: StreamKey) -> Option<usize> {
        let stream = self.live(key).filter(|stream| stream.is_sending)?;
        Some(stream.send_window.available().min(self.send_window.available()) as usize)
    }

    /// Gives back bytes of a response that were handed out by [`Event::Data`]: the server may send as many
    /// more.
    pub fn release(&mut self, key: StreamKey, count: usize) {
        if let Some(stream) = self.live_mut(key) {
            stream.receive_window.release(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// Makes the window of one stream larger than those of others, for good.
    pub fn widen(&mut self, key: StreamKey, by: u32) {
        if let Some(stream) = self.live_mut(key) {
            stream.receive_window.widen(by);
        }
    }

    /// Gives a stream up. The server is told to stop, and no event will tell of it any more. A request whose
    /// body was not sent to its end has then never been made.
    pub fn cancel(&mut self, key: StreamKey) {
        let place = self.streams.get_mut(key.slot());
        if let Some(stream) = place.filter(|stream| stream.id == key.id) {
            if stream.is_live() {
                self.stray = self.stray.saturating_add(stream.receive_window.open());
            }
            stream.cancel();
        }
    }

    /// Asks the server for a sign of life, which comes as [`Event::Pong`]. One at a time: while one is
    /// under way, this does nothing.
    pub fn ping(&mut self) {
        self.owed.ping();
    }

    /// Says good-bye: no more requests; those under way go on.
    pub fn leave(&mut self) {
        if !self.is_leaving && matches!(self.stage, Stage::Greeting | Stage::Open) {
            self.is_leaving = true;
            self.owed.go_away(ErrorCode::NO_ERROR);
        }
    }

    /// Forgives the server what it has done so far that was of no use. For connections that are idle for
    /// hours while the server pings: call it now and then, say once a minute.
    pub fn forgive(&mut self) {
        self.budget.earn(u16::MAX);
    }

    /// Whether the connection takes no more requests: the server said so, the caller did, or the numbers of
    /// streams are used up. What is under way goes on; open another connection for the rest.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving || self.last_id.is_some() || self.next_id > MAX_STREAM
    }

    /// How many streams are under way.
    pub fn open_streams(&self) -> usize {
        self.streams.iter().filter(|stream| stream.is_live()).count()
    }

    /// Why the connection has failed, if it has.
    pub fn error(&self) -> Option<Error> {
        match self.stage {
            Stage::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// The server has closed the transport. That is in order between frames when no stream is under way.
    ///
    /// # Errors
    /// [`Error::Truncated`] otherwise: whatever was under way may or may not have been carried out.
    pub fn end_of_input(&mut self) -> Result<(), Error> {
        let is_in_order = self.input.is_between_frames() && self.open_streams() == 0;
        match self.stage {
            Stage::Closed => return Ok(()),
            Stage::Failed(error) => return Err(error),
            Stage::Open if is_in_order => self.stage = Stage::Closed,
            Stage::Open | Stage::Greeting => {
                self.stage = Stage::Failed(Error::Truncated);
                // Nobody is there to be told.
                self.owed = Owed::NOTHING;
                return Err(Error::Truncated);
            }
        }
        Ok(())
    }

    /// One event of those that are not about what comes in just now.
    fn next_outcome<'i>(&mut self) -> Option<Event<'i>> {
        if !self.has_outcome {
            return None;
        }
        let places = self.streams.iter_mut().zip(0..);
        let Some((stream, slot)) = places.into_iter().find(|(s, _)| s.outcome != Outcome::Nothing)
        else {
            self.has_outcome = false;
            return None;
        };
        let key = StreamKey { slot, id: stream.id };
        let outcome = core::mem::replace(&mut stream.outcome, Outcome::Nothing);
        stream.settle();
        match outcome {
            Outcome::Nothing => None,
            Outcome::End => Some(Event::End { stream: key }),
            Outcome::Reset(reason) => Some(Event::Reset { stream: key, reason }),
        }
    }

    /// A rule that concerns one stream was broken.
    fn fault(&mut self, key: StreamKey, why: Reset, code: ErrorCode, is_ended: bool) {
        if let Some(stream) = self.live_mut(key) {
            stream.fault(why, code, is_ended);
            let open = stream.receive_window.open();
            self.stray = self.stray.saturating_add(open);
            self.has_outcome = true;
        }
    }

    fn free_slot(&self) -> Option<u8> {
        let slot = self.streams.iter().position(|stream| stream.phase == Phase::Free)?;
        u8::try_from(slot).ok()
    }

    fn write_head(&mut self, request: &Request<'_>, out: &mut Output<'_>) -> Result<(), Refusal> {
        let flags = flag::END_HEADERS | if request.has_body { 0 } else { flag::END_STREAM };
        let (encoder, was_empty) = (&mut self.encoder, out.is_empty());
        let before = encoder.clone();
        let written = out.all_or_nothing(|out| {
            let fields = request.all_fields();
            let head = |out: &mut Output<'_>| encoder.block(fields, out);
            let length = out.frame_of(kind::HEADERS, flags, self.next_id, head);
            let length =
                length.map_err(|_| if was_empty { Refusal::TooLarge } else { Refusal::NoRoom })?;
            // §4.2: no frame is larger than the server takes, and we do not split heads.
            if length > self.peer.max_payload as usize { Err(Refusal::TooLarge) } else { Ok(()) }
        });
        if written.is_err() {
            self.encoder = before;
        }
        written
    }

    fn live(&self, key: StreamKey) -> Option<&Stream> {
        self.streams.get(key.slot()).filter(|stream| stream.id == key.id && stream.is_live())
    }

    fn live_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        self.streams.get_mut(key.slot()).filter(|stream| stream.id == key.id && stream.is_live())
    }

    /// The stream that a frame is about, if it is under way.
    fn live_id(&self, id: u32) -> Option<StreamKey> {
        let is_it = |stream: &Stream| stream.id == id && stream.is_live();
        let slot = self.streams.iter().position(is_it)?;
        Some(StreamKey { slot: u8::try_from(slot).ok()?, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Scheme;

    /// RFC 9113 §5.1.1: when the numbers of streams are used up, another connection is needed.
    #[test]
    fn numbers_of_streams_have_an_end() {
        let mut connection = Connection::<2>::new();
        connection.open(Config::SMALL);
        connection.receive(&mut &[0, 0, 0, kind::SETTINGS, 0, 0, 0, 0, 0][..]).unwrap();
        connection.next_id = MAX_STREAM;
        let request = Request {
            method: "GET",
            scheme: Scheme::Https,
            authority: "kubernetes",
            path: "/",
            fields: &[],
            has_body: false,
        };
        let mut buffer = [0; 256];
        let key = connection.request(&request, &mut Output::new(&mut buffer)).unwrap();
        assert_eq!(key.id(), 0x7fff_ffff);
        assert!(connection.is_leaving());
        let refused = connection.request(&request, &mut Output::new(&mut buffer));
        assert_eq!(refused, Err(Refusal::Leaving));
        // What is under way goes on.
        let answer = [0, 0, 1, kind::HEADERS, 5, 0x7f, 0xff, 0xff, 0xff, 0x88];
        let event = connection.receive(&mut &answer[..]).unwrap();
        assert!(matches!(event, Some(Event::Head { stream, .. }) if stream == key));
    }
}
