//! Taking in the answers to requests.

use crate::planted::{Bug, planted};
use crate::store::{Applied, Cache, Kind};
use crate::time::{Duration, Instant};
use crate::watch::{Cached, Handler};
use crate::wire::{Answer, Meta, ResourceVersion, Status};

use super::context::Context;
use super::issue::LaneKind;
use super::request::{Failure, Ticket};
use super::respond::{Reply, ReplyKind};
use super::router::Router;
use super::workspace::{Desk, Job, Lane, LaneState};
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
        if ticket.lane == EVENT_LANE && self.event_ticket == Some(ticket.serial) {
            self.event_status = status;
        } else if self.lane(ticket).is_some()
            && let Some(state) = self.lane_state_mut(ticket.lane)
        {
            state.status = status;
            state.retry_after = retry_after;
        }
    }

    /// Bytes of the body of a response, cut anywhere.
    pub fn response_body(&mut self, ticket: Ticket, bytes: &[u8]) {
        if ticket.lane == EVENT_LANE || self.lane(ticket).is_none() {
            return;
        }
        let cache = &self.parts.cache;
        let Desk { pods, replica_sets, deployments, .. } = &mut self.desk;
        let at = usize::from(ticket.lane);
        let (sets_at, deployments_at) = (pods.len(), pods.len() + replica_sets.len());
        if let Some(lane) = pods.get_mut(at) {
            feed(lane, cache, bytes);
        } else if let Some(lane) = at.checked_sub(sets_at).and_then(|at| replica_sets.get_mut(at)) {
            feed(lane, cache, bytes);
        } else if let Some(lane) =
            at.checked_sub(deployments_at).and_then(|at| deployments.get_mut(at))
        {
            feed(lane, cache, bytes);
        }
    }

    /// The request has ended: with a complete response, or with a failure. The ticket is void.
    pub fn response_end(&mut self, ticket: Ticket, now: Instant, end: Result<(), Failure>) {
        if ticket.lane == EVENT_LANE {
            return self.event_ended(ticket, now, end);
        }
        let Some((_, &state)) = self.lane(ticket) else { return };
        let Some(job) = state.job else { return };
        if end.is_err() {
            self.metrics.failures = self.metrics.failures.wrapping_add(1);
        }
        let end = end.and(if state.status == 0 { Err(Failure::Ambiguous) } else { Ok(()) });
        if end.is_ok() && self.waits_to_resend(ticket, &state, now) {
            return;
        }
        self.count_answer(&state, end);
        self.conclude(ticket, &job, &state, now, end);
        self.release_job(ticket);
    }

    fn event_ended(&mut self, ticket: Ticket, now: Instant, end: Result<(), Failure>) {
        if self.event_ticket != Some(ticket.serial) {
            return;
        }
        self.event_ticket = None;
        let texts = &mut *self.parts.cache.texts;
        match end {
            Ok(()) => self.desk.recorder.answered(texts, self.event_status),
            Err(_) => self.desk.recorder.failed(texts, now, self.random),
        }
    }

    /// 429 and errors of the server that come with `Retry-After` are not for the controllers to
    /// know, at least not soon.
    fn waits_to_resend(&mut self, ticket: Ticket, state: &LaneState, now: Instant) -> bool {
        let may_pass = state.status == 429 || state.status >= 500;
        let Some(seconds) = state.retry_after.filter(|_| may_pass) else { return false };
        if state.retries >= MOST_RETRIES {
            return false;
        }
        self.metrics.retries_after = self.metrics.retries_after.wrapping_add(1);
        if let Some(state) = self.lane_state_mut(ticket.lane) {
            state.retries += 1;
            state.resend_at = Some(now + Duration::from_secs(u64::from(seconds)));
        }
        self.reset_decoder(ticket.lane);
        true
    }

    fn reset_decoder(&mut self, lane: u8) {
        let Desk { pods, replica_sets, deployments, .. } = &mut self.desk;
        let at = usize::from(lane);
        let (sets_at, deployments_at) = (pods.len(), pods.len() + replica_sets.len());
        if let Some(lane) = pods.get_mut(at) {
            lane.decoder.reset();
        } else if let Some(lane) = at.checked_sub(sets_at).and_then(|at| replica_sets.get_mut(at)) {
            lane.decoder.reset();
        } else if let Some(lane) =
            at.checked_sub(deployments_at).and_then(|at| deployments.get_mut(at))
        {
            lane.decoder.reset();
        }
    }

    fn count_answer(&mut self, state: &LaneState, end: Result<(), Failure>) {
        let counter = match state.status {
            _ if end.is_err() => return,
            409 => &mut self.metrics.conflicts,
            404 | 0..=399 => return,
            _ => &mut self.metrics.refusals,
        };
        *counter = counter.wrapping_add(1);
    }

    /// Applies the object that came back, then tells the worker.
    fn conclude(
        &mut self,
        ticket: Ticket,
        job: &Job,
        state: &LaneState,
        now: Instant,
        end: Result<(), Failure>,
    ) {
        let Some(wall) = self.wall.at(now) else { return };
        let version_of = |kind| self.watch(kind).version().unwrap_or_default();
        let seen = match job.task.lane() {
            LaneKind::Pod => version_of(Kind::Pod),
            LaneKind::ReplicaSet => version_of(Kind::ReplicaSet),
            LaneKind::Deployment => version_of(Kind::Deployment),
        };
        let Self { parts, desk, settings, metrics, .. } = self;
        let Desk { pods, replica_sets, deployments, .. } = desk;
        let at = usize::from(ticket.lane);
        let (sets_at, deployments_at) = (pods.len(), pods.len() + replica_sets.len());
        let router = &mut Router {
            replica_set_queue: parts.replica_set_queue,
            deployment_queue: parts.deployment_queue,
            expectations: parts.expectations,
            status_pending: parts.status_pending,
            deployment_status_pending: parts.deployment_status_pending,
            metrics,
            now,
        };
        let cache = &mut parts.cache;
        let reply = match job.task.lane() {
            LaneKind::Pod => {
                pods.get_mut(at).map(|lane| read(lane, state, end, cache, router, seen))
            }
            LaneKind::ReplicaSet => at
                .checked_sub(sets_at)
                .and_then(|at| replica_sets.get_mut(at))
                .map(|lane| read(lane, state, end, cache, router, seen)),
            LaneKind::Deployment => at
                .checked_sub(deployments_at)
                .and_then(|at| deployments.get_mut(at))
                .map(|lane| read(lane, state, end, cache, router, seen)),
        };
        let Some(reply) = reply else { return };
        let mut context = Context {
            cache: &mut parts.cache,
            replica_set_queue: parts.replica_set_queue,
            replica_set_workers: &[],
            deployment_queue: parts.deployment_queue,
            deployment_workers: &[],
            expectations: parts.expectations,
            ranking: parts.ranking,
            status_pending: parts.status_pending,
            deployment_status_pending: parts.deployment_status_pending,
            recorder: desk.recorder,
            view: desk.view,
            settings,
            now,
            wall,
        };
        let worker = usize::from(job.worker);
        if job.task.is_of_replica_set() {
            if let Some(worker) = desk.replica_set_workers.get_mut(worker) {
                context.replica_set_answered(worker, job, &reply);
            }
        } else if let Some(worker) = desk.deployment_workers.get_mut(worker) {
            context.deployment_answered(worker, job, &reply);
        }
    }
}

