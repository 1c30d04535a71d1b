//! Taking in the answers to requests.

use crate::control::{Peers, World, Write};
use crate::limits;
use crate::request::{Failure, ResponseHead, Ticket};
use crate::time::{Duration, Instant};

use super::Manager;
use super::client::{Client, ClientRequest};
use super::decoders::ResponseBody;
use super::dispatch::{ELECTION_LANE, EVENT_LANE};
use super::informers::Informers;
use super::workspace::Lane;

/// How often a request is repeated because the server says `Retry-After`.
const MOST_RETRIES: u8 = 10;
/// What a server answers that does not know who asks.
const UNAUTHORIZED: u16 = 401;

impl Manager<'_> {
    /// The head of a response has come.
    pub fn response_head(&mut self, ticket: Ticket, now: Instant, head: ResponseHead) {
        self.note_date(now, &head);
        let ResponseHead { status, retry_after, .. } = head;
        if status == UNAUTHORIZED {
            self.note_unknown();
        }
        if ticket.lane == EVENT_LANE && self.event.serial == Some(ticket.serial) {
            self.event.status = status;
        } else if ticket.lane == ELECTION_LANE && self.election.serial == Some(ticket.serial) {
            self.election.status = status;
        } else if self.lane(ticket).is_some()
            && let Some(lane) = self.lane_mut(ticket.lane)
        {
            lane.status = status;
            lane.retry_after = retry_after;
        }
    }

    /// Bytes of the body of a response, cut anywhere. Returns how many were taken: none if the decoder is
    /// in the midst of something else. The rest is to be handed over again when anything else was, and at
    /// [`decoder_free_at`](Self::decoder_free_at) at the latest.
    #[must_use]
    pub fn response_body(&mut self, ticket: Ticket, now: Instant, bytes: &[u8]) -> usize {
        if ticket.lane == ELECTION_LANE {
            self.election_body(ticket, bytes);
            return bytes.len();
        }
        if ticket.lane == EVENT_LANE || self.lane(ticket).is_none_or(|lane| lane.is_unreadable) {
            return bytes.len();
        }
        if !self.takes_decoder(ResponseBody::Answer(ticket), now) {
            return 0;
        }
        let makes_sense = self.decoder.feed_answer(&self.cache, bytes);
        if let Some(lane) = self.lane_mut(ticket.lane) {
            lane.is_unreadable |= !makes_sense;
        }
        bytes.len()
    }

    /// The request has ended: with a complete response, or with a failure. The ticket is void.
    pub fn response_end(&mut self, ticket: Ticket, now: Instant, end: Result<(), Failure>) {
        if ticket.lane == EVENT_LANE {
            return self.event_ended(ticket, now, end);
        }
        if ticket.lane == ELECTION_LANE {
            return self.election_ended(ticket, now, end);
        }
        let Some(&lane) = self.lane(ticket) else { return };
        let Some(write) = lane.write else { return };
        if end == Err(Failure::Source(UNAUTHORIZED)) {
            self.note_unknown();
        }
        if end.is_err() {
            self.metrics.failures = self.metrics.failures.wrapping_add(1);
        }
        let end = end.and(if lane.status == 0 { Err(Failure::Ambiguous) } else { Ok(()) });
        if end.is_ok() && self.leads() && self.waits_to_resend(ticket, &lane, now) {
            return;
        }
        self.count_answer(&lane, end);
        self.conclude(ticket, &write, &lane, now, end);
        self.release(ticket);
    }

    fn event_ended(&mut self, ticket: Ticket, now: Instant, end: Result<(), Failure>) {
        if self.event.serial != Some(ticket.serial) {
            return;
        }
        let ClientRequest { status, .. } = core::mem::replace(&mut self.event, ClientRequest::NONE);
        let Self { recorder, cache, random, .. } = self;
        Client::answered(*recorder, cache.texts, end.map(|()| status), now, random.draw());
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
    fn conclude(
        &mut self,
        ticket: Ticket,
        write: &Write,
        lane: &Lane,
        now: Instant,
        end: Result<(), Failure>,
    ) {
        let Some(wall) = self.wall.at(now) else { return };
        let watch = self.watch(write.kind);
        let seen = watch.and_then(|watch| watch.version()).unwrap_or_default();
        let Self { cache, controllers, decoder, recorder, settings, metrics, .. } = self;
        let wall_now = Some(wall);
        let informers = &mut Informers { controllers, recorder, metrics, now, wall: wall_now };
        let reply = decoder.read_answer(ticket, lane, end, cache, informers, seen);
        let mut all = controllers.all_mut();
        let number = usize::from(lane.controller);
        let Some((before, rest)) = all.split_at_mut_checked(number) else { return };
        let Some((controller, after)) = rest.split_first_mut() else { return };
        let mut world = World {
            cache,
            recorder,
            pods: self.pods_in_order,
            peers: Peers { before, after },
            has_room: &|_| false,
            terminating_replicas: settings.terminating_replicas,
            #[cfg(feature = "statefulset")]
            max_unavailable_stateful_set: settings.max_unavailable_stateful_set,
            status_lag: settings.status_lag,
            now,
            wall,
        };
        controller.answered(&mut world, write, &reply);
    }
}
