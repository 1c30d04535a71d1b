//! Taking in the answers to requests.

use crate::planted::{Bug, planted};
use crate::store::{Applied, Cache};
use crate::time::{Duration, Instant};
use crate::watch::{Cached, Handler};
use crate::wire::{Answer, AnswerDecoder, ResourceVersion, Status};

use super::context::Context;
use super::request::{Failure, Ticket};
use super::respond::{Reply, ReplyKind};
use super::router::Router;
use super::workspace::{Desk, Job, LaneDecoder, LaneState};
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
        let Desk { states, decoders, .. } = &mut self.desk;
        let Some(state) = states.get_mut(usize::from(ticket.lane)) else { return };
        if state.is_unreadable {
            return;
        }
        let readable = match decoders.get_mut(usize::from(state.decoder)) {
            Some(LaneDecoder::Pod(decoder)) => feed(decoder, cache, bytes),
            Some(LaneDecoder::ReplicaSet(decoder)) => feed(decoder, cache, bytes),
            Some(LaneDecoder::Deployment(decoder)) => feed(decoder, cache, bytes),
            None => false,
        };
        state.is_unreadable = !readable;
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
        self.conclude(&job, &state, now, end);
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
        true
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
    fn conclude(&mut self, job: &Job, state: &LaneState, now: Instant, end: Result<(), Failure>) {
        let Some(wall) = self.wall.at(now) else { return };
        let seen = self.watch(job.task.kind()).version().unwrap_or_default();
        let Self { parts, desk, settings, metrics, .. } = self;
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
        let reply = match desk.decoders.get_mut(usize::from(state.decoder)) {
            Some(LaneDecoder::Pod(decoder)) => read(decoder, state, end, cache, router, seen),
            Some(LaneDecoder::ReplicaSet(decoder)) => {
                read(decoder, state, end, cache, router, seen)
            }
            Some(LaneDecoder::Deployment(decoder)) => {
                read(decoder, state, end, cache, router, seen)
            }
            None => return,
        };
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

/// Whether the body makes sense so far.
fn feed<K: Cached>(decoder: &mut AnswerDecoder<K>, cache: &Cache<'_>, bytes: &[u8]) -> bool {
    // The watch may have been faster, and a status leaves the template as it was.
    decoder.feed_news(bytes, cache).is_ok()
}

/// Reads what an answer says. An object in it that is newer than what the watch has told so far
/// goes to the cache at once: own writes count.
fn read<'d, K: Cached>(
    decoder: &'d mut AnswerDecoder<K>,
    state: &LaneState,
    end: Result<(), Failure>,
    cache: &mut Cache<'_>,
    router: &mut Router<'_>,
    seen: ResourceVersion,
) -> Reply<'d> {
    if let Err(failure) = end {
        return Reply { kind: ReplyKind::Failed(failure), message: failure.text(), meta: None };
    }
    let code = state.status;
    let answer = if state.is_unreadable { None } else { decoder.finish().ok() };
    match answer {
        Some(Answer::Object(object)) => {
            let meta = object.meta();
            let is_news = meta.resource_version > seen && !planted(Bug::NoExpectations);
            if (200..300).contains(&code) && is_news {
                match cache.apply_answer(K::CACHED, meta, |cache| object.apply(cache)) {
                    Applied::Changed(change) => router.changed(cache, K::CACHED, &change),
                    Applied::Refused(refusal) => {
                        router.refused(cache, K::CACHED, meta, &refusal);
                    }
                    Applied::Foreign | Applied::Older => {}
                }
            }
            Reply { kind: ReplyKind::of(code, None), message: "", meta: Some(meta) }
        }
        Some(Answer::Metadata(meta)) => {
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
