//! One HTTP/2 connection that all clients of a server share.
//!
//! A [`Session`] is run by one task, which reads and writes. Each client has a [`Stream`]: a place among the
//! session's inboxes, where its response comes to. Whatever takes too long or is not wanted any more costs
//! its stream and nothing else; only when the connection itself fails, all that is under way fails with it.
//!
//! A session opens its connection when somebody wants it, and again, with back-off, when it has failed.

mod inbox;
mod pulse;
mod run;
mod stream;

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::Poll;

use embassy_sync::waitqueue::WakerRegistration;
use picokube_core::kind::Kind;
use picokube_http2 as http2;

use crate::{Error, Server};

use inbox::{Inbox, Loan, Ring};
pub use stream::Stream;

/// The most clients of a session: a watch of each kind, and those of requests.
pub const STREAMS: usize = Kind::COUNT + 8;

/// The memory of a session that has to be static in firmware.
pub struct Memory {
    http: http2::Connection<STREAMS>,
    inboxes: [Inbox; STREAMS],
}

impl Memory {
    /// All zero, so that a `static` of this type costs no flash.
    #[expect(clippy::new_without_default, reason = "built in a static, where Default cannot be")]
    pub const fn new() -> Self {
        Self { http: http2::Connection::new(), inboxes: [const { Inbox::EMPTY }; STREAMS] }
    }
}

/// One HTTP/2 connection, and the streams of all clients.
pub struct Session<'a> {
    server: Server<'a>,
    seed: u32,
    state: RefCell<State<'a>>,
    /// Of the task that runs the session.
    runner: RefCell<WakerRegistration>,
    /// How often no connection came about, and why the last time.
    failures: Cell<u32>,
    failure: Cell<Option<Error>>,
    counts: Cell<SessionCounts>,
}

/// What a session has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SessionCounts {
    /// Whether there is a connection now.
    pub is_connected: bool,
    /// Connections that came about: the server has proved who it is and speaks HTTP/2.
    pub connections: u32,
    /// Those of them for which a ticket has spared the server to prove itself anew.
    pub resumed: u32,
    /// Connections that did not come about.
    pub failures: u32,
    /// Connections that the server has asked us to leave.
    pub go_aways: u32,
    /// Requests.
    pub requests: u32,
    /// Streams that we gave up: too slow, or not wanted any more.
    pub cancelled: u32,
    /// When the certificate is over by which the server has proved itself, in seconds since 1970.
    pub server_certificate_expires: Option<u64>,
}

/// What is shared by the task that runs the session and those who exchange.
struct State<'a> {
    http: &'a mut http2::Connection<STREAMS>,
    inboxes: &'a mut [Inbox; STREAMS],
    rings: [Ring<'a>; STREAMS],
    /// How many of them have an owner.
    owned: usize,
    loan: Loan<'a>,
    out: Out<'a>,
    /// The connection has to end at once.
    is_severed: bool,
    /// Something of a response has come by it.
    is_of_use: bool,
}

/// What is to be sent: frames, and then, under protection, what is on its way to the transport.
struct Out<'a> {
    bytes: &'a mut [u8],
    /// What protection needs before and behind the frames.
    before: usize,
    behind: usize,
    frames: usize,
    /// From here to there, what is under protection and has not been sent.
    sent: usize,
    sealed: usize,
}

impl<'a> Session<'a> {
    /// A session without a connection. The head of a request has to fit `out`, authorization included;
    /// `seed` sets the jitter of delays.
    pub fn new(server: Server<'a>, memory: &'a mut Memory, out: &'a mut [u8], seed: u32) -> Self {
        let Memory { http, inboxes } = memory;
        let out = Out { bytes: out, before: 0, behind: 0, frames: 0, sent: 0, sealed: 0 };
        let rings = core::array::from_fn(|_| Ring::none());
        let loan = Loan::new(&mut []);
        let state = State {
            http,
            inboxes,
            rings,
            owned: 0,
            loan,
            out,
            is_severed: false,
            is_of_use: false,
        };
        Self {
            server,
            seed,
            state: RefCell::new(state),
            runner: RefCell::new(WakerRegistration::new()),
            failures: Cell::new(0),
            failure: Cell::new(None),
            counts: Cell::default(),
        }
    }

    /// Gives the session memory to lend: one response at a time that has an end of its own may come in larger
    /// pieces by it, a list above all.
    pub fn lend(&self, memory: &'a mut [u8]) {
        self.state.borrow_mut().loan = Loan::new(memory);
    }

    /// What has been counted.
    pub fn counts(&self) -> SessionCounts {
        self.counts.get()
    }

    /// How many streams are open: one for each watch, and one for each request without an answer.
    pub fn open_streams(&self) -> usize {
        self.state.borrow().inboxes.iter().filter(|inbox| inbox.key.is_some()).count()
    }

    /// Why there is no connection, if the last attempt has failed.
    pub fn trouble(&self) -> Option<Error> {
        self.failure.get()
    }

    fn sever(&self) {
        self.state.borrow_mut().is_severed = true;
        self.ring();
    }

    fn count(&self, count: impl FnOnce(&mut SessionCounts)) {
        let mut counts = self.counts.get();
        count(&mut counts);
        self.counts.set(counts);
    }

    /// There is something for the task that runs the session.
    fn ring(&self) {
        self.runner.borrow_mut().wake();
    }

    /// The server may be waiting for room that a receiver has made.
    fn ring_if_owed(&self) {
        if self.state.borrow().http.owes() {
            self.ring();
        }
    }

    /// Waits at an inbox until `look` has found what it looks for.
    async fn until<T>(&self, index: usize, mut look: impl FnMut(&mut State<'a>) -> Option<T>) -> T {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if let Some(found) = look(&mut state) {
                return Poll::Ready(found);
            }
            if let Some(inbox) = state.inboxes.get_mut(index) {
                inbox.waker.register(context.waker());
            }
            Poll::Pending
        })
        .await
    }
}

impl State<'_> {
    /// Lets `write` add frames; `None` while what was written before is on its way.
    fn write<T>(
        &mut self,
        write: impl FnOnce(&mut http2::Connection<STREAMS>, &mut http2::Output<'_>) -> T,
    ) -> Option<T> {
        let Out { bytes, before, behind, frames, sent, sealed } = &mut self.out;
        if sent < sealed {
            return None;
        }
        let end = bytes.len().saturating_sub(*behind);
        let room = bytes.get_mut(*before..end).unwrap_or_default();
        let mut out = http2::Output::appending(room, *frames);
        let result = write(self.http, &mut out);
        *frames = out.written().len();
        Some(result)
    }

    /// Something has changed for those who could not go on.
    fn wake_those_who_wait_to_send(&mut self) {
        for inbox in self.inboxes.iter_mut().filter(|inbox| inbox.waits_to_send) {
            inbox.waits_to_send = false;
            inbox.waker.wake();
        }
    }
}
