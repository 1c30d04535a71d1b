//! The elector: acquires, renews and releases a Lease, as a state machine without I/O.
//!
//! A try is up to three requests in a row. Who holds the Lease renews it with one, at the version that the
//! last answer told; when that fails, the Lease is read, and written at the version that was read. Between
//! tries of who stands by lies a retry period and up to 1.2 more; a leader has until the renew deadline.

use crate::planted::{Bug, planted};
use crate::request::{ContentType, Failure, Method};
use crate::time::{Duration, Instant, Timestamp};
use crate::wire::{ResourceVersion, Uid};

use super::lease::{LeaseReader, Record};
use super::settings::LeaderElection;

/// How long a leader may go without a renewal beyond the lease before it counts as ill.
const HEALTH_GRACE: Duration = Duration::from_secs(20);

/// One who takes part in an election.
#[derive(Debug)]
pub struct Elector {
    pub(super) settings: LeaderElection<'static>,
    role: Role,
    /// What the Lease said when it was seen or written last.
    pub(super) observed: Record,
    /// When that had changed, by the own clock: no other is looked at.
    observed_at: Instant,
    pub(super) version: ResourceVersion,
    pub(super) uid: Uid,
    pub(super) reader: LeaseReader,
    /// The request at hand; of one that is not under way, it is to be sent.
    step: Option<Step>,
    is_under_way: bool,
    /// When the request at hand was handed out.
    sent_at: Instant,
    /// The same by the server's clock, as the request says.
    pub(super) written_at: Timestamp,
    /// When the try at hand began.
    tried_at: Instant,
    /// When the next one begins.
    next_at: Instant,
    /// The transitions and the beginning of the term that is to be written.
    pub(super) term: Term,
    /// What the manager has not heard of yet.
    news: Option<Leadership>,
    /// What no event tells yet.
    announcements: [Option<Leadership>; 2],
    /// Renewals that took more than one request.
    slow_paths: u32,
}

/// What has become of this one's leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Leadership {
    /// It leads from now on.
    Gained = 1,
    /// It does not lead any more.
    Lost,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The holder renews the Lease at the version it knows.
    Renew,
    /// The Lease is read.
    Get,
    /// It is created.
    Create,
    /// It is taken, or renewed at the version that was read.
    Update,
    /// It is given back.
    Release,
    /// An event tells what has become.
    Announce(Leadership),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Standby,
    Leader {
        /// When the last renewal that worked was sent: nobody has seen it earlier than that.
        renewed_at: Instant,
        /// When it gives up if no renewal works.
        gives_up_at: Instant,
    },
    Releasing {
        gives_up_at: Instant,
    },
    /// It does not take part any more.
    Stopped,
}

/// A term of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// The one that the Lease has.
    Kept,
    /// One that begins, after so many.
    New { transitions: i32 },
}

impl Step {
    /// How it is sent.
    pub const fn method(self) -> (Method, ContentType) {
        match self {
            Self::Get => (Method::Get, ContentType::Json),
            Self::Create | Self::Announce(_) => (Method::Post, ContentType::Json),
            Self::Renew | Self::Update | Self::Release => (Method::Patch, ContentType::MergePatch),
        }
    }
}

impl Elector {
    /// One who has not looked at the Lease yet.
    #[inline(never)]
    pub const fn new(settings: LeaderElection<'static>) -> Self {
        Self {
            settings,
            role: Role::Standby,
            observed: Record::EMPTY,
            observed_at: Instant::ZERO,
            version: ResourceVersion::ANY,
            uid: Uid::NIL,
            reader: LeaseReader::new(),
            step: None,
            is_under_way: false,
            sent_at: Instant::ZERO,
            written_at: Timestamp::EPOCH,
            tried_at: Instant::ZERO,
            next_at: Instant::ZERO,
            term: Term::Kept,
            news: None,
            announcements: [None; 2],
            slow_paths: 0,
        }
    }

