//! One controller process: the real manager, and what a driver keeps for it.

use std::collections::VecDeque;

use bytes::Bytes;
use picokube_core::backoff::{Backoff, Policy};
use picokube_core::kind::Kind;
use picokube_core::manager::{Manager, Request, Settings, Splice};
use picokube_core::splice::Splicer;
use picokube_core::time::{Duration, Instant};
use picokube_core::watch::RequestId;

use crate::random::Random;
use crate::server::watch::Watch;
use crate::time::Timestamp;

use super::checks::Basis;
use super::clock::{DeviceClock, Moment};
use super::link::Link;
use super::memory::Memory;
use super::world::Happening;

/// Every kind that is watched; the first three by controllers of Deployments alone.
pub(super) const KINDS: [Kind; 7] = [
    Kind::Deployment,
    Kind::ReplicaSet,
    Kind::Pod,
    Kind::StatefulSet,
    Kind::ControllerRevision,
    Kind::PersistentVolumeClaim,
    Kind::ReplicationController,
];

/// How a driver's connection tries again after a failure.
const BACKOFF: Policy = Policy {
    base: Duration::from_millis(50),
    cap: Duration::from_secs(5),
    reset: Duration::from_secs(60),
};

/// A clock goes back when so many dates in a row agree on that.
const DATES_AGREE: usize = 2;
/// A sync may have begun so long ago, when the clock was another.
const DATES_HOLD_SECS: u64 = 120;

/// Versions up to which a controller has been told, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told([u64; KINDS.len()]);

impl Told {
    pub(super) fn of(&self, kind: Kind) -> u64 {
        self.0[index(kind)]
    }

    pub(super) fn set(&mut self, kind: Kind, version: u64) {
        self.0[index(kind)] = version;
    }

    /// Of each kind, what the one or the other has been told that is older.
    pub(super) fn least(mut self, other: Self) -> Self {
        for (one, other) in self.0.iter_mut().zip(other.0) {
            *one = (*one).min(other);
        }
        self
    }
}

/// A controller that runs.
pub(super) struct Device<'m> {
    /// Its place among the controllers.
    pub(super) number: usize,
    /// Tells this boot from all others, of this controller and of others.
    pub(super) boot: u64,
    pub(super) manager: Manager<'m>,
    pub(super) lanes: Vec<Lane>,
    streams: [Option<Stream>; KINDS.len()],
    /// How far it has been told of each kind: a version of the server's. What it knows is as new as
    /// that, or newer.
    pub(super) told: Told,
    /// The body that was made last, for the next request that wants the same.
    pub(super) body_buffer: Option<(Splice, Bytes)>,
    pub(super) link: Link,
    /// When it will be woken.
    pub(super) wakes_at: Option<Moment>,
    pub(super) frozen_until: Moment,
    /// Until when the server does not know it.
    pub(super) token_is_old_until: Moment,
    /// What has come while it was frozen.
    pub(super) held: Vec<Happening>,
    /// What has come while the decoder was in the midst of something else, in order.
    pub(super) waiting: Vec<Happening>,
    /// It ends as soon as it has given leadership back.
    pub(super) is_ending: bool,
    /// It dies as soon as nobody looks.
    pub(super) dying: bool,
    clock: DeviceClock,
    /// What servers have said that the time is, and when that was heard.
    dates: VecDeque<(Moment, Timestamp)>,
    random: Random,
}

/// What serves one request at a time.
pub(super) struct Lane {
    pub(super) work: Option<Work>,
    pub(super) not_before: Moment,
    backoff: Backoff,
}

/// A request that is being carried out.
pub(super) struct Work {
    /// Which exchange of it is under way.
    pub(super) exchange: u64,
    pub(super) request: Request,
    /// The making of its body, while that goes on.
    pub(super) splicing: Option<Box<Splicing>>,
    /// What the controller may have known when it decided on it.
    pub(super) basis: Basis,
    /// The body of a request that it was about to send when it was frozen.
    pub(super) unsent: Option<Bytes>,
}

/// A body in the making.
pub(super) struct Splicing {
    pub(super) splicer: Splicer,
    pub(super) made: Vec<u8>,
}

/// The connection of a watched kind, both ends of it.
pub(super) struct Stream {
    /// Tells this connection from all others.
    pub(super) number: u64,
    pub(super) id: RequestId,
    /// The server's end, while it is an open watch.
    pub(super) watch: Option<Box<Watch>>,
    /// Nothing overtakes what was sent before.
    pub(super) last_delivery: Moment,
    pub(super) stalled_until: Moment,
    /// The next event is cut there, in percent.
    pub(super) cut_at: Option<u8>,
    /// When the server's end looks at it without a cause.
    pub(super) looks_at: Option<Moment>,
    /// The last events that were sent.
    pub(super) recent: std::collections::VecDeque<Bytes>,
    /// The version of the list that is being read.
    pub(super) listed: Option<u64>,
}

