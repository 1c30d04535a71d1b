//! Who leads writes: the gate before all requests of controllers, and the elector behind it.
//!
//! Who does not lead keeps its caches and queues as warm as a leader's. What it has missed all the same is
//! what the last leader did just before it went, which no watch may have told yet: so who becomes the
//! leader lists everything anew, and acts when that is done.

use crate::kind::Kind;
use crate::leader_election::{Elector, LeaderElection, Leadership, Step};
use crate::limits::Target;
use crate::planted::{Bug, planted};
use crate::request::{Body, Failure, Request, Ticket};
use crate::time::{Instant, Timestamp};
use crate::zero::ZeroOption;

use super::Manager;
use super::client::ClientRequest;
use super::dispatch::{ELECTION_LANE, EVENT_LANE};
use super::workspace::Lane;

/// Puts an elector where it is to be. Neither this nor what it calls is inlined: an elector is large, a stack
/// may be small, and on the way there must not be two of them in one frame.
#[inline(never)]
pub(super) fn stand_for_election(
    place: &mut ZeroOption<Elector>,
    settings: LeaderElection<'static>,
) {
    *place = new_elector(settings);
}

#[inline(never)]
fn new_elector(settings: LeaderElection<'static>) -> ZeroOption<Elector> {
    ZeroOption::Some(Elector::new(settings))
}

impl Manager<'_> {
    /// Whether this manager leads; without an election, every one does.
    pub fn leads(&self) -> bool {
        self.elector.as_ref().is_none_or(Elector::leads) || planted(Bug::StandbyWrites)
    }

    /// Whether what this manager has sent may still reach the server: it leads, or gives the Lease back,
    /// which waits for what is under way. Otherwise what is on its way has to be held back, as far as that
    /// is possible.
    pub fn may_be_heard(&self) -> bool {
        self.leads() || self.elector.as_ref().is_some_and(|it| it.is_releasing() || it.has_ended())
    }

    /// The elector, if there is an election.
    pub fn elector(&self) -> Option<&Elector> {
        self.elector.as_ref()
    }

    /// Whether this is what client-go's health adaptor calls healthy: no leader whose lease ended long ago.
    pub fn is_leader_healthy(&self, now: Instant) -> bool {
        self.elector.as_ref().is_none_or(|elector| elector.is_healthy(now))
    }

    /// An orderly end is near: from now on nothing is written but what gives the Lease back, so that
    /// somebody else leads before long. [`has_released`](Self::has_released) tells when that is done.
    pub fn release_leadership(&mut self, now: Instant) {
        if let Some(elector) = self.elector.as_mut() {
            elector.release(now);
            self.heed_news(now);
        }
    }

    /// Whether this manager takes part in no election, or not any more.
    pub fn has_released(&self) -> bool {
        self.elector.as_ref().is_none_or(Elector::has_ended)
    }

    /// When a request has to be given up, and its connection closed, if it is not over by then: the lease
    /// ends, under which it was sent. That may be in the past all of a sudden, because somebody else is
    /// seen to lead. `None` is never.
    pub fn expires_at(&self, ticket: Ticket) -> Option<Instant> {
        let elector = self.elector.as_ref()?;
        match ticket.lane {
            ELECTION_LANE => {
                (self.election.serial == Some(ticket.serial)).then(|| elector.expires_at())
            }
            _ if planted(Bug::WriteOutlivesLease) => None,
            EVENT_LANE if self.event.serial == Some(ticket.serial) => self.event.expires_at,
            EVENT_LANE => None,
            // One that is not waited for any more is over.
            _ => self.lane(ticket).map_or(Some(Instant::ZERO), |lane| lane.expires_at),
        }
    }

    /// Whether a request of a controller may be sent now.
    pub(super) fn may_write(&self, now: Instant) -> bool {
        let elector = self.elector.as_ref();
        elector.is_none_or(|it| it.may_write_until() > now) || planted(Bug::StandbyWrites)
    }

    /// When a request of a controller that is sent now has to be given up.
    pub(super) fn write_expires_at(&self, now: Instant) -> Option<Instant> {
        self.elector.as_ref().map(|elector| elector.write_expires_at(now))
    }

    /// The next request of the election.
    pub(super) fn next_of_election(
        &mut self,
        now: Instant,
        wall: Option<Timestamp>,
        place: &mut Option<Request>,
    ) -> bool {
        let others_write = self.lanes.is_anything_under_way() || self.event.serial.is_some();
        let random = self.random.draw();
        let Some(elector) = self.elector.as_mut() else { return false };
        let step = elector.poll(now, wall, random, others_write);
        self.heed_news(now);
        let (Some(step), Some(elector)) = (step, self.elector.as_ref()) else { return false };
        self.serial = self.serial.wrapping_add(1);
        let ticket = Ticket { lane: ELECTION_LANE, serial: self.serial };
        self.election = ClientRequest { serial: Some(self.serial), ..ClientRequest::NONE };
        let (method, content_type) = step.method();
        let body = if step == Step::Get { Body::Empty } else { Body::Document };
        let request =
            place.insert(Request { ticket, method, target: Target::new(), content_type, body });
        // It fits: namespace and name are within Kubernetes' limits.
        if elector.write_target(&mut request.target).is_err() {
            *place = None;
            self.election_ended(ticket, now, Err(Failure::NotSent));
        }
        place.is_some()
    }

    /// Bytes of the body of an answer to the election.
    pub(super) fn election_body(&mut self, ticket: Ticket, bytes: &[u8]) {
        if let Some(elector) = self.elector.as_mut()
            && self.election.serial == Some(ticket.serial)
        {
            elector.body(bytes);
        }
    }

    /// A request of the election has ended.
    pub(super) fn election_ended(
        &mut self,
        ticket: Ticket,
        now: Instant,
        end: Result<(), Failure>,
    ) {
        if self.election.serial != Some(ticket.serial) {
            return;
        }
        let ClientRequest { status, .. } =
            core::mem::replace(&mut self.election, ClientRequest::NONE);
        let random = self.random.draw();
        if let Some(elector) = self.elector.as_mut() {
            elector.answered(end.map(|()| status), now, random);
            self.heed_news(now);
        }
    }

    fn heed_news(&mut self, now: Instant) {
        match self.elector.as_mut().and_then(Elector::take_news) {
            Some(Leadership::Gained) => self.look_anew(now),
            Some(Leadership::Lost) => self.give_up_writes(now),
            None => {}
        }
    }

    /// Everything is read and looked at once more, before any controller acts.
    fn look_anew(&mut self, now: Instant) {
        for kind in Kind::ALL.iter().copied() {
            if let Some(watch) = self.watch_mut(kind) {
                watch.look_anew(now);
            }
            self.resync(kind);
        }
    }

    /// No answer is waited for, no request sent again, and no sync goes on: what they know will be old when
    /// this one leads again.
    fn give_up_writes(&mut self, now: Instant) {
        self.event.expires_at = Some(Instant::ZERO);
        let Some(wall) = self.wall.at(now) else { return };
        for index in 0..self.lanes.lanes.len() {
            let Some(&Lane { write, controller, resend_at, serial, .. }) =
                self.lanes.lanes.get(index)
            else {
                return;
            };
            let Some(write) = write else { continue };
            let waits = resend_at.is_some();
            let failure = if waits { Failure::NotSent } else { Failure::Ambiguous };
            self.failed(controller.into(), &write, failure, now, wall);
            self.release(Ticket { lane: index as u8, serial });
        }
        let Self { cache, controllers, .. } = self;
        controllers.all_mut().into_iter().for_each(|controller| controller.abandon(cache));
    }
}
