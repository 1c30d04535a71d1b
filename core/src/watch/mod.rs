//! The reflector of one kind: keeps the cache equal to the server by list and watch.
//!
//! A machine without I/O. [`Watch::poll`] says what to send, [`Watch::handle`] takes in what
//! comes back, [`Watch::poll_at`] says when to call `poll` again if nothing comes. The objects in
//! a body go to a [`Source`], which decodes them and applies them to the cache.
//!
//! The rules are those of Kubernetes' reflector: a first list at any version in pages; then a
//! watch that is reopened at the last version when it ends; a new list only after an error.

mod feed;
mod list;
mod request;
mod source;
mod stream;

pub use feed::{Feed, Handler, Place};
pub use request::{Resource, WatchRequest, length_in_url};
pub use source::{BodyShape, ListEnd, Malformed, More, Seen, Source};

use heapless::String;

use crate::backoff::{Backoff, Policy};
use crate::limits;
use crate::request::ResponseHead;
use crate::time::{Duration, Instant};
use crate::wire::{ResourceVersion, Status};

/// Silence after which a connection counts as dead: the server sends bookmarks about every
/// minute, and answers everything else within a minute.
const SILENCE: Duration = Duration::from_secs(150);
/// Time the server gets to end a watch after the time-out it was asked for.
const GRACE: Duration = Duration::from_secs(30);
/// A watch that ends sooner without an event is an error.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// At least so long between a list and the next one that looks for room.
const RELIST_EVERY: Duration = Duration::from_secs(30);
/// How often a request is repeated because the server says `Retry-After`.
const MOST_RETRIES: u8 = 10;

/// What `poll` wants done.
#[derive(Debug)]
pub enum Command<'a> {
    /// Send this request on a connection of its own.
    Send(WatchRequest<'a>),
    /// Close the connection of this request; nothing more is expected from it.
    Close(RequestId),
}

/// What came back for a request.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The head of the response.
    Head(ResponseHead),
    /// Bytes of the body, cut anywhere.
    Body(&'a [u8]),
    /// The body is complete.
    End,
    /// The connection broke off, or no response came.
    Cut,
    /// The server has asked that its connection be left, which it shares with others: on the next one it can
    /// go on.
    Left,
    /// The connection could not be opened because nobody listens.
    Refused,
    /// The connection could not be opened for another reason.
    Unreachable,
}

/// Tells the answer to one request from late answers to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RequestId(u32);

/// What the machine has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WatchCounts {
    /// Complete lists.
    pub lists: u32,
    /// Watches that were opened.
    pub watches: u32,
    /// Errors that led to back-off.
    pub errors: u32,
    /// How often the server went back in time.
    pub rewinds: u32,
}

/// The reflector of one kind.
#[derive(Debug)]
pub struct Watch {
    resource: Resource,
    phase: Phase,
    request: u32,
    /// A connection that has to be closed before anything else.
    close: Option<RequestId>,
    backoff: Backoff,
    retries: u8,
    /// The version up to which the cache is complete.
    version: Option<ResourceVersion>,
    /// The newest object of a list that was not completed. The next list must not be older: the
    /// cache never goes back in time.
    touched: ResourceVersion,
    /// A server refused to list at `version`: the next list is a consistent read.
    version_unavailable: bool,
    /// The first list came in pages, so the server has no watch cache that would answer whole.
    always_page: bool,
    list: list::Progress,
    continue_token: String<{ limits::CONTINUE }>,
    stream: stream::Progress,
    synced: bool,
    resync: Option<Duration>,
    resync_at: Option<Instant>,
    relist_wanted: bool,
    listed_at: Option<Instant>,
    bookmarks_seen: bool,
    counts: WatchCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// `poll` sends the request as soon as the time has come.
    Due { next: Next, at: Instant },
    /// A request is on its way.
    Open { next: Next, body: Body, deadline: Instant },
}

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A list from its first page.
    List,
    /// The next page of the list, or the same request once more.
    Page,
    /// A watch.
    Watch,
}

/// How much of the response there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Awaited,
    Wanted,
    Error { status: u16, retry_after: Option<u32> },
}

impl Watch {
    /// A reflector that has not begun. With `resync`, every object is handed out again that
    /// often.
    pub const fn new(resource: Resource, resync: Option<Duration>) -> Self {
        Self {
            resource,
            phase: Phase::Due { next: Next::List, at: Instant::ZERO },
            request: 0,
            close: None,
            backoff: Backoff::new(Policy::REFLECTOR),
            retries: 0,
            version: None,
            touched: ResourceVersion::ANY,
            version_unavailable: false,
            always_page: false,
            list: list::Progress::NONE,
            continue_token: String::new(),
            stream: stream::Progress::NONE,
            synced: false,
            resync,
            resync_at: None,
            relist_wanted: false,
            listed_at: None,
            bookmarks_seen: false,
            counts: WatchCounts { lists: 0, watches: 0, errors: 0, rewinds: 0 },
        }
    }

