//! Handing out requests: keys to workers, workers to lanes.

use core::fmt;

use crate::control::{BodySource, Controller, Peers, Reply, Verdict, World, Write};
use crate::kind::Kind;
use crate::leader_election::Elector;
use crate::limits::Target;
use crate::registry::ControllerName;
use crate::request::{Body, Failure, Request, Ticket};
use crate::time::{Duration, Instant, Timestamp};

use super::Manager;
use super::client::{Client, ClientRequest};
use super::workspace::Lane;

/// The lane of events, in tickets.
pub(super) const EVENT_LANE: u8 = u8::MAX;
/// That of the election.
pub(super) const ELECTION_LANE: u8 = EVENT_LANE - 1;
/// Of so many requests, one is an event if one waits.
const EVENT_TURN: u8 = 3;
/// How many writes of a controller that cannot be composed are answered at a time.
const THOUGHTS: usize = 8;

impl Manager<'_> {
    /// The next request to send now, if any. To be called until it returns `None`, or while the
    /// driver has a connection to spare.
    pub fn poll(&mut self, now: Instant) -> Option<Request> {
        let mut place = None;
        self.poll_into(now, &mut place);
        place
    }

    /// As [`poll`](Self::poll), into a place of the caller's: a request is large, and a stack
    /// that it is handed up through may be small.
    pub fn poll_into(&mut self, now: Instant, place: &mut Option<Request>) {
        self.polled_at = now;
        self.blocked_until = None;
        *place = None;
        let wall = self.wall.at(now);
        // A lease does not wait.
        if !self.next_of_election(now, wall, place)
            && let Some(wall) = wall
            && self.anybody_acts()
            && self.may_write(now)
        {
            self.next_write_of_any(now, wall, place);
        }
        if let Some(request) = place {
            self.metrics.count_request(request.method);
        }
    }

    fn next_write_of_any(&mut self, now: Instant, wall: Timestamp, place: &mut Option<Request>) {
        self.turn = (self.turn + 1) % EVENT_TURN;
        let event_first = self.turn == 0;
        let _found = self.resend(now, wall, place)
            || (event_first && self.next_event(now, place))
            || ControllerName::ALL.iter().any(|it| self.next_of(*it, now, wall, place))
            || self.next_event(now, place);
    }

    /// When [`poll`](Self::poll) or [`poll_watch`](Self::poll_watch) has something to do, if
    /// nothing comes in before.
    pub fn poll_at(&self) -> Option<Instant> {
        let kinds = Kind::ALL.iter();
        let mut next = kinds.filter_map(|kind| self.poll_watch_at(*kind)).min();
        // What was due when `poll` last looked waits for something else than time.
        let mut consider = |at: Option<Instant>| {
            next = next.into_iter().chain(at.filter(|at| *at > self.polled_at)).min();
        };
        consider(self.elector.as_ref().and_then(Elector::poll_at));
        if !self.anybody_acts() {
            return next;
        }
        for controller in self.controllers.all() {
            consider(controller.keys().queue.poll_at());
            consider(controller.wakes_at());
        }
        consider(Client::poll_at(self.recorder));
        consider(self.blocked_until);
        self.lanes.lanes.iter().for_each(|lane| consider(lane.resend_at));
        next
    }

    /// Whether keys wait to be processed or requests to be answered: then
    /// [`response_end`](Self::response_end) or [`poll`](Self::poll) should be called before long,
    /// whatever [`poll_at`](Self::poll_at) says, which speaks of timers only.
    pub fn has_work(&self) -> bool {
        let mut controllers = ControllerName::ALL.iter().zip(self.controllers.all());
        controllers.any(|(name, it)| self.acts(*name) && it.keys().queue.depth() > 0)
            || self.lanes.lanes.iter().any(|lane| lane.write.is_some())
    }

    /// Writes a [`Body::Document`]. An error is that of `out`, or the object is gone: then the
    /// request cannot be sent any more ([`Failure::NotSent`]).
    pub fn write_body(&self, ticket: Ticket, out: &mut dyn fmt::Write) -> fmt::Result {
        if let (ELECTION_LANE, Some(elector)) = (ticket.lane, self.elector.as_ref()) {
            let is_current = self.election.serial == Some(ticket.serial);
            return if is_current { elector.write_body(out) } else { Err(fmt::Error) };
        }
        if ticket.lane == EVENT_LANE {
            let is_current = self.event.serial == Some(ticket.serial);
            let texts = &*self.cache.texts;
            let mut write = || Client::write_body(self.recorder, texts, out);
            return if is_current { write() } else { Err(fmt::Error) };
        }
        let lane = self.lane(ticket).ok_or(fmt::Error)?;
        let write = lane.write.as_ref().ok_or(fmt::Error)?;
        let controllers = self.controllers.all();
        let controller = controllers.get(usize::from(lane.controller)).ok_or(fmt::Error)?;
        controller.write_body(&self.cache, write, out)
    }

    /// The next request of a controller.
    fn next_of(
        &mut self,
        name: ControllerName,
        now: Instant,
        wall: Timestamp,
        place: &mut Option<Request>,
    ) -> bool {
        let number = name as usize;
        // Who had to think again may want to send something else at once, and nothing would wake them up.
        for _ in 0..THOUGHTS {
            let Some(write) = self.next_write(name, now, wall) else { return false };
            let write = Write { at: wall, ..write };
            if self.begin(number as u8, write, now, place) {
                return true;
            }
            self.not_sent(number, &write, now, wall);
        }
        // The rest has time, but not for ever.
        self.blocked_until = Some(now + Duration::from_millis(1));
        false
    }

    /// What a write is about cannot be named or read: the controller has to think again.
    fn not_sent(&mut self, controller: usize, write: &Write, now: Instant, wall: Timestamp) {
        self.failed(controller, write, Failure::NotSent, now, wall);
    }

    /// A write will not be answered.
    pub(super) fn failed(
        &mut self,
        controller: usize,
        write: &Write,
        failure: Failure,
        now: Instant,
        wall: Timestamp,
    ) {
        let verdict = Verdict::Failed(failure);
        let reply = Reply { verdict, message: failure.text(), meta: None };
        self.with_controller(controller, now, wall, |controller, world| {
            controller.answered(world, write, &reply);
        });
    }

    fn next_write(&mut self, name: ControllerName, now: Instant, wall: Timestamp) -> Option<Write> {
        let number = name as usize;
        let rate = self.settings.rate;
        let controllers = self.controllers.all();
        let controller = controllers.get(number)?;
        let queue = &controller.keys().queue;
        let is_idle = queue.poll_at().is_none_or(|at| at > now)
            && queue.depth() == 0
            && !controller.is_working();
        let ready_at = controller.keys().bucket.ready_at(rate);
        if is_idle || !self.acts(name) || !self.may_send(ready_at, now) {
            return None;
        }
        self.with_controller(number, now, wall, |controller, world| {
            controller.keys_mut().queue.poll(now);
            let write = (0..controller.workers()).find_map(|at| controller.next(world, at))?;
            controller.keys_mut().bucket.take(rate, now);
            Some(write)
        })?
    }

    fn anybody_acts(&self) -> bool {
        ControllerName::ALL.iter().any(|controller| self.acts(*controller))
    }

    /// Whether a bucket has a token. If not, someone waits for it.
    fn may_send(&mut self, ready_at: Instant, now: Instant) -> bool {
        if ready_at > now {
            self.blocked_until = self.blocked_until.into_iter().chain([ready_at]).min();
        }
        ready_at <= now
    }

    /// Puts a write into a free lane and composes its request.
    fn begin(
        &mut self,
        controller: u8,
        write: Write,
        now: Instant,
        place: &mut Option<Request>,
    ) -> bool {
        let expires_at = self.write_expires_at(now);
        let Some(index) = self.lanes.free() else { return false };
        self.serial = self.serial.wrapping_add(1);
        let ticket = Ticket { lane: index as u8, serial: self.serial };
        write.name.retain(self.cache.texts);
        self.cache.texts.retain(write.namespace);
        let Some(lane) = self.lanes.lanes.get_mut(index) else { return false };
        let serial = ticket.serial;
        *lane = Lane { write: Some(write), controller, serial, expires_at, ..Lane::FREE };
        self.compose(ticket, controller, &write, place);
        if place.is_none() {
            self.release(ticket);
        }
        place.is_some()
    }

    /// Composes the request of a write in its place, which stays empty if what it is about is gone.
    fn compose(&self, ticket: Ticket, controller: u8, write: &Write, place: &mut Option<Request>) {
        let Write { method, content_type, body, .. } = *write;
        let (target, empty) = (Target::new(), Body::Empty);
        let request = place.insert(Request { ticket, method, target, content_type, body: empty });
        let is_named = write.write_target(self.cache.texts, &mut request.target).is_ok();
        let is_made = match body {
            BodySource::None => true,
            BodySource::Document => {
                request.body = Body::Document;
                true
            }
            BodySource::Splice => {
                let controllers = self.controllers.all();
                let controller = controllers.get(usize::from(controller));
                match controller.and_then(|it| it.splice(&self.cache, write)) {
                    Some(splice) => {
                        request.body = Body::Splice(splice);
                        true
                    }
                    None => false,
                }
            }
        };
        if !is_named || !is_made {
            *place = None;
        }
    }

    /// A request that the server wants to see again later.
    fn resend(&mut self, now: Instant, wall: Timestamp, place: &mut Option<Request>) -> bool {
        let is_due = |lane: &Lane| lane.resend_at.is_some_and(|at| at <= now);
        let Some(index) = self.lanes.lanes.iter().position(is_due) else { return false };
        if !self.lanes.may_send() {
            return false;
        }
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let expires_at = self.write_expires_at(now);
        let Some(lane) = self.lanes.lanes.get_mut(index) else { return false };
        let Lane { write, controller, retries, .. } = *lane;
        *lane = Lane { serial, write, controller, retries, expires_at, ..Lane::FREE };
        if let Some(write) = write {
            let ticket = Ticket { lane: index as u8, serial };
            self.compose(ticket, controller, &write, place);
            if place.is_none() {
                self.not_sent(usize::from(controller), &write, now, wall);
                self.release(ticket);
            }
        }
        place.is_some()
    }

    fn next_event(&mut self, now: Instant, place: &mut Option<Request>) -> bool {
        if self.event.serial.is_some() {
            return false;
        }
        let polled = Client::poll(self.recorder, self.cache.texts, now);
        let Some((method, content_type)) = polled else { return false };
        let component = Client::component(self.recorder);
        let rate = self.settings.rate;
        let is_source = |name: &ControllerName| Some(name.info().component) == component;
        let source = ControllerName::ALL.iter().position(is_source).unwrap_or(0);
        let ready_at = self.controllers.all().get(source).map(|it| it.keys().bucket.ready_at(rate));
        if !self.may_send(ready_at.unwrap_or(now), now) {
            return false;
        }
        let serial = self.serial.wrapping_add(1);
        let ticket = Ticket { lane: EVENT_LANE, serial };
        let (target, body) = (Target::new(), Body::Document);
        let request = place.insert(Request { ticket, method, target, content_type, body });
        let texts = &*self.cache.texts;
        if Client::write_target(self.recorder, texts, &mut request.target).is_err() {
            *place = None;
            return false;
        }
        self.serial = serial;
        let expires_at = self.write_expires_at(now);
        self.event = ClientRequest { serial: Some(serial), expires_at, ..ClientRequest::NONE };
        if let Some(controller) = self.controllers.all_mut().get_mut(source) {
            controller.keys_mut().bucket.take(rate, now);
        }
        true
    }

    /// The lane of a ticket that is still good.
    pub(super) fn lane(&self, ticket: Ticket) -> Option<&Lane> {
        let lane = self.lanes.lanes.get(usize::from(ticket.lane))?;
        let is_good =
            lane.serial == ticket.serial && lane.write.is_some() && lane.resend_at.is_none();
        is_good.then_some(lane)
    }

    pub(super) fn lane_mut(&mut self, index: u8) -> Option<&mut Lane> {
        self.lanes.lanes.get_mut(usize::from(index))
    }

    /// Frees the lane of a request that has ended.
    pub(super) fn release(&mut self, ticket: Ticket) {
        let write = self.lane_mut(ticket.lane).and_then(|lane| lane.write.take());
        if let Some(write) = write {
            write.name.release(self.cache.texts);
            self.cache.texts.release(write.namespace);
        }
    }
}

impl<'a> Manager<'a> {
    /// Hands on a controller, and what its syncs work with.
    pub(super) fn with_controller<R>(
        &mut self,
        number: usize,
        now: Instant,
        wall: Timestamp,
        then: impl FnOnce(&mut (dyn Controller<'a> + 'a), &mut World<'_, 'a>) -> R,
    ) -> Option<R> {
        let Self { cache, controllers, pods_in_order, lanes, recorder, settings, .. } = self;
        let mut all = controllers.all_mut();
        let (before, rest) = all.split_at_mut_checked(number)?;
        let (controller, after) = rest.split_first_mut()?;
        let mut world = World {
            cache,
            recorder,
            pods: pods_in_order,
            peers: Peers { before, after },
            has_room: &|write| lanes.has_room(write),
            terminating_replicas: settings.terminating_replicas,
            #[cfg(feature = "statefulset")]
            max_unavailable_stateful_set: settings.max_unavailable_stateful_set,
            status_lag: settings.status_lag,
            now,
            wall,
        };
        Some(then(*controller, &mut world))
    }
}
