//! The task that runs a session: it connects, reads and writes.

use core::future::poll_fn;
use core::task::{Context, Poll, ready};

use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Timer, with_timeout};
use picokube_core::backoff::Policy;
use picokube_core::manager::ResponseHead;
use picokube_core::time::Duration as Span;
use picokube_http2::{Config, Event};

use super::inbox::Ring;
use super::pulse::{Beat, Pulse};
use super::{Session, State};
use crate::Error;
use crate::pause::Pause;
use crate::secure::{Channel, Insecure, Secure};

/// Between two attempts to connect. A handshake costs some tenths of a second of a small processor.
const RECONNECT: Policy =
    Policy { base: Span::from_millis(100), cap: Span::from_secs(15), reset: Span::from_secs(60) };
/// From the wish to connect to a server that has proved who it is.
const OPENING: Duration = Duration::from_secs(30);
/// How long the server may take to greet us after that.
const GREETING: Duration = Duration::from_secs(10);
/// How long it may take to say good-bye.
const FAREWELL: Duration = Duration::from_secs(1);

impl Session<'_> {
    /// Carries all streams, for ever.
    pub async fn run(&self, secure: &mut impl Secure) -> ! {
        let mut pause = Pause::new(RECONNECT, self.seed);
        loop {
            self.until_wanted().await;
            pause.over().await;
            let failed = match self.open(secure).await {
                Ok(mut channel) => self.keep(&mut channel).await,
                Err(error) => Err(error),
            };
            match failed {
                Ok(()) if self.state.borrow().is_of_use => pause.succeeded(),
                // It may be like this for ever.
                Ok(()) => pause.failed(),
                Err(error) => {
                    pause.failed();
                    self.failed(match error {
                        error if error.is_before_sending() => error,
                        Error::Http2(_) => Error::Insecure(Insecure::NoHttp2),
                        _ => Error::Insecure(Insecure::HandshakeBroken),
                    });
                }
            }
        }
    }

    async fn until_wanted(&self) {
        poll_fn(|context| {
            let state = self.state.borrow();
            if state.inboxes.iter().any(|inbox| inbox.waits_to_send) {
                return Poll::Ready(());
            }
            self.runner.borrow_mut().register(context.waker());
            Poll::Pending
        })
        .await;
    }

    async fn open<'c, S: Secure>(&self, secure: &'c mut S) -> Result<S::Channel<'c>, Error> {
        // Nobody else needs it before there is a connection.
        let out = core::mem::take(&mut self.state.borrow_mut().out.bytes);
        let opened = with_timeout(OPENING, secure.open(out)).await;
        self.state.borrow_mut().out.bytes = out;
        opened.unwrap_or(Err(Error::ConnectTimeout))
    }

    /// No connection came about: whoever waits for one is told.
    fn failed(&self, error: Error) {
        self.failure.set(Some(error));
        self.failures.set(self.failures.get().wrapping_add(1));
        self.count(|counts| counts.failures += 1);
        self.state.borrow_mut().wake_those_who_wait_to_send();
    }

    /// Keeps a connection as long as it lasts. An error is why it never came to be of use.
    async fn keep(&self, channel: &mut impl Channel) -> Result<(), Error> {
        self.state.borrow_mut().begin(channel);
        let mut is_greeted = false;
        let end = match with_timeout(GREETING, self.carry(channel, Until::Greeted)).await {
            Ok(Ok(())) => {
                is_greeted = true;
                self.connected(channel);
                self.carry(channel, Until::End).await
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::ResponseTimeout),
        };
        self.count(|counts| counts.is_connected = false);
        // What was sent may have been carried out.
        let error = end.err().unwrap_or(Error::Leaving);
        let error = if error.is_before_sending() { Error::Reset } else { error };
        self.state.borrow_mut().end(error);
        if !self.state.borrow().is_severed {
            // It may be why the connection ends that the other side does not listen.
            let _ = with_timeout(FAREWELL, self.say_farewell(channel)).await;
        }
        self.state.borrow_mut().out.clear();
        if is_greeted { Ok(()) } else { end }
    }

    fn connected(&self, channel: &impl Channel) {
        self.failure.set(None);
        self.count(|counts| {
            counts.is_connected = true;
            counts.connections += 1;
            counts.resumed += u32::from(channel.is_resumed());
            counts.server_certificate_expires = channel.server_certificate_expires();
        });
        self.state.borrow_mut().wake_those_who_wait_to_send();
    }

    /// Reads and writes until that.
    async fn carry(&self, channel: &mut impl Channel, until: Until) -> Result<(), Error> {
        let mut pulse = Pulse::new(Instant::now());
        loop {
            let due = pulse.due();
            let turns = poll_fn(|context| self.turn(context, channel, &mut pulse, until));
            match select(turns, Timer::at(due)).await {
                Either::First(end) => return end,
                Either::Second(()) => match pulse.beat(Instant::now()) {
                    Beat::Nothing => {}
                    Beat::Ask => self.state.borrow_mut().http.ping(),
                    Beat::Forgive => self.state.borrow_mut().http.forgive(),
                    Beat::GiveUp => return Err(Error::Silence),
                },
            }
        }
    }

    /// Reads and writes as long as there is something to read or to write.
    fn turn(
        &self,
        context: &mut Context<'_>,
        channel: &mut impl Channel,
        pulse: &mut Pulse,
        until: Until,
    ) -> Poll<Result<(), Error>> {
        self.runner.borrow_mut().register(context.waker());
        loop {
            if self.state.borrow().is_severed {
                return Poll::Ready(Err(Error::Reset));
            }
            // A server that does not take what we send is read all the same.
            if let Poll::Ready(Err(error)) = self.poll_write(context, channel) {
                return Poll::Ready(Err(error));
            }
            let mut state = self.state.borrow_mut();
            let is_over = match until {
                Until::Greeted => state.http.check_ready().is_ok(),
                Until::End => state.is_left(),
            };
            if is_over {
                return Poll::Ready(Ok(()));
            }
            ready!(channel.poll_receive(context))?;
            let received = channel.received();
            let count = received.len();
            if count == 0 {
                return Poll::Ready(state.http.end_of_input().map_err(Error::http2));
            }
            pulse.heard(Instant::now());
            let go_aways = state.receive(received)?;
            if go_aways > 0 {
                self.count(|counts| counts.go_aways += go_aways);
            }
            state.wake_those_who_wait_to_send();
            channel.consume(count);
        }
    }

    /// Sends all that there is to send.
    fn poll_write(
        &self,
        context: &mut Context<'_>,
        channel: &mut impl Channel,
    ) -> Poll<Result<(), Error>> {
        let mut state = self.state.borrow_mut();
        loop {
            while let Some(bytes) = state.out.sealed() {
                let count = ready!(channel.poll_send(context, bytes))?;
                state.out.sent += count;
            }
            ready!(channel.poll_flush(context))?;
            state.write(|http, out| http.write(out));
            if state.out.frames == 0 {
                return Poll::Ready(Ok(()));
            }
            let length = core::mem::take(&mut state.out.frames);
            let sealed = channel.seal(length, state.out.bytes)?;
            (state.out.sent, state.out.sealed) = (0, sealed);
            // They see that there is room when it has left.
            state.wake_those_who_wait_to_send();
        }
    }

    /// Says why the connection ends.
    async fn say_farewell(&self, channel: &mut impl Channel) -> Result<(), Error> {
        poll_fn(|context| self.poll_write(context, channel)).await?;
        self.state.borrow_mut().out.hold(|out| channel.farewell(out));
        poll_fn(|context| self.poll_write(context, channel)).await?;
        poll_fn(|context| channel.poll_finish(context)).await;
        Ok(())
    }
}