    /// What is to be sent now, if anything. It is under way then, until it is [answered](Self::answered).
    ///
    /// `wall` is the server's time, without which nothing can be written. A Lease is not given back while
    /// `others_write`: whoever takes over must not meet what was sent before.
    pub fn poll(
        &mut self,
        now: Instant,
        wall: Option<Timestamp>,
        random: u32,
        others_write: bool,
    ) -> Option<Step> {
        self.check_time(now);
        if self.is_under_way {
            return None;
        }
        if self.is_releasing() && others_write {
            return None;
        }
        if self.step.is_none() && self.next_at <= now && self.role != Role::Stopped {
            self.tried_at = now;
            self.step = Some(self.first_step(now));
        }
        let step = self.step.or_else(|| self.announcement())?;
        match (step, wall) {
            (Step::Get, _) => {}
            (_, Some(wall)) => self.written_at = wall,
            // The answer to a GET tells the time; a server that does not cannot be written to.
            (_, None) => {
                self.tried(now, random);
                return None;
            }
        }
        self.step = Some(step);
        self.sent_at = now;
        self.is_under_way = true;
        self.reader.reset();
        Some(step)
    }

    /// The request that is under way.
    pub fn under_way(&self) -> Option<Step> {
        self.step.filter(|_| self.is_under_way)
    }

    /// When the request that is under way has to be given up.
    pub fn expires_at(&self) -> Instant {
        let timeout = match self.step {
            // A renewal may be due meanwhile.
            Some(Step::Announce(_)) => self.settings.retry_period,
            _ => self.settings.request_timeout(),
        };
        let at = self.sent_at + timeout;
        match self.role {
            Role::Leader { gives_up_at, .. } | Role::Releasing { gives_up_at } => {
                at.min(gives_up_at)
            }
            Role::Standby | Role::Stopped => at,
        }
    }

