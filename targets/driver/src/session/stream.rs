//! A client's part of a session: one request at a time.

use core::fmt::{self, Write as _};

use embassy_time::{Instant, with_deadline};
use embedded_io_async::{ErrorKind, ErrorType, Write};
use heapless::{String, Vec};
use picokube_http2::{Field, Refusal, Request as Head, Scheme};
use reqwless::request::{Method, RequestBody};

use super::inbox::{End, Ring};
use super::{Session, State};
use crate::Error;
use crate::exchange::{Observer, Patience, Receiver, Request, USER_AGENT, Watched};
use crate::pause::Pause;
use crate::planted::{Bug, planted};

/// How much of a response is in hand at a time, without memory for more.
const IN_HAND: usize = 256;
/// The most headers of a request.
const FIELDS: usize = 8;

/// A client of a [`Session`]: sends a request on a stream of its own, and then the next one.
pub struct Stream<'a> {
    session: &'a Session<'a>,
    index: usize,
    patience: Patience,
    pause: Pause,
    observer: Option<&'a dyn Observer<'a>>,
    /// Memory for what is in hand, if there is some.
    hand: &'a mut [u8],
}

impl<'a> Session<'a> {
    /// A client more; `None` if there are [`STREAMS`](super::STREAMS) already. Responses come to `ring`,
    /// whose size is the stream's window: the more, the fewer round trips for a long response. The target
    /// of a request has to fit it, too. `seed` sets the jitter of its delays.
    pub fn stream(
        &'a self,
        ring: &'a mut [u8],
        patience: Patience,
        seed: u32,
    ) -> Option<Stream<'a>> {
        let mut state = self.state.borrow_mut();
        let index = state.owned;
        *state.rings.get_mut(index)? = Ring::new(ring);
        state.inboxes.get_mut(index)?.ends_by_itself = patience.answer.is_some();
        state.owned += 1;
        let pause = Pause::new(patience.backoff, seed);
        Some(Stream { session: self, index, patience, pause, observer: None, hand: &mut [] })
    }
}

