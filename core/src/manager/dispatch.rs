//! Handing out requests: keys to workers, workers to lanes.

use core::fmt;

use crate::deployment;
use crate::event::Sending;
use crate::queue::Next;
use crate::replicaset;
use crate::store::Kind;
use crate::time::Instant;

use super::body::Author;
use super::issue::{Workers, compose, deployment_job, replica_set_job, writes_set};
use super::request::{Body, ContentType, Method, Request, Target, Ticket};
use super::workspace::{Desk, Job, LaneState};
use super::{Controller, Manager};

/// The lane of events, in tickets.
pub(super) const EVENT_LANE: u8 = u8::MAX;
/// Of so many requests, one is an event if one waits.
const EVENT_TURN: u8 = 3;

impl Manager<'_> {
    /// The next request to send now, if any. To be called until it returns `None`, or while the
    /// driver has a connection to spare. `random` is a fresh uniform number.
    pub fn poll(&mut self, now: Instant, random: u32) -> Option<Request> {
        let mut place = None;
        self.poll_into(now, random, &mut place);
        place
    }

    /// As [`poll`](Self::poll), into a place of the caller's: a request is large, and a stack
    /// that it is handed up through may be small.
    pub fn poll_into(&mut self, now: Instant, random: u32, place: &mut Option<Request>) {
        self.polled_at = now;
        self.random = random;
        self.blocked_until = None;
        *place = None;
        if !self.has_started() {
            return;
        }
        self.turn = (self.turn + 1) % EVENT_TURN;
        let event_first = self.turn == 0;
        let _found = self.resend(now, place)
            || (event_first && self.next_event(now, place))
            || self.next_of_deployments(now, place)
            || self.next_of_replica_sets(now, place)
            || self.next_event(now, place);
        let Some(request) = place else { return };
        let sent = match request.method {
            Method::Get => 0,
            Method::Post => 1,
            Method::Patch => 2,
            Method::Delete => 3,
        };
        if let Some(count) = self.metrics.requests.get_mut(sent) {
            *count = count.wrapping_add(1);
        }
    }

    /// When [`poll`](Self::poll) or [`poll_watch`](Self::poll_watch) has something to do, if
    /// nothing comes in before.
    pub fn poll_at(&self) -> Option<Instant> {
        let watches = [Kind::Pod, Kind::ReplicaSet, Kind::Deployment];
        let mut next = watches.into_iter().map(|kind| self.watch(kind).poll_at()).min();
        if !self.has_started() {
            return next;
        }
        // What was due when `poll` last looked waits for something else than time.
        let mut consider = |at: Option<Instant>| {
            next = next.into_iter().chain(at.filter(|at| *at > self.polled_at)).min();
        };
        consider(self.parts.replica_set_queue.poll_at());
        consider(self.parts.deployment_queue.poll_at());
        consider(self.desk.recorder.poll_at());
        consider(self.blocked_until);
        self.desk.deployment_workers.iter().for_each(|worker| consider(worker.waits_until()));
        self.desk.replica_set_workers.iter().for_each(|worker| consider(worker.waits_until()));
        self.lane_states().for_each(|lane| consider(lane.resend_at));
        next
    }

    /// Whether keys wait to be processed or requests to be answered: then
    /// [`response_end`](Self::response_end) or [`poll`](Self::poll) should be called before long,
    /// whatever [`poll_at`](Self::poll_at) says, which speaks of timers only.
    pub fn has_work(&self) -> bool {
        let Manager { parts, .. } = self;
        self.has_started()
            && (parts.deployment_queue.depth() > 0
                || parts.replica_set_queue.depth() > 0
                || self.lane_states().any(|lane| lane.job.is_some()))
    }

    /// Whether a bucket has a token. If not, someone waits for it.
    fn may_send(&mut self, ready_at: Instant, now: Instant) -> bool {
        if ready_at > now {
            self.blocked_until = self.blocked_until.into_iter().chain([ready_at]).min();
        }
        ready_at <= now
    }

    /// Writes a [`Body::Document`]. An error is that of `out`, or the object is gone: then the
    /// request cannot be sent any more ([`Failure::NotSent`](super::Failure::NotSent)).
    pub fn write_body(&self, ticket: Ticket, out: &mut dyn fmt::Write) -> fmt::Result {
        if ticket.lane == EVENT_LANE {
            let is_current = self.event_ticket == Some(ticket.serial);
            let recorder = &self.desk.recorder;
            return if is_current {
                recorder.write_body(self.parts.cache.texts, out)
            } else {
                Err(fmt::Error)
            };
        }
        let (_, state) = self.lane(ticket).ok_or(fmt::Error)?;
        let job = state.job.ok_or(fmt::Error)?;
        let Workers { of_replica_set: replica_set_worker, of_deployment: deployment_worker } =
            workers(&self.desk, &job);
        let cache = &self.parts.cache;
        Author { cache, replica_set_worker, deployment_worker }.write(&job, out)
    }

    fn next_of_deployments(&mut self, now: Instant, place: &mut Option<Request>) -> bool {
        let is_idle = self.parts.deployment_queue.poll_at().is_none_or(|at| at > now)
            && self.parts.deployment_queue.depth() == 0
            && self.desk.deployment_workers.iter().all(|worker| worker.key.is_none());
        if is_idle || !self.may_send(self.deployment_bucket.ready_at(self.settings.rate), now) {
            return false;
        }
        if !self.settings.controllers.contains(Controller::Deployment) {
            return false;
        }
        self.parts.deployment_queue.poll(now);
        for index in 0..self.desk.deployment_workers.len() {
            if let Some(job) = self.fresh_deployment_job(index, now) {
                if !self.begin_job(job, now, place) {
                    continue;
                }
                if let Some(worker) = self.desk.deployment_workers.get_mut(index) {
                    worker.open = true;
                }
                self.deployment_bucket.take(self.settings.rate, now);
                return true;
            }
        }
        false
    }

    /// What a Deployment's worker wants to send and can send now. What was decided before it had
    /// to wait for another request is decided anew: things may have changed, and where Kubernetes
    /// does not wait, it runs into a conflict.
    fn fresh_deployment_job(&mut self, index: usize, now: Instant) -> Option<Job> {
        loop {
            let job = self.deployment_wants(index, now)?;
            let has_room = self.has_room(&job);
            let worker = self.desk.deployment_workers.get_mut(index)?;
            let was_held_up = core::mem::replace(&mut worker.is_held_up, !has_room);
            if !has_room {
                return None;
            }
            if !(was_held_up && worker.is_about_to_change_set()) {
                return Some(job);
            }
            worker.decide_anew();
        }
    }

    /// What a Deployment's worker wants to send, after it was given a key if it had none.
    fn deployment_wants(&mut self, index: usize, now: Instant) -> Option<Job> {
        loop {
            let (mut context, workers) = self.deployment_syncs(now)?;
            let worker = workers.get_mut(index)?;
            if worker.key.is_none() {
                let Next::Key(key) = context.deployment_queue.get() else { return None };
                match context.cache.deployments.get(key) {
                    Some(d) => worker.begin(key, d.uid()),
                    None => {
                        context.deployment_queue.done(key);
                        continue;
                    }
                }
                self.metrics.deployment_syncs = self.metrics.deployment_syncs.wrapping_add(1);
                continue;
            }
            match worker.want(&mut context) {
                Some(want) => {
                    let job = deployment_job(context.cache, worker, index as u8, want);
                    match job {
                        Some(job) => return Some(job),
                        // What it is about has gone meanwhile.
                        None => worker.stop(deployment::Outcome::Retry),
                    }
                }
                None if worker.key.is_some() => return None,
                None => {}
            }
        }
    }

    fn next_of_replica_sets(&mut self, now: Instant, place: &mut Option<Request>) -> bool {
        let is_idle = self.parts.replica_set_queue.poll_at().is_none_or(|at| at > now)
            && self.parts.replica_set_queue.depth() == 0
            && self.desk.replica_set_workers.iter().all(|worker| worker.key.is_none());
        if is_idle || !self.may_send(self.replica_set_bucket.ready_at(self.settings.rate), now) {
            return false;
        }
        if !self.settings.controllers.contains(Controller::ReplicaSet) {
            return false;
        }
        self.parts.replica_set_queue.poll(now);
        for index in 0..self.desk.replica_set_workers.len() {
            if let Some((job, want)) = self.replica_set_wants(index, now) {
                if !self.begin_job(job, now, place) {
                    continue;
                }
                if let Some(worker) = self.desk.replica_set_workers.get_mut(index) {
                    worker.open += 1;
                    match want {
                        replicaset::Want::Create => {
                            worker.creations.begin();
                        }
                        replicaset::Want::Delete(pod) => self.parts.cache.unmark_victim(pod),
                        _ => {}
                    }
                }
                self.replica_set_bucket.take(self.settings.rate, now);
                return true;
            }
        }
        false
    }

    fn replica_set_wants(&mut self, index: usize, now: Instant) -> Option<(Job, replicaset::Want)> {
        loop {
            let (mut context, workers) = self.replica_set_syncs(now)?;
            let worker = workers.get_mut(index)?;
            if worker.key.is_none() {
                let Next::Key(key) = context.replica_set_queue.get() else { return None };
                match context.cache.replica_sets.get(key) {
                    Some(rs) => worker.begin(key, rs.uid()),
                    None => {
                        context.replica_set_queue.done(key);
                        continue;
                    }
                }
                self.metrics.replica_set_syncs = self.metrics.replica_set_syncs.wrapping_add(1);
                continue;
            }
            match worker.want(&mut context) {
                Some(want) => {
                    let job = replica_set_job(context.cache, worker, index as u8, want);
                    match job {
                        Some(job) => return Some((job, want)),
                        None => worker.phase = replicaset::Phase::Ending,
                    }
                }
                None if worker.key.is_some() => return None,
                None => {}
            }
        }
    }

    /// Whether a job can begin now: there is a lane, and nobody else writes to the same object.
    fn has_room(&self, job: &Job) -> bool {
        self.desk.free_lane().is_some() && !self.is_set_busy(job)
    }

    /// Puts a job into a free lane and composes its request. `false` if it has to wait.
    fn begin_job(&mut self, mut job: Job, now: Instant, place: &mut Option<Request>) -> bool {
        if !self.has_room(&job) {
            return false;
        }
        let Some((index, decoder)) = self.desk.free_lane() else { return false };
        let Desk { states, decoders, .. } = &mut self.desk;
        let Some(state) = states.get_mut(index) else { return false };
        if let Some(decoder) = decoders.get_mut(decoder) {
            decoder.prepare(job.task.kind());
        }
        self.serial = self.serial.wrapping_add(1);
        let decoder = decoder as u8;
        *state = LaneState { serial: self.serial, decoder, ..LaneState::FREE };
        let ticket = Ticket { lane: index as u8, serial: self.serial };
        job.name.retain(self.parts.cache.texts);
        self.parts.cache.texts.retain(job.namespace);
        job.at = self.wall.at(now).unwrap_or_default();
        state.job = Some(job);
        self.compose(ticket, &job, place);
        if place.is_none() {
            self.release_job(ticket);
        }
        place.is_some()
    }

    /// A write to a ReplicaSet waits until an earlier one is answered: both controllers write to
    /// it, and a write that does not know of the other would be refused.
    fn is_set_busy(&self, job: &Job) -> bool {
        writes_set(job, job.uid)
            && self
                .lane_states()
                .any(|state| state.job.is_some_and(|other| writes_set(&other, job.uid)))
    }

    fn compose(&self, ticket: Ticket, job: &Job, place: &mut Option<Request>) {
        let workers = workers(&self.desk, job);
        if compose(&self.parts.cache, ticket, job, workers, place).is_none() {
            *place = None;
        }
    }

    /// A request that the server wants to see again later.
    fn resend(&mut self, now: Instant, place: &mut Option<Request>) -> bool {
        let due = |state: &LaneState| state.resend_at.is_some_and(|at| at <= now);
        let Some(index) = self.lane_states().position(due) else { return false };
        let Some(decoder) = self.desk.free_decoder() else { return false };
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let Desk { states, decoders, .. } = &mut self.desk;
        let Some(state) = states.get_mut(index) else { return false };
        let LaneState { job, retries, .. } = *state;
        *state = LaneState { serial, job, retries, decoder: decoder as u8, ..LaneState::FREE };
        if let Some(job) = job {
            if let Some(decoder) = decoders.get_mut(decoder) {
                decoder.prepare(job.task.kind());
            }
            self.compose(Ticket { lane: index as u8, serial }, &job, place);
        }
        place.is_some()
    }

    fn next_event(&mut self, now: Instant, place: &mut Option<Request>) -> bool {
        if self.event_ticket.is_some() {
            return false;
        }
        let texts = &mut *self.parts.cache.texts;
        let Some(sending) = self.desk.recorder.poll(texts, now) else { return false };
        if !self.may_send(self.event_bucket_ready(), now) {
            return false;
        }
        let (method, content_type) = match sending {
            Sending::Create => (Method::Post, ContentType::Json),
            Sending::Count => (Method::Patch, ContentType::StrategicMergePatch),
        };
        let serial = self.serial.wrapping_add(1);
        let ticket = Ticket { lane: EVENT_LANE, serial };
        let (target, body) = (Target::new(), Body::Document);
        let request = place.insert(Request { ticket, method, target, content_type, body });
        let texts = &*self.parts.cache.texts;
        if self.desk.recorder.write_target(texts, &mut request.target).is_err() {
            *place = None;
            return false;
        }
        self.serial = serial;
        self.event_ticket = Some(serial);
        self.event_status = 0;
        match self.desk.recorder.controller() {
            Some(Controller::ReplicaSet) => {
                self.replica_set_bucket.take(self.settings.rate, now);
            }
            _ => self.deployment_bucket.take(self.settings.rate, now),
        }
        true
    }

    /// When the controller that the event at hand is from may send.
    fn event_bucket_ready(&self) -> Instant {
        let bucket = match self.desk.recorder.controller() {
            Some(Controller::ReplicaSet) => &self.replica_set_bucket,
            Some(Controller::Deployment) | None => &self.deployment_bucket,
        };
        bucket.ready_at(self.settings.rate)
    }

    /// The lane of a ticket that is still good.
    pub(super) fn lane(&self, ticket: Ticket) -> Option<(u8, &LaneState)> {
        let state = self.lane_states().nth(usize::from(ticket.lane))?;
        let is_good =
            state.serial == ticket.serial && state.job.is_some() && state.resend_at.is_none();
        is_good.then_some((ticket.lane, state))
    }

    pub(super) fn lane_states(&self) -> impl Iterator<Item = &LaneState> {
        self.desk.states.iter()
    }

    pub(super) fn lane_state_mut(&mut self, index: u8) -> Option<&mut LaneState> {
        self.desk.states.get_mut(usize::from(index))
    }

    /// Frees the lane of a request that has ended.
    pub(super) fn release_job(&mut self, ticket: Ticket) {
        let job = self.lane_state_mut(ticket.lane).and_then(|state| state.job.take());
        if let Some(job) = job {
            job.name.release(self.parts.cache.texts);
            self.parts.cache.texts.release(job.namespace);
        }
    }
}

/// The worker that waits for a job.
pub(super) fn workers<'d>(desk: &'d Desk<'_>, job: &Job) -> Workers<'d> {
    let at = usize::from(job.worker);
    let is_of_replica_set = job.task.is_of_replica_set();
    Workers {
        of_replica_set: desk.replica_set_workers.get(at).filter(|_| is_of_replica_set),
        of_deployment: desk.deployment_workers.get(at).filter(|_| !is_of_replica_set),
    }
}