/// What a controller is started with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) number: usize,
    pub(super) boot: u64,
    pub(super) at: Moment,
    /// How fast its clock runs, in thousandths.
    pub(super) clock_rate: u64,
    pub(super) lanes: usize,
    pub(super) delay_micros: (u64, u64),
    pub(super) settings: Settings,
    pub(super) seed: u64,
}

impl<'m> Device<'m> {
    pub(super) fn new(start: &Start, memory: &'m mut Memory) -> Self {
        let (parts, desk) = memory.parts();
        let lane =
            || Lane { work: None, not_before: Moment::default(), backoff: Backoff::new(BACKOFF) };
        let mut random = Random::from_seed(start.seed ^ start.boot);
        Self {
            number: start.number,
            boot: start.boot,
            manager: Manager::new(parts, desk, start.settings, random.next_u64()),
            lanes: (0..start.lanes).map(|_| lane()).collect(),
            streams: [const { None }; KINDS.len()],
            told: Told::default(),
            body_buffer: None,
            link: Link::new(start.delay_micros),
            wakes_at: None,
            frozen_until: Moment::default(),
            token_is_old_until: Moment::default(),
            held: Vec::new(),
            waiting: Vec::new(),
            is_ending: false,
            dying: false,
            clock: DeviceClock::new(start.at, start.clock_rate),
            dates: VecDeque::new(),
            random,
        }
    }

    /// What its clock shows.
    pub(super) fn local(&self, now: Moment) -> Instant {
        self.clock.at(now)
    }

    /// Whether what comes now has to wait: it stands still, or has still to look at what came meanwhile.
    pub(super) fn stands_still(&self, now: Moment) -> bool {
        self.frozen_until > now || !self.held.is_empty()
    }

    /// When its clock shows that.
    pub(super) fn when(&self, instant: Instant) -> Moment {
        self.clock.when(instant)
    }

    /// A server has said what the time is.
    pub(super) fn hear(&mut self, now: Moment, date: Timestamp) {
        self.dates.push_back((now, date));
        let is_old = |at: Moment| now.micros_since(at) > DATES_HOLD_SECS * 1_000_000;
        while self.dates.len() > DATES_AGREE && self.dates.front().is_some_and(|it| is_old(it.0)) {
            self.dates.pop_front();
        }
    }

    /// The latest that it may take the time to be: what it has heard of late, and what its own clock has
    /// added. `Date` has whole seconds.
    pub(super) fn wall_at_most(&self, now: Moment) -> Timestamp {
        let shown = |(at, date): &(Moment, Timestamp)| {
            let passed = self.local(now).since(self.local(*at)).as_micros() / 1000;
            date.plus_millis(passed as i64 + 1000)
        };
        self.dates.iter().map(shown).max().unwrap_or(now.wall())
    }

    pub(super) fn draw(&mut self) -> u32 {
        self.random.next_u64() as u32
    }

    /// The connections of the kinds that it watches.
    pub(super) fn streams(&self) -> impl Iterator<Item = &Option<Stream>> {
        let watched = KINDS.into_iter().zip(&self.streams);
        watched.filter(|(kind, _)| self.manager.watches(*kind)).map(|(_, stream)| stream)
    }

    pub(super) fn stream_mut(&mut self, kind: Kind) -> &mut Option<Stream> {
        &mut self.streams[index(kind)]
    }

    /// No watch is held up any more.
    pub(super) fn end_trouble(&mut self, now: Moment) {
        for stream in self.streams.iter_mut().flatten() {
            stream.cut_at = None;
            stream.stalled_until = stream.stalled_until.min(now);
            stream.last_delivery = stream.last_delivery.min(now.plus_millis(1));
        }
    }

    /// The lane whose work this exchange is.
    pub(super) fn lane_of(&self, exchange: u64) -> Option<usize> {
        let is_it = |lane: &Lane| lane.work.as_ref().is_some_and(|work| work.exchange == exchange);
        self.lanes.iter().position(is_it)
    }

    /// Whether what waits for the decoder can be tried again.
    pub(super) fn can_go_on(&self, now: Moment) -> bool {
        let is_free = |at: Option<Instant>| at.is_none_or(|at| at <= self.local(now));
        !self.waiting.is_empty() && is_free(self.manager.decoder_free_at())
    }

    /// The connection of a lane broke: it waits before it tries again.
    pub(super) fn back_off(&mut self, lane: usize, now: Moment) {
        let (local, random) = (self.local(now), self.draw());
        let lane = &mut self.lanes[lane];
        lane.not_before = now.plus_micros(lane.backoff.next(local, random).as_micros());
    }

    /// An exchange of a lane has worked.
    pub(super) fn calm_down(&mut self, lane: usize) {
        self.lanes[lane].backoff.reset();
    }
}

/// The place of a kind among those watched.
fn index(kind: Kind) -> usize {
    match KINDS.iter().position(|it| *it == kind) {
        Some(at) => at,
        None => panic!("nothing simulates a {kind:?}"),
    }
}
