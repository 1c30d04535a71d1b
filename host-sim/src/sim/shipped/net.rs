//! A simulated network: connections that carry bytes, split, late, or not at all.
//!
//! What a connection does is what TCP does: bytes arrive in order or not at all, a sender waits when the
//! receiver does not read, an end in order comes behind all bytes, and a reset comes as soon as it can.
//! Whoever sends to somebody who has forgotten the connection gets a reset, and so does whoever sends
//! nothing, since both sides ask now and then whether the other one is still there; whoever gets no answer
//! for a minute gives it up.

mod handle;
mod transfer;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::random::Random;

use super::super::agenda::Agenda;
use super::super::clock::Moment;
use super::super::link::{GIVES_UP_AFTER_SECS, Link, Way};

pub(super) use handle::Handle;

/// How long a connection may be idle until somebody asks: boards and PCs have their stacks do so.
const KEEP_ALIVE_SECS: u64 = 20;

/// What TCP and IP add to a segment.
const HEADERS: usize = 40;

/// A network that is shared by all who are part of it.
#[derive(Clone)]
pub(super) struct Net(Rc<RefCell<Inner>>);

/// How a network treats bytes when nothing is wrong with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manners {
    /// Shortest delay, and how much longer it may be.
    pub(super) delay_micros: (u64, u64),
    /// The largest piece that is sent at once.
    pub(super) segment: usize,
    /// How much may be under way or unread.
    pub(super) window: usize,
}

struct Inner {
    now: Moment,
    random: Random,
    manners: Manners,
    links: BTreeMap<usize, Link>,
    connections: BTreeMap<u64, Connection>,
    /// Connections that nobody has accepted yet.
    backlog: VecDeque<u64>,
    acceptor: Option<Waker>,
    listening: Listening,
    /// How connections go whose ends are dropped.
    parting: Parting,
    agenda: Agenda<Event>,
    begun: u64,
    /// What happens to the next bytes that a client sends.
    traps: VecDeque<Trap>,
    /// Clients that have stepped into a trap that kills.
    killed: Vec<usize>,
    /// By client, the second that it last began connections in, and how many.
    knocks: BTreeMap<usize, (u64, u32)>,
    /// The most that a client began within a second.
    most_knocks: u32,
    /// All bytes that were read, and a hash over them.
    carried: (u64, u64),
}

/// What happens to those who want to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listening {
    Yes,
    /// Nobody listens.
    Refuses,
    /// Nobody answers.
    Ignores,
}

/// How a connection goes when one of its ends is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// As programs go that close their sockets.
    Usual,
    /// Without a word, as when power is cut.
    Silent,
}

/// What the next bytes that a client sends meet with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trap {
    /// They are lost, and all that comes after them.
    Loss,
    /// Their sender dies, and they are never sent.
    Death,
}

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

impl End {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The way that its bytes go.
    fn sends(self) -> Way {
        match self {
            Self::Client => Way::ToServer,
            Self::Server => Way::FromServer,
        }
    }
}

struct Connection {
    device: usize,
    /// Whether both know of it; for the client, why not.
    opened: Option<Result<(), ErrorKind>>,
    opener: Option<Waker>,
    /// Nothing passes any more.
    is_dead: bool,
    /// The server is asked to take no more requests over it.
    is_to_leave: bool,
    leaver: Option<Waker>,
    sides: [Side; 2],
}

/// What there is at one end.
#[derive(Default)]
struct Side {
    /// What has arrived and was not read.
    arrived: VecDeque<u8>,
    /// How much is on its way to this end.
    under_way: usize,
    /// When what was sent last to this end arrives: nothing overtakes it.
    last: Moment,
    /// Nothing arrives before.
    held_until: Moment,
    /// So many bytes that are sent to this end still arrive, then the connection is reset.
    cut_after: Option<usize>,
    /// Nothing that is sent to this end arrives.
    is_lost: bool,
    /// No more is sent to this end.
    is_ended: bool,
    /// It knows that.
    has_ended: bool,
    /// Why nothing can be sent or received here any more.
    error: Option<ErrorKind>,
    /// Nobody is here any more.
    is_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Side {
    fn wake(&mut self) {
        self.reader.take().into_iter().chain(self.writer.take()).for_each(Waker::wake);
    }
}

enum Event {
    Knock(u64),
    Opened(u64, Result<(), ErrorKind>),
    Bytes(u64, End, Vec<u8>),
    Ended(u64, End),
    Reset(u64, End),
    /// This end is asked by the other whether it is still there.
    Asked(u64, End),
    /// Both ends have waited for too long.
    GivenUp(u64),
}

impl Net {
    pub(super) fn new(seed: u64, manners: Manners) -> Self {
        Self(Rc::new(RefCell::new(Inner {
            now: Moment::default(),
            random: Random::from_seed(seed),
            manners,
            links: BTreeMap::new(),
            connections: BTreeMap::new(),
            backlog: VecDeque::new(),
            acceptor: None,
            listening: Listening::Yes,
            parting: Parting::Usual,
            agenda: Agenda::new(),
            begun: 0,
            traps: VecDeque::new(),
            killed: Vec::new(),
            knocks: BTreeMap::new(),
            most_knocks: 0,
            carried: (0, 0xcbf2_9ce4_8422_2325),
        })))
    }