impl<'a> Stream<'a> {
    /// The same stream, looked after.
    pub fn observed_by(self, observer: &'a dyn Observer<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same stream, which has as much of a response in hand at a time as fits `hand`: the more, the less
    /// often the receiver is bothered.
    pub fn with_hand(self, hand: &'a mut [u8]) -> Self {
        Self { hand, ..self }
    }

    /// Ends the connection of the whole session at once, without a word, and with it what is on its way to
    /// the server. The next exchange opens another one.
    pub fn sever(&self) {
        self.session.sever();
    }

    /// Sends `request` and hands the response to `receiver`, piece by piece.
    ///
    /// What the server has not looked at is sent once more, and so is a GET that was under way when the
    /// connection ended. Dropping the future resets the stream, which costs the others nothing.
    pub async fn exchange(
        &mut self,
        request: &Request<'_, impl RequestBody + Copy>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        self.pause.over().await;
        let mut watched = Watched { receiver, head_seen: false };
        let mut may_repeat = true;
        let result = loop {
            let result = self.exchange_once(request, &mut watched).await;
            let repeat = match result {
                Err(Error::Unprocessed) => true,
                Err(Error::Truncated | Error::Reset | Error::Leaving) => {
                    (request.method == Method::GET || planted(Bug::WriteRepeated))
                        && !watched.head_seen
                }
                _ => false,
            };
            if !repeat || !core::mem::take(&mut may_repeat) {
                break result;
            }
        };
        match result {
            Ok(()) => self.pause.succeeded(),
            Err(error) => {
                if let (Some(observer), false) = (self.observer, watched.head_seen) {
                    observer.answered(request.method, Err(error));
                }
                self.pause.failed();
            }
        }
        result
    }

    async fn exchange_once(
        &mut self,
        request: &Request<'_, impl RequestBody + Copy>,
        receiver: &mut impl Receiver,
    ) -> Result<(), Error> {
        let Self { session, index, patience, observer, .. } = *self;
        let under_way = UnderWay { session, index };
        let failures = session.failures.get();
        let end = Instant::now() + patience.connect;
        let is_endless = receiver.is_endless();
        let begun = session.until(index, |state| self.begin(state, request, is_endless, failures));
        match with_deadline(end, begun).await {
            Ok(begun) => begun?,
            Err(_) => return Err(session.trouble().unwrap_or(Error::ConnectTimeout)),
        }
        session.ring();
        session.count(|counts| counts.requests = counts.requests.wrapping_add(1));
        let end = Instant::now() + patience.response;
        let head = match with_deadline(end, under_way.ask(&request.body)).await {
            Ok(head) => head?,
            Err(_) => return Err(Error::ResponseTimeout),
        };
        if let Some(observer) = observer {
            observer.answered(request.method, Ok(head.status));
        }
        if receiver.head(&head).is_break() {
            return Ok(());
        }
        let end = patience.answer.map_or(Instant::MAX, |answer| Instant::now() + answer);
        let mut few = [0; IN_HAND];
        let hand = if self.hand.is_empty() { &mut few[..] } else { &mut *self.hand };
        loop {
            let now = Instant::now();
            let silence = now + patience.silence;
            // What there is to read, a time-out would still let through.
            if now >= end {
                return Err(Error::AnswerTimeout);
            }
            let read = session.until(index, |state| state.take(index, hand));
            let count = match with_deadline(silence.min(end), read).await {
                Ok(read) => read?,
                Err(_) if end <= silence => return Err(Error::AnswerTimeout),
                Err(_) => return Err(Error::Silence),
            };
            session.ring_if_owed();
            match hand.get(..count) {
                None | Some([]) => return Ok(()),
                Some(bytes) if receiver.body(bytes).await.is_break() => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// Sends the head of a request, once there is a connection and room; an error if there was none since.
    fn begin<B: RequestBody>(
        &self,
        state: &mut State<'_>,
        request: &Request<'_, B>,
        is_endless: bool,
        failures: u32,
    ) -> Option<Result<(), Error>> {
        let begun = match state.http.check_ready() {
            Ok(()) => self.send_head(state, request, is_endless),
            Err(refusal) => Err(refusal),
        };
        match begun {
            Ok(()) => return Some(Ok(())),
            Err(Refusal::TooLarge) => return Some(Err(Error::RequestTooLarge)),
            Err(Refusal::Malformed) => return Some(Err(Error::RequestMalformed)),
            Err(Refusal::Closed | Refusal::NotReady | Refusal::Leaving) => {
                if self.session.failures.get() != failures {
                    return Some(Err(self.session.trouble().unwrap_or(Error::Unreachable)));
                }
            }
            Err(Refusal::Busy | Refusal::NoRoom) => {}
        }
        if let Some(inbox) = state.inboxes.get_mut(self.index) {
            inbox.waits_to_send = true;
        }
        self.session.ring();
        None
    }

    fn send_head<B: RequestBody>(
        &self,
        state: &mut State<'_>,
        request: &Request<'_, B>,
        is_endless: bool,
    ) -> Result<(), Refusal> {
        let server = &self.session.server;
        let length = request.body.len();
        let mut digits = String::<20>::new();
        let mut fields = Vec::<Field<'_>, FIELDS>::new();
        let mut add = |field| fields.push(field).map_err(|_| Refusal::TooLarge);
        add(Field::kept("user-agent", USER_AGENT))?;
        add(Field::kept("accept", "application/json"))?;
        let current = self.observer.and_then(|observer| observer.authorization());
        if let Some(authorization) = current.or(server.authorization) {
            add(Field::secret("authorization", authorization))?;
        }
        for (name, value) in request.headers {
            add(Field::kept(name, value))?;
        }
        if let Some(length @ 1..) = length {
            write!(digits, "{length}").map_err(|_| Refusal::TooLarge)?;
            add(Field::passing("content-length", &digits))?;
        }
        // The response will come to where the target is written, which nobody needs before.
        let ring = state.rings.get_mut(self.index).ok_or(Refusal::TooLarge)?;
        let mut ring = core::mem::replace(ring, Ring::none());
        let begun = match write_target(request.target, ring.memory()) {
            None => Err(Refusal::TooLarge),
            Some(path) => {
                let head = Head {
                    method: request.method.as_str(),
                    scheme: Scheme::Https,
                    authority: server.host,
                    path,
                    fields: &fields,
                    has_body: length != Some(0),
                };
                let is_empty = state.out.frames == 0;
                match state.write(|http, out| http.request(&head, out)) {
                    // With less before it, it may fit.
                    None => Err(Refusal::NoRoom),
                    Some(Err(Refusal::TooLarge)) if !is_empty => Err(Refusal::NoRoom),
                    Some(begun) => begun,
                }
            }
        };
        ring.clear();
        let window = ring.size();
        if let Some(place) = state.rings.get_mut(self.index) {
            *place = ring;
        }
        let key = begun?;
        if !is_endless {
            state.loan.borrow(self.index);
        }
        let window = window + state.loan.of(self.index).len();
        state.widen(key, window);
        if let Some(inbox) = state.inboxes.get_mut(self.index) {
            inbox.key = Some(key);
            (inbox.has_head, inbox.end) = (false, End::NotYet);
        }
        Ok(())
    }
}

/// Writes a target at the beginning of `room`; `None` if it does not fit.
fn write_target<'r>(target: &dyn fmt::Display, room: &'r mut [u8]) -> Option<&'r str> {
    struct Room<'r> {
        bytes: &'r mut [u8],
        len: usize,
    }
    impl fmt::Write for Room<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let end = self.len.saturating_add(text.len());
            let place = self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?;
            place.copy_from_slice(text.as_bytes());
            self.len = end;
            Ok(())
        }
    }
    let mut out = Room { bytes: room, len: 0 };
    write!(out, "{target}").ok()?;
    let Room { bytes, len } = out;
    core::str::from_utf8(bytes.get(..len)?).ok()
}

