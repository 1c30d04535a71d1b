//! Taking in the answers to requests.

use crate::control::{Peers, World, Write};
use crate::limits;
use crate::request::{Failure, Ticket};
use crate::time::{Duration, Instant};

use super::client::{Client, ClientRequest};
use super::informers::Informers;
use super::workspace::{Lane, Lanes};
use super::{Manager, dispatch::EVENT_LANE};

/// How often a request is repeated because the server says `Retry-After`.
const MOST_RETRIES: u8 = 10;

impl Manager<'_> {
    /// The head of a response has come.
    pub fn response_head(
        &mut self,
        ticket: Ticket,
        _now: Instant,
        status: u16,
        retry_after: Option<u32>,
    ) {
        if ticket.lane == EVENT_LANE && self.event.serial == Some(ticket.serial) {
            self.event.status = status;
        } else if self.lane(ticket).is_some()
            && let Some(lane) = self.lane_mut(ticket.lane)
        {
            lane.status = status;
            lane.retry_after = retry_after;
        }
    }

    /// Bytes of the body of a response, cut anywhere.
    pub fn response_body(&mut self, ticket: Ticket, bytes: &[u8]) {
        if ticket.lane == EVENT_LANE || self.lane(ticket).is_none_or(|lane| lane.is_unreadable) {
            return;
        }
        let Lanes { lanes, answers } = &mut self.lanes;
        let Some(lane) = lanes.get_mut(usize::from(ticket.lane)) else { return };
        let reader = answers.get_mut(usize::from(lane.reader));
        lane.is_unreadable |= !reader.is_some_and(|reader| reader.feed(&self.cache, bytes));
    }

    /// The request has ended: with a complete response, or with a failure. The ticket is void.
    pub fn response_end(&mut self, ticket: Ticket, now: Instant, end: Result<(), Failure>) {
        if ticket.lane == EVENT_LANE {
            return self.event_ended(ticket, now, end);
        }
        let Some(&lane) = self.lane(ticket) else { return };
        let Some(write) = lane.write else { return };
        if end.is_err() {
            self.metrics.failures = self.metrics.failures.wrapping_add(1);
        }
        let end = end.and(if lane.status == 0 { Err(Failure::Ambiguous) } else { Ok(()) });
        if end.is_ok() && self.waits_to_resend(ticket, &lane, now) {
            return;
        }
        self.count_answer(&lane, end);
        self.conclude(&write, &lane, now, end);
        self.release(ticket);
    }

    fn event_ended(&mut self, ticket: Ticket, now: Instant, end: Result<(), Failure>) {
        if self.event.serial != Some(ticket.serial) {
            return;
        }
        let ClientRequest { status, .. } = core::mem::replace(&mut self.event, ClientRequest::NONE);
        let Self { recorder, cache, random, .. } = self;
        Client::answered(*recorder, cache.texts, end.map(|()| status), now, *random);
    }

    /// 429 and errors of the server that come with `Retry-After` are not for the controllers to
    /// know, at least not soon.
    fn waits_to_resend(&mut self, ticket: Ticket, lane: &Lane, now: Instant) -> bool {
        let may_pass = lane.status == 429 || lane.status >= 500;
        let Some(seconds) = lane.retry_after.filter(|_| may_pass) else { return false };
        if lane.retries >= MOST_RETRIES {
            return false;
        }
        self.metrics.retries_after = self.metrics.retries_after.wrapping_add(1);
        if let Some(lane) = self.lane_mut(ticket.lane) {
            lane.retries += 1;
            lane.resend_at =
                Some(now + Duration::from_secs(u64::from(seconds.min(limits::RETRY_AFTER))));
        }
        true
    }

    fn count_answer(&mut self, lane: &Lane, end: Result<(), Failure>) {
        let counter = match lane.status {
            _ if end.is_err() => return,
            409 => &mut self.metrics.conflicts,
            404 | 0..=399 => return,
            _ => &mut self.metrics.refusals,
        };
        *counter = counter.wrapping_add(1);
    }

    /// Applies the object that came back, then tells the controller.
    fn conclude(&mut self, write: &Write, lane: &Lane, now: Instant, end: Result<(), Failure>) {
        let Some(wall) = self.wall.at(now) else { return };
        let watch = self.watches.get(write.kind as usize);
        let seen = watch.and_then(|watch| watch.version()).unwrap_or_default();
        let Self { cache, controllers, ranking, lanes, recorder, settings, metrics, .. } = self;
        let Some(reader) = lanes.answers.get_mut(usize::from(lane.reader)) else { return };
        let wall_now = Some(wall);
        let informers = &mut Informers { controllers, recorder, metrics, now, wall: wall_now };
        let reply = reader.read(lane, end, cache, informers, seen);
        let mut all = controllers.all_mut();
        let number = usize::from(lane.controller);
        let Some((before, rest)) = all.split_at_mut_checked(number) else { return };
        let Some((controller, after)) = rest.split_first_mut() else { return };
        let mut world = World {
            cache,
            recorder,
            ranking,
            peers: Peers { before, after },
            has_room: &|_| false,
            terminating_replicas: settings.terminating_replicas,
            status_lag: settings.status_lag,
            now,
            wall,
        };
        controller.answered(&mut world, write, &reply);
    }
}