    /// When something arrives.
    pub(super) fn next_at(&self) -> Option<Moment> {
        self.0.borrow().agenda.next_at()
    }

    /// Lets everything arrive that is due by `now`.
    pub(super) fn pass(&self, now: Moment) {
        let mut inner = self.0.borrow_mut();
        while inner.agenda.next_at().is_some_and(|at| at <= now) {
            let Some((at, event)) = inner.agenda.next() else { break };
            inner.now = inner.now.max(at);
            inner.happen(event);
        }
        inner.now = inner.now.max(now);
    }

    /// Begins a connection of a client.
    pub(super) fn knock(&self, device: usize) -> u64 {
        let mut inner = self.0.borrow_mut();
        inner.begun += 1;
        let number = inner.begun;
        let now = inner.now.as_micros() / 1_000_000;
        let (second, count) = inner.knocks.entry(device).or_default();
        *count = if *second == now { *count + 1 } else { 1 };
        *second = now;
        let count = *count;
        inner.most_knocks = inner.most_knocks.max(count);
        let connection = Connection {
            device,
            opened: None,
            opener: None,
            is_dead: false,
            is_to_leave: false,
            leaver: None,
            sides: [Side::default(), Side::default()],
        };
        inner.connections.insert(number, connection);
        inner.send(number, End::Client, 0, Event::Knock(number));
        number
    }