impl State<'_> {
    /// Gives a stream a window as large as its ring, with what is lent to that.
    fn widen(&mut self, key: picokube_http2::StreamKey, window: usize) {
        let rings = self.rings.iter().take(self.owned);
        let least = rings.map(|ring| ring.size()).min().unwrap_or(window);
        self.http.widen(key, u32::try_from(window - least).unwrap_or(0));
    }

    /// The next bytes of a response; none at its end.
    fn take(&mut self, index: usize, window: &mut [u8]) -> Option<Result<usize, Error>> {
        let count = self.rings.get_mut(index)?.pop(window, self.loan.of(index));
        let inbox = self.inboxes.get(index)?;
        if count > 0 {
            if let Some(key) = inbox.key
                && !planted(Bug::WindowKept)
            {
                self.http.release(key, count);
            }
            return Some(Ok(count));
        }
        inbox.end.get().map(|end| end.map(|()| 0))
    }
}

/// A request that is under way, and is given up when this is dropped before its end.
struct UnderWay<'s> {
    session: &'s Session<'s>,
    index: usize,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.session.state.borrow_mut();
        let State { http, inboxes, rings, loan, .. } = &mut *state;
        if let Some(ring) = rings.get_mut(self.index) {
            ring.clear();
        }
        loan.give_back(self.index);
        let Some(inbox) = inboxes.get_mut(self.index) else { return };
        inbox.waits_to_send = false;
        if let Some(key) = inbox.key.take()
            && !planted(Bug::StreamKept)
        {
            http.cancel(key);
            self.session.count(|counts| counts.cancelled = counts.cancelled.wrapping_add(1));
            self.session.ring();
        }
    }
}

impl UnderWay<'_> {
    /// Sends the body and waits for the head of the response.
    async fn ask(
        &self,
        body: &impl RequestBody,
    ) -> Result<picokube_core::manager::ResponseHead, Error> {
        let Self { session, index } = *self;
        let announced = body.len();
        if announced != Some(0) {
            let mut sender = Sender { session, index, announced, sent: 0 };
            let written = body.write(&mut sender).await;
            // The server may answer before it has all of a body; then that counts.
            if written.is_ok() && !sender.finish().await {
                return Err(Error::BodyGone);
            }
            if let Some(length) = announced
                && sender.sent > length
            {
                return Err(Error::BodyGone);
            }
        }
        session
            .until(index, |state| {
                let inbox = state.inboxes.get(index)?;
                if inbox.has_head {
                    return Some(Ok(inbox.head));
                }
                // A response without a head has been made an error by HTTP/2.
                inbox.end.get().map(|end| Err(end.err().unwrap_or(Error::Malformed)))
            })
            .await
    }
}

/// Sends a body.
struct Sender<'s> {
    session: &'s Session<'s>,
    index: usize,
    /// How long the body is to be.
    announced: Option<usize>,
    sent: usize,
}

/// Nothing more is to be sent: the server has answered, or the stream is over.
#[derive(Clone, Copy, Debug)]
struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing more is to be sent")
    }
}

impl core::error::Error for Stopped {}

impl embedded_io_async::Error for Stopped {
    fn kind(&self) -> ErrorKind {
        ErrorKind::ConnectionAborted
    }
}

impl Sender<'_> {
    /// Sends the end of the body: whether it was as long as announced.
    async fn finish(&mut self) -> bool {
        match self.announced {
            // The end went with the last byte.
            Some(length) => self.sent == length,
            None => {
                let _ = self.send(&[], true).await;
                true
            }
        }
    }

    async fn send(&mut self, bytes: &[u8], is_last: bool) -> Result<usize, Stopped> {
        let Self { session, index, .. } = *self;
        let sent = session.until(index, |state| state.send(index, bytes, is_last)).await?;
        session.ring();
        self.sent += sent;
        Ok(sent)
    }
}

impl State<'_> {
    fn send(
        &mut self,
        index: usize,
        bytes: &[u8],
        is_last: bool,
    ) -> Option<Result<usize, Stopped>> {
        let inbox = self.inboxes.get_mut(index)?;
        let key = inbox.key.filter(|_| !inbox.is_answered());
        let Some(key) = key else { return Some(Err(Stopped)) };
        let sent = self.write(|http, out| http.send(key, bytes, is_last, out));
        match sent {
            Some(Err(_)) => return Some(Err(Stopped)),
            Some(Ok(sent)) if sent.bytes > 0 || sent.is_ended => return Some(Ok(sent.bytes)),
            _ => {}
        }
        self.inboxes.get_mut(index)?.waits_to_send = true;
        None
    }
}

impl ErrorType for Sender<'_> {
    type Error = Stopped;
}

impl Write for Sender<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Stopped> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let end = self.sent.saturating_add(bytes.len());
        match self.announced {
            // More than was announced: it is another body now.
            Some(length) if end > length => {
                self.sent = end;
                Err(Stopped)
            }
            announced => self.send(bytes, announced == Some(end)).await,
        }
    }

    async fn flush(&mut self) -> Result<(), Stopped> {
        Ok(())
    }
}