fn feed<K: Cached>(lane: &mut Lane<K>, cache: &Cache<'_>, bytes: &[u8]) {
    if lane.state.readable {
        // The watch may have been faster.
        let is_known = |_, meta: &Meta| K::is_known(meta, cache);
        lane.state.readable = lane.decoder.feed_unless(bytes, &is_known).is_ok();
    }
}

/// Reads what an answer says. An object in it that is newer than what the watch has told so far
/// goes to the cache at once: own writes count.
fn read<'l, K: Cached>(
    lane: &'l mut Lane<K>,
    state: &LaneState,
    end: Result<(), Failure>,
    cache: &mut Cache<'_>,
    router: &mut Router<'_>,
    seen: ResourceVersion,
) -> Reply<'l> {
    if let Err(failure) = end {
        return Reply { kind: ReplyKind::Failed(failure), message: failure.text(), meta: None };
    }
    let code = state.status;
    let answer = if state.readable { lane.decoder.finish().ok() } else { None };
    match answer {
        Some(Answer::Object(object)) => {
            let meta = object.meta();
            let is_news = meta.resource_version > seen && !planted(Bug::NoExpectations);
            if (200..300).contains(&code) && is_news {
                match object.apply(cache) {
                    Applied::Changed(change) => router.changed(cache, K::CACHED, &change),
                    Applied::Refused(refusal) => {
                        router.refused(cache, K::CACHED, meta, &refusal);
                    }
                    Applied::Foreign | Applied::Older => {}
                }
            }
            Reply { kind: ReplyKind::of(code, None), message: "", meta: Some(meta) }
        }
        Some(Answer::Known(meta)) => {
            Reply { kind: ReplyKind::of(code, None), message: "", meta: Some(meta) }
        }
        Some(Answer::Status(status)) => {
            Reply { kind: ReplyKind::of(code, Some(status)), message: text_of(status), meta: None }
        }
        Some(Answer::Faulty(_)) | None => {
            Reply { kind: ReplyKind::of(code, None), message: "unreadable answer", meta: None }
        }
    }
}

fn text_of(status: &Status) -> &str {
    if status.message.is_empty() { "unknown error" } else { &status.message }
}