    pub(super) fn poll_opened(
        &self,
        number: u64,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), ErrorKind>> {
        let mut inner = self.0.borrow_mut();
        let Some(connection) = inner.connections.get_mut(&number) else {
            return Poll::Ready(Err(ErrorKind::NotConnected));
        };
        match connection.opened {
            Some(how) => Poll::Ready(how),
            None => {
                connection.opener = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The next connection of a client's, and whose it is.
    pub(super) fn poll_accept(&self, context: &mut Context<'_>) -> Poll<(u64, usize)> {
        let mut inner = self.0.borrow_mut();
        while let Some(number) = inner.backlog.pop_front() {
            if let Some(connection) = inner.connections.get(&number) {
                return Poll::Ready((number, connection.device));
            }
        }
        inner.acceptor = Some(context.waker().clone());
        Poll::Pending
    }

    /// Waits until the server is asked to take no more requests over a connection.
    pub(super) fn poll_leave(&self, number: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.borrow_mut();
        let Some(connection) = inner.connections.get_mut(&number) else { return Poll::Pending };
        if connection.is_to_leave {
            return Poll::Ready(());
        }
        connection.leaver = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_read(
        &self,
        number: u64,
        end: End,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        self.0.borrow_mut().poll_read(number, end, context, room)
    }

    pub(super) fn poll_write(
        &self,
        number: u64,
        end: End,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        self.0.borrow_mut().poll_write(number, end, context, bytes)
    }

    /// Says that no more will be sent.
    pub(super) fn end(&self, number: u64, end: End) {
        self.0.borrow_mut().end(number, end);
    }

    /// An end is dropped.
    pub(super) fn leave(&self, number: u64, end: End) {
        self.0.borrow_mut().leave(number, end);
    }

    /// An end resets its connection.
    pub(super) fn reset_by(&self, number: u64, end: End) {
        let mut inner = self.0.borrow_mut();
        inner.send(number, end, 0, Event::Reset(number, end.other()));
        inner.fail(number, end, ErrorKind::ConnectionReset);
    }

    /// Acts on all connections that there are.
    pub(super) fn each(&self, mut act: impl FnMut(&mut Handle<'_>)) {
        let mut inner = self.0.borrow_mut();
        let numbers: Vec<u64> = inner.connections.keys().copied().collect();
        for number in numbers {
            act(&mut Handle { inner: &mut inner, number });
        }
    }

    /// Acts on one connection, if it is there.
    pub(super) fn with(&self, number: u64, act: impl FnOnce(&mut Handle<'_>)) {
        let mut inner = self.0.borrow_mut();
        if inner.connections.contains_key(&number) {
            act(&mut Handle { inner: &mut inner, number });
        }
    }

    /// The way of a client to the server.
    pub(super) fn link(&self, device: usize, act: impl FnOnce(&mut Link)) {
        act(self.0.borrow_mut().link(device));
    }

    pub(super) fn listen(&self, how: Listening) {
        self.0.borrow_mut().listening = how;
    }

    pub(super) fn set_trap(&self, trap: Trap) {
        self.0.borrow_mut().traps.push_back(trap);
    }

    /// Clients that are to die.
    pub(super) fn take_killed(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.borrow_mut().killed)
    }

    /// Lets `act` drop ends, whose connections go like that.
    pub(super) fn parting<T>(&self, how: Parting, act: impl FnOnce() -> T) -> T {
        let before = std::mem::replace(&mut self.0.borrow_mut().parting, how);
        let result = act();
        self.0.borrow_mut().parting = before;
        result
    }

    /// The most connections that a client began within a second.
    pub(super) fn most_knocks(&self) -> u32 {
        self.0.borrow().most_knocks
    }

    /// How many bytes were read, and a hash over them.
    pub(super) fn carried(&self) -> (u64, u64) {
        self.0.borrow().carried
    }

    /// All trouble is over: what was held up comes through, what was lost stays so.
    pub(super) fn heal(&self, now: Moment) {
        let mut inner = self.0.borrow_mut();
        inner.listening = Listening::Yes;
        inner.traps.clear();
        inner.links.values_mut().for_each(|link| link.heal(now));
        let soon = now.plus_millis(1);
        for side in inner.connections.values_mut().flat_map(|it| &mut it.sides) {
            side.last = side.last.min(soon);
            side.held_until = side.held_until.min(soon);
            side.cut_after = None;
        }
        let is_held_up = |event: &Event| !matches!(event, Event::GivenUp(_) | Event::Asked(..));
        inner.agenda.hasten(soon, is_held_up);
    }
}

impl Inner {
    fn link(&mut self, device: usize) -> &mut Link {
        let delay = self.manners.delay_micros;
        self.links.entry(device).or_insert_with(|| Link::new(delay))
    }

    /// Sends something from one end to the other.
    fn send(&mut self, number: u64, from: End, bytes: usize, event: Event) {
        let (now, delay) = (self.now, self.manners.delay_micros);
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let side = &mut connection.sides[from.other() as usize];
        if connection.is_dead || side.is_lost {
            return;
        }
        let link = self.links.entry(connection.device).or_insert_with(|| Link::new(delay));
        match link.pass(now, bytes + HEADERS, from.sends(), &mut self.random) {
            Some(passage) => {
                side.last = passage.ends.max(side.last).max(side.held_until);
                self.agenda.plan(side.last, event);
            }
            None => {
                connection.is_dead = true;
                self.give_up(number);
            }
        }
    }

    /// Both ends notice after a while that nothing passes.
    fn give_up(&mut self, number: u64) {
        let after = GIVES_UP_AFTER_SECS / 2 + self.random.below(GIVES_UP_AFTER_SECS);
        self.agenda.plan(self.now.plus_secs(after), Event::GivenUp(number));
    }

    /// An end cannot send or receive any more.
    fn fail(&mut self, number: u64, end: End, error: ErrorKind) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if end == End::Client && connection.opened.is_none() {
            connection.opened = Some(Err(error));
            connection.opener.take().into_iter().for_each(Waker::wake);
        }
        let side = &mut connection.sides[end as usize];
        if side.error.is_none() {
            side.error = Some(error);
            side.wake();
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Knock(number) => {
                let answer = match self.listening {
                    Listening::Ignores => return,
                    Listening::Refuses => Err(ErrorKind::ConnectionRefused),
                    Listening::Yes => {
                        self.backlog.push_back(number);
                        self.acceptor.take().into_iter().for_each(Waker::wake);
                        Ok(())
                    }
                };
                self.send(number, End::Server, 0, Event::Opened(number, answer));
            }
            Event::Opened(number, how) => {
                if let Some(connection) = self.connections.get_mut(&number) {
                    connection.opened = Some(how);
                    connection.opener.take().into_iter().for_each(Waker::wake);
                }
            }
            Event::Bytes(number, to, bytes) => self.arrive(number, to, bytes),
            Event::Ended(number, to) => {
                if let Some(connection) = self.connections.get_mut(&number) {
                    let side = &mut connection.sides[to as usize];
                    side.has_ended = true;
                    side.wake();
                }
            }
            Event::Reset(number, to) => self.fail(number, to, ErrorKind::ConnectionReset),
            Event::Asked(number, end) => {
                self.send(number, end, 0, Event::Reset(number, end.other()));
            }
            Event::GivenUp(number) => {
                if let Some(connection) = self.connections.get_mut(&number) {
                    connection.is_dead = true;
                }
                self.fail(number, End::Client, ErrorKind::TimedOut);
                self.fail(number, End::Server, ErrorKind::TimedOut);
            }
        }
    }
}