/// What a connection is carried until.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// The server has greeted us.
    Greeted,
    /// It is over.
    End,
}

impl super::Out<'_> {
    /// What is on its way.
    fn sealed(&self) -> Option<&[u8]> {
        self.bytes.get(self.sent..self.sealed).filter(|bytes| !bytes.is_empty())
    }

    /// Puts something there that is under protection already.
    fn hold(&mut self, write: impl FnOnce(&mut [u8]) -> usize) {
        (self.sent, self.sealed) = (0, write(self.bytes));
    }

    fn clear(&mut self) {
        (self.frames, self.sent, self.sealed) = (0, 0, 0);
    }
}

impl State<'_> {
    /// There is a connection.
    fn begin<C: Channel>(&mut self, _: &C) {
        (self.is_severed, self.is_of_use) = (false, false);
        (self.out.before, self.out.behind) = (C::BEFORE, C::BEHIND);
        self.out.clear();
        let sizes = || self.rings.iter().take(self.owned).map(Ring::size);
        let window = |size| u32::try_from(size).unwrap_or(u32::MAX);
        self.http.open(Config {
            stream_window: window(sizes().min().unwrap_or(1)),
            // All streams together: more cannot be waiting here, and the server need not wait for less.
            connection_window: window(sizes().sum()),
        });
    }

    /// There is none any more: all that is under way ends by `error`.
    fn end(&mut self, error: Error) {
        // The connection takes no more requests.
        let _ = self.http.end_of_input();
        for inbox in self.inboxes.iter_mut().filter(|inbox| inbox.key.is_some()) {
            inbox.end(Err(error));
        }
    }

    /// Whether the server wants us to leave and nothing is under way that has an end. What has none is
    /// given up.
    fn is_left(&mut self) -> bool {
        if !self.http.is_leaving() {
            return false;
        }
        let mut under_way = self.inboxes.iter_mut().filter(|inbox| inbox.key.is_some());
        if under_way.any(|inbox| inbox.ends_by_itself) {
            return false;
        }
        for inbox in self.inboxes.iter_mut() {
            if let Some(key) = inbox.key {
                self.http.cancel(key);
                inbox.end(Err(Error::Leaving));
            }
        }
        true
    }

    /// Puts what has come where it belongs: how often the server has asked us to leave.
    fn receive(&mut self, mut input: &[u8]) -> Result<u32, Error> {
        let mut go_aways = 0;
        while let Some(event) = self.http.receive(&mut input).map_err(Error::http2)? {
            let key = match event {
                Event::Ready | Event::Pong => continue,
                Event::GoAway { .. } => {
                    go_aways += 1;
                    continue;
                }
                Event::Head { stream, .. }
                | Event::Data { stream, .. }
                | Event::End { stream }
                | Event::Reset { stream, .. } => stream,
            };
            // Streams that were given up are not told of any more.
            let index = self.inboxes.iter().position(|inbox| inbox.key == Some(key));
            let Some(index) = index else { continue };
            let (inbox, ring) = (self.inboxes.get_mut(index), self.rings.get_mut(index));
            let (Some(inbox), Some(ring)) = (inbox, ring) else { continue };
            match event {
                Event::Head { head, .. } => {
                    inbox.head = ResponseHead::new(head.status, head.date(), head.retry_after());
                    inbox.has_head = true;
                    inbox.waker.wake();
                }
                Event::Data { bytes, .. } => {
                    self.is_of_use = true;
                    // A ring is as large as the window of its stream.
                    if !ring.push(bytes, self.loan.of(index)) {
                        self.http.cancel(key);
                        inbox.end(Err(Error::Malformed));
                    }
                    inbox.waker.wake();
                }
                Event::End { .. } => {
                    self.is_of_use = true;
                    inbox.end(Ok(()));
                }
                Event::Reset { reason, .. } => inbox.end(Err(Error::reset(reason))),
                Event::Ready | Event::GoAway { .. } | Event::Pong => {}
            }
        }
        Ok(go_aways)
    }
}