    /// Takes bytes of the answer's body.
    pub fn body(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes);
    }

    /// The server has answered with this status, or not at all. `random` is a fresh uniform number.
    pub fn answered(&mut self, end: Result<u16, Failure>, now: Instant, random: u32) {
        let Some(step) = self.step.take().filter(|_| self.is_under_way) else { return };
        self.is_under_way = false;
        let is_good = end.is_ok_and(|status| (200..300).contains(&status));
        self.check_time(now);
        if let Step::Announce(_) = step {
            let [_, next] = self.announcements;
            self.announcements = [next, None];
            return;
        }
        if let Role::Releasing { .. } = self.role {
            return self.released(step, end, is_good);
        }
        match step {
            Step::Renew | Step::Create | Step::Update if is_good && self.take_answer() => {
                self.written(now);
            }
            Step::Renew => {
                self.slow_paths = self.slow_paths.wrapping_add(1);
                self.step = Some(Step::Get);
            }
            Step::Get if is_good => self.seen(now, random),
            Step::Get if end == Ok(404) => {
                self.notice_loss();
                self.term = Term::New { transitions: 0 };
                self.step = Some(Step::Create);
            }
            _ => self.tried(now, random),
        }
    }

    /// An orderly end is near: gives the Lease back if it is this one's.
    pub fn release(&mut self, now: Instant) {
        let gives_up_at = now + self.settings.renew_deadline;
        match self.role {
            Role::Leader { .. } => {
                self.stop_leading();
                self.role = Role::Releasing { gives_up_at };
                if !self.is_under_way {
                    self.step = Some(Step::Get);
                }
            }
            // What is under way may make it the leader.
            Role::Standby if self.is_under_way => self.role = Role::Releasing { gives_up_at },
            Role::Standby => self.role = Role::Stopped,
            Role::Releasing { .. } | Role::Stopped => {}
        }
    }

    /// Whether it has given the Lease back, or will not any more.
    pub fn has_ended(&self) -> bool {
        let has_told = self.announcements.iter().all(Option::is_none) && !self.is_under_way;
        self.role == Role::Stopped && has_told
    }

    /// Whether this one leads.
    pub fn leads(&self) -> bool {
        matches!(self.role, Role::Leader { .. })
    }

    /// Whether it is giving the Lease back.
    pub fn is_releasing(&self) -> bool {
        matches!(self.role, Role::Releasing { .. })
    }

    /// Until when this one may write, if nothing is renewed before; the past if it does not lead.
    ///
    /// The lease runs from the moment at which the renewal was sent: others cannot have seen it earlier,
    /// and may take over a lease duration after they have. The renew deadline is shorter, so that clocks
    /// may differ in speed by as much.
    pub fn may_write_until(&self) -> Instant {
        match self.role {
            Role::Leader { .. } if planted(Bug::LeaseNeverEnds) => Instant::from_micros(u64::MAX),
            Role::Leader { gives_up_at, .. } if planted(Bug::WritesUntilGivenUp) => gives_up_at,
            Role::Leader { renewed_at, .. } => renewed_at + self.settings.renew_deadline,
            _ => Instant::ZERO,
        }
    }

    /// When a write that is sent now has to be given up.
    pub fn write_expires_at(&self, now: Instant) -> Instant {
        (now + self.settings.request_timeout()).min(self.may_write_until())
    }

    /// What has become of this one's leadership since the last call.
    pub fn take_news(&mut self) -> Option<Leadership> {
        self.news.take()
    }

    /// When [`poll`](Self::poll) has something to do, if nothing comes in before.
    pub fn poll_at(&self) -> Option<Instant> {
        let gives_up_at = match self.role {
            Role::Leader { gives_up_at, .. } | Role::Releasing { gives_up_at } => gives_up_at,
            Role::Standby => Instant::from_micros(u64::MAX),
            Role::Stopped => return self.announcement().map(|_| Instant::ZERO),
        };
        if self.is_under_way {
            return Some(gives_up_at);
        }
        let waits = self.step.is_some() || self.announcement().is_some();
        let next_at = if waits { Instant::ZERO } else { self.next_at };
        Some(next_at.min(gives_up_at))
    }

    /// Who holds the Lease, as far as is known; empty if nobody does.
    pub fn holder(&self) -> &str {
        self.observed.holder()
    }

    /// Who takes part, and how.
    pub fn settings(&self) -> &LeaderElection<'static> {
        &self.settings
    }

    /// Renewals that took more than one request.
    pub fn slow_paths(&self) -> u32 {
        self.slow_paths
    }

    /// What client-go's health adaptor says: only a leader can be ill, when its lease ended long ago.
    pub fn is_healthy(&self, now: Instant) -> bool {
        let since = now.since(self.observed_at);
        !self.leads() || since <= self.settings.lease_duration + HEALTH_GRACE
    }

    fn announcement(&self) -> Option<Step> {
        let [first, _] = self.announcements;
        first.map(Step::Announce)
    }

    fn holds(&self) -> bool {
        self.observed.is_held_by(self.settings.identity)
    }

    /// Whether the Lease as it was seen last is not over, by the duration that it says itself.
    fn is_valid(&self, now: Instant) -> bool {
        let seconds = u64::try_from(self.observed.duration_seconds).unwrap_or_default();
        self.observed_at + Duration::from_secs(seconds) > now
    }

    fn first_step(&mut self, now: Instant) -> Step {
        self.term = Term::Kept;
        let knows_version = self.version != ResourceVersion::ANY;
        match self.holds() && self.is_valid(now) && knows_version {
            true => Step::Renew,
            false => Step::Get,
        }
    }

    /// Gives up what has taken too long.
    fn check_time(&mut self, now: Instant) {
        match self.role {
            Role::Leader { gives_up_at, .. }
                if gives_up_at <= now && !planted(Bug::LeaseNeverEnds) =>
            {
                self.stop_leading();
            }
            Role::Releasing { gives_up_at } if gives_up_at <= now => {
                self.role = Role::Stopped;
                if !self.is_under_way {
                    self.step = None;
                }
            }
            _ => {}
        }
    }

    /// The Lease was read.
    fn seen(&mut self, now: Instant, random: u32) {
        let before = core::mem::replace(&mut self.observed, Record::EMPTY);
        if !self.take_answer() {
            self.observed = before;
            return self.tried(now, random);
        }
        if let Some(seen) = self.reader.lease() {
            self.observed.clone_from(&seen.record);
        }
        if !self.observed.looks_like(&before) {
            self.observed_at = now;
        }
        if !self.observed.is_same_term(&before) || !self.holds() {
            self.notice_loss();
        }
        if self.holds() {
            self.term = Term::Kept;
        } else if !self.observed.is_free() && self.is_valid(now) && !planted(Bug::LeaseTakenEarly) {
            return self.tried(now, random);
        } else {
            let transitions = self.observed.transitions.saturating_add(1);
            self.term = Term::New { transitions };
        }
        self.step = Some(Step::Update);
    }

    /// Takes over the version of the Lease that an answer holds; whether there is one.
    fn take_answer(&mut self) -> bool {
        let Some(lease) = self.reader.lease() else { return false };
        (self.version, self.uid) = (lease.version, lease.uid);
        true
    }

    /// The Lease was written: it is this one's from the moment at which that was sent.
    fn written(&mut self, now: Instant) {
        let written_at = Some(self.written_at);
        self.observed.set_holder(self.settings.identity);
        self.observed.duration_seconds = self.settings.duration_seconds();
        self.observed.renewed = written_at;
        if let Term::New { transitions } = core::mem::replace(&mut self.term, Term::Kept) {
            self.observed.transitions = transitions;
            self.observed.acquired = written_at;
        }
        self.observed_at = now;
        let pause = match self.role {
            Role::Leader { .. } => self.settings.retry_period,
            // As upstream: who has just become the leader renews at once.
            _ => Duration::ZERO,
        };
        if !self.leads() {
            self.tell(Leadership::Gained);
        }
        let renewed_at = self.sent_at;
        self.next_at = now + pause;
        let gives_up_at = self.next_at + self.settings.renew_deadline;
        self.role = Role::Leader { renewed_at, gives_up_at };
    }

    /// A try has failed.
    fn tried(&mut self, now: Instant, random: u32) {
        self.step = None;
        self.next_at = match self.role {
            Role::Leader { .. } => now.max(self.tried_at + self.settings.retry_period),
            _ => now + self.settings.jittered_retry(random),
        };
    }

    /// The Lease is not this one's, or was somebody else's meanwhile: no deadline is waited for.
    fn notice_loss(&mut self) {
        if self.leads() && !planted(Bug::LossUnnoticed) {
            self.stop_leading();
        }
    }

    fn stop_leading(&mut self) {
        self.role = Role::Standby;
        self.tell(Leadership::Lost);
    }

    fn tell(&mut self, news: Leadership) {
        self.news = Some(news);
        if let Some(place) = self.announcements.iter_mut().find(|place| place.is_none()) {
            *place = Some(news);
        }
    }

    /// A request was answered that has to do with giving the Lease back.
    fn released(&mut self, step: Step, end: Result<u16, Failure>, is_good: bool) {
        self.step = match step {
            Step::Get if is_good && self.take_answer() => {
                let Self { reader, settings, observed, .. } = self;
                if let Some(seen) = reader.lease() {
                    observed.clone_from(&seen.record);
                }
                observed.is_held_by(settings.identity).then_some(Step::Release)
            }
            Step::Release if end == Ok(409) => Some(Step::Get),
            Step::Get | Step::Release | Step::Announce(_) => None,
            // Whatever was under way when the end came.
            Step::Renew | Step::Create | Step::Update => Some(Step::Get),
        };
        if self.step.is_none() {
            self.role = Role::Stopped;
        }
    }
}