    /// Whether the first complete list is in the cache. No controller acts before.
    pub fn has_synced(&self) -> bool {
        self.synced
    }

    /// The version up to which the cache is known to be complete.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.version
    }

    /// What the machine has counted.
    pub fn counts(&self) -> WatchCounts {
        self.counts
    }

    /// Asks for a list, because the cache may have room for objects it had to refuse. It comes
    /// when the last one is not too fresh.
    pub fn want_relist(&mut self) {
        self.relist_wanted = true;
    }

    /// Asks for a list that is a consistent read: what the server has now, and no cache of its. Until it has
    /// come, nothing is known to be [synced](Self::has_synced).
    pub fn look_anew(&mut self, now: Instant) {
        let mut at = now;
        match self.phase {
            Phase::Open { .. } => self.abandon(),
            // A back-off goes on.
            Phase::Due { next: Next::List, at: due } => at = due.max(now),
            Phase::Due { .. } => {}
        }
        self.synced = false;
        self.version_unavailable = true;
        self.phase = Phase::Due { next: Next::List, at };
    }

    /// Whether a resync is due: then the caller hands every cached object to its handlers again, as an
    /// update without change.
    pub fn take_resync(&mut self, now: Instant) -> bool {
        let due = self.resync_at.is_some_and(|at| at <= now);
        if let (true, Some(every)) = (due, self.resync) {
            self.resync_at = Some(now + every);
        }
        due
    }

    /// The next thing to do now, if any. To be called until it returns `None`.
    ///
    /// `random` is a fresh uniform number.
    pub fn poll(&mut self, now: Instant, random: u32) -> Option<Command<'_>> {
        self.check_time(now, random);
        if let Some(id) = self.close.take() {
            return Some(Command::Close(id));
        }
        match self.phase {
            Phase::Due { next, at } if at <= now => {
                self.request = self.request.wrapping_add(1);
                let deadline = now + SILENCE;
                self.phase = Phase::Open { next, body: Body::Awaited, deadline };
                match next {
                    Next::List => self.begin_list(),
                    Next::Page => {}
                    Next::Watch => self.begin_watch(now, random),
                }
                Some(Command::Send(WatchRequest { watch: self, id: RequestId(self.request) }))
            }
            _ => None,
        }
    }

    /// The request of this number, once more, as long as it is the one that is open.
    pub fn request(&self, id: RequestId) -> Option<WatchRequest<'_>> {
        let is_open = matches!(self.phase, Phase::Open { .. }) && id.0 == self.request;
        is_open.then_some(WatchRequest { watch: self, id })
    }

    /// When [`poll`](Self::poll) has something to do, if nothing comes in before.
    pub fn poll_at(&self) -> Instant {
        let phase = match self.phase {
            _ if self.close.is_some() => Instant::ZERO,
            Phase::Due { at, .. } => at,
            Phase::Open { next: Next::Watch, deadline, .. } if self.relist_wanted => {
                deadline.min(self.relist_at())
            }
            Phase::Open { deadline, .. } => deadline,
        };
        self.resync_at.map_or(phase, |resync| resync.min(phase))
    }

    /// Takes in what came back for a request. Late answers to earlier requests are ignored. Returns how
    /// many bytes of an [`Input::Body`] were taken; the rest is to come again (see [`Source::push`]).
    ///
    /// `random` is a fresh uniform number.
    pub fn handle(
        &mut self,
        now: Instant,
        random: u32,
        id: RequestId,
        input: Input<'_>,
        source: &mut dyn Source,
    ) -> usize {
        let len = if let Input::Body(bytes) = input { bytes.len() } else { 0 };
        let Phase::Open { next, body, .. } = self.phase else { return len };
        if id.0 != self.request {
            return len;
        }
        match (input, body) {
            (Input::Head(ResponseHead { status, retry_after, .. }), Body::Awaited) => {
                self.head(now, next, status, retry_after, source);
            }
            (Input::Body(bytes), Body::Wanted) if next == Next::Watch => {
                return self.stream_bytes(now, random, bytes, source);
            }
            (Input::Body(bytes), Body::Wanted) => {
                return self.list_bytes(now, random, bytes, source);
            }
            (Input::Body(bytes), Body::Error { .. }) => {
                self.stay_open(now);
                // A proxy may answer with something else than a Status: the code has to do.
                return source.push(bytes, &mut |_| {}).unwrap_or(len);
            }
            (Input::End, Body::Wanted) if next == Next::Watch => self.stream_ended(now, random),
            (Input::End, Body::Wanted) => self.list_ended(now, random, source),
            (Input::End | Input::Cut | Input::Left, Body::Error { status, retry_after }) => {
                let refusal = source.status();
                self.refused(now, random, next, status, retry_after, refusal);
            }
            (Input::Cut, Body::Wanted) if next == Next::Watch => self.stream_ended(now, random),
            (Input::Left, _) => self.go_on(now, next),
            (Input::Refused, _) if next == Next::Watch => self.retry_watch(now, random),
            _ => self.fail(now, random),
        }
        len
    }

    /// The response is given up because nothing more of it comes.
    pub fn give_up(&mut self, now: Instant, random: u32) {
        let Phase::Open { next, body, .. } = self.phase else { return };
        self.abandon();
        match (next, body) {
            (Next::Watch, Body::Wanted) => self.stream_ended(now, random),
            _ => self.fail(now, random),
        }
    }

    fn head(
        &mut self,
        now: Instant,
        next: Next,
        status: u16,
        retry_after: Option<u32>,
        source: &mut dyn Source,
    ) {
        let (body, shape) = match (status, next) {
            (200, Next::List) => (Body::Wanted, BodyShape::FirstPage),
            (200, Next::Page) if self.list.pages == 0 => (Body::Wanted, BodyShape::FirstPage),
            (200, Next::Page) => (Body::Wanted, BodyShape::NextPage),
            (200, Next::Watch) => (Body::Wanted, BodyShape::Watch),
            (status, _) => (Body::Error { status, retry_after }, BodyShape::Status),
        };
        if body == Body::Wanted {
            self.retries = 0;
        }
        source.begin(shape);
        self.phase = Phase::Open { next, body, deadline: now };
        self.stay_open(now);
    }

    /// The server said no.
    fn refused(
        &mut self,
        now: Instant,
        random: u32,
        next: Next,
        code: u16,
        retry_after: Option<u32>,
        status: Option<&Status>,
    ) {
        let verdict = list::ListRefusal::of(code, status);
        let list = next != Next::Watch;
        match verdict {
            list::ListRefusal::Expired | list::ListRefusal::TooLarge if list => {
                self.list_refused(now, random);
            }
            _ if (code == 429 || code >= 500)
                && self.retries < MOST_RETRIES
                && retry_after.is_some() =>
            {
                self.retries += 1;
                let seconds = retry_after.unwrap_or_default().min(limits::RETRY_AFTER);
                let wait = Duration::from_secs(u64::from(seconds));
                let next = if list { Next::Page } else { Next::Watch };
                self.phase = Phase::Due { next, at: now + wait };
            }
            list::ListRefusal::TooMany if !list => self.retry_watch(now, random),
            _ => self.fail(now, random),
        }
    }

    /// Nothing has failed: the same once more, but for a list, which begins anew.
    fn go_on(&mut self, now: Instant, next: Next) {
        let next = if next == Next::Watch { Next::Watch } else { Next::List };
        self.phase = Phase::Due { next, at: now };
    }

    /// Any error without a rule of its own: back-off, then a list.
    fn fail(&mut self, now: Instant, random: u32) {
        self.counts.errors = self.counts.errors.wrapping_add(1);
        self.retries = 0;
        let at = now + self.backoff.next(now, random);
        self.phase = Phase::Due { next: Next::List, at };
    }

    /// The request is over while its connection still is there.
    fn abandon(&mut self) {
        self.close = Some(RequestId(self.request));
    }

    /// Something came: the connection lives.
    fn stay_open(&mut self, now: Instant) {
        let silence = now + SILENCE;
        let limit = self.stream.limit;
        if let Phase::Open { next, deadline, .. } = &mut self.phase {
            *deadline = match next {
                Next::Watch if !self.bookmarks_seen => limit,
                Next::Watch => silence.min(limit),
                Next::List | Next::Page => silence,
            };
        }
    }

    fn check_time(&mut self, now: Instant, random: u32) {
        let Phase::Open { next, deadline, .. } = self.phase else { return };
        if deadline <= now {
            self.give_up(now, random);
        } else if self.relist_wanted && next == Next::Watch && self.relist_at() <= now {
            self.abandon();
            self.phase = Phase::Due { next: Next::List, at: now };
        }
    }

    fn relist_at(&self) -> Instant {
        self.listed_at.map_or(Instant::ZERO, |listed| listed + RELIST_EVERY)
    }
}
