//! Requests and their answers: what a driver does, over a network that may fail.

use bytes::Bytes;
use http::Method;
use picokube_core::manager::{Body, Failure, Method as Verb, Request, ResponseHead};
use picokube_core::splice::{SpliceError, Splicer};
use picokube_core::time::Timestamp;

use crate::random::Random;
use crate::server::request::Request as HttpRequest;
use crate::server::response::Response;

use super::checks::{Basis, Instant};
use super::clock::Moment;
use super::device::{Device, KINDS, Splicing, Work};
use super::election::is_of_election;
use super::fault::{Fault, refusal};
use super::link::{GIVES_UP_AFTER_SECS, Passage, Way};
use super::operation::Operation;
use super::stream::Opening;
use super::trace::Actor;
use super::world::{Happening, World};

/// What a head and what goes with it add to a body, about.
const HEAD_BYTES: usize = 200;

/// A request on its way to the server.
pub(super) struct Message {
    pub(super) device: usize,
    pub(super) boot: u64,
    pub(super) sent: Moment,
    /// When it really leaves: the link may be down.
    pub(super) leaves: Moment,
    pub(super) http: HttpRequest,
    pub(super) purpose: Purpose,
    pub(super) fate: Option<Fault>,
    /// Tells it from all others of this controller.
    pub(super) number: u64,
}

/// What a request is for.
pub(super) enum Purpose {
    /// It is one of the manager's, and what that may have known when it decided on it.
    Request { exchange: u64, basis: Basis },
    /// It reads the source of a body.
    Source { exchange: u64 },
    /// It lists or watches.
    Stream(Opening),
}

/// An answer on its way to a controller, or the failure to get one.
pub(super) struct Answer {
    device: usize,
    boot: u64,
    exchange: u64,
    is_source: bool,
    /// The head has been told, and some of the body.
    is_begun: bool,
    result: Result<Reply, Failure>,
}

impl Answer {
    /// Whether the server has answered.
    pub(super) fn is_reply(&self) -> bool {
        self.result.is_ok()
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) retry_after: Option<u32>,
    pub(super) date: Timestamp,
    pub(super) body: Bytes,
    /// Where the connection broke, if it did.
    pub(super) cut: bool,
}

impl Reply {
    fn head(&self) -> ResponseHead {
        let Self { status, retry_after, date, .. } = *self;
        ResponseHead { status, date: Some(date), retry_after }
    }
}

impl<'m> World<'m> {
    /// Lets a controller do everything it wants to do now.
    pub(super) fn pump(&mut self, number: usize) {
        let Some(mut device) = self.devices[number].take() else { return };
        if device.frozen_until > self.now {
            self.devices[number] = Some(device);
            return;
        }
        let mut late = std::mem::take(&mut device.held);
        if device.can_go_on(self.now) {
            late.append(&mut device.waiting);
        }
        if !late.is_empty() {
            // What is of a connection that has gone wakes nobody: there may be more to do.
            self.devices[number] = Some(device);
            late.into_iter().for_each(|happening| self.happen(happening));
            let Some(alive) = self.devices[number].take() else { return };
            device = alive;
        }
        self.expire(&mut device);
        self.send_unsent(&mut device);
        self.poll_streams(&mut device);
        while !device.dying && device.frozen_until <= self.now {
            let now = self.now;
            let is_free =
                |lane: &super::device::Lane| lane.work.is_none() && lane.not_before <= now;
            let Some(lane) = device.lanes.iter().position(is_free) else { break };
            let local = device.local(now);
            let Some(request) = device.manager.poll(local) else { break };
            self.issue(&mut device, lane, request);
        }
        device.dying |= device.is_ending && device.manager.has_released();
        self.plan_wake(&mut device);
        self.put_back(device);
    }

    /// A controller has done what it wanted, unless it has died of it.
    fn put_back(&mut self, device: Device<'m>) {
        let (number, dying) = (device.number, device.dying);
        self.devices[number] = Some(device);
        if dying {
            self.kill(number);
        }
    }

    fn plan_wake(&mut self, device: &mut Device<'m>) {
        let now = self.now;
        let watches =
            KINDS.map(|kind| device.manager.poll_watch_at(kind).map(|at| device.when(at)));
        // What is due but has not been done waits for a lane, which tells when it is free.
        let due = device.manager.poll_at().map(|at| device.when(at));
        let lanes = device.lanes.iter().filter(|lane| lane.work.is_none());
        let rested = lanes.map(|lane| lane.not_before);
        let free = device.manager.decoder_free_at().filter(|_| !device.waiting.is_empty());
        let free = free.map(|at| device.when(at));
        let expiring = device.lanes.iter().filter_map(|lane| lane.work.as_ref());
        let expiring = expiring.filter_map(|work| device.manager.expires_at(work.request.ticket));
        let expiring = expiring.map(|at| device.when(at));
        let wakes =
            watches.into_iter().flatten().chain(due).chain(rested).chain(free).chain(expiring);
        let next = wakes.filter(|at| *at > now).min();
        let Some(at) = next else { return };
        if device.wakes_at.is_none_or(|planned| at < planned) {
            device.wakes_at = Some(at);
            let (device, boot) = (device.number, device.boot);
            self.agenda.plan(at, Happening::Wake { device, boot });
        }
    }

    /// A controller wants something sent.
    fn issue(&mut self, device: &mut Device<'m>, lane: usize, request: Request) {
        let operation = Operation::of(&request);
        let mut document = String::new();
        if matches!(request.body, Body::Document)
            && device.manager.write_body(request.ticket, &mut document).is_err()
        {
            let local = device.local(self.now);
            return device.manager.response_end(request.ticket, local, Err(Failure::NotSent));
        }
        self.counts.requests += 1;
        let wall = device.wall_at_most(self.now);
        let at = Instant { now: self.now, wall, version: self.server.store().revision() };
        let (basis, issued) = self.checks.issued(device, &operation, &request, &document, at);
        // The Lease is no object that controllers work on.
        let issued = if is_of_election(&request.target) { Ok(()) } else { issued };
        if let Err((property, detail)) = issued {
            self.violate(property, format!("{operation:?}: {detail}"));
        }
        let splicing = match &request.body {
            Body::Splice(splice) => {
                let known =
                    device.body_buffer.as_ref().filter(|(made, _)| made.makes_the_same(splice));
                if let Some((_, body)) = known {
                    let body = body.clone();
                    let work = Work { exchange: 0, request, splicing: None, basis, unsent: None };
                    device.lanes[lane].work = Some(work);
                    return self.send_request(device, lane, body);
                }
                let splicer = Splicer::new(splice);
                Some(Box::new(Splicing { splicer, made: Vec::new() }))
            }
            Body::Empty | Body::Document => None,
        };
        let is_spliced = splicing.is_some();
        device.lanes[lane].work =
            Some(Work { exchange: 0, request, splicing, basis, unsent: None });
        if is_spliced {
            self.read_source(device, lane)
        } else {
            self.send_request(device, lane, Bytes::from(document))
        }
    }

    pub(super) fn send_request(&mut self, device: &mut Device<'m>, lane: usize, body: Bytes) {
        let Some(work) = &mut device.lanes[lane].work else { return };
        let is_write = work.request.method != Verb::Get && !is_of_election(&work.request.target);
        if is_write && let Some(seconds) = self.freezes.pop_front() {
            work.unsent = Some(body);
            return self.freeze(device, seconds);
        }
        let exchange = self.next_serial();
        let Some(work) = &mut device.lanes[lane].work else { return };
        work.exchange = exchange;
        let method = match work.request.method {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let mut http = HttpRequest::new(method, &work.request.target);
        if !body.is_empty() {
            http = http.with_body(work.request.content_type.name(), body);
        }
        let basis = work.basis.clone();
        self.send(device, http, Purpose::Request { exchange, basis })
    }

    /// Asks for the next source of a body, or sends the body if it is complete.
    fn read_source(&mut self, device: &mut Device<'m>, lane: usize) {
        let exchange = self.next_serial();
        let Some(work) = &mut device.lanes[lane].work else { return };
        let Some(splicing) = &mut work.splicing else { return };
        if let Some(source) = splicing.splicer.source() {
            let http = HttpRequest::new(Method::GET, source);
            work.exchange = exchange;
            return self.send(device, http, Purpose::Source { exchange });
        }
        match splicing.finish() {
            Ok(body) => {
                if let Body::Splice(splice) = &work.request.body {
                    device.body_buffer = Some((splice.clone(), body.clone()));
                }
                work.splicing = None;
                self.send_request(device, lane, body);
            }
            Err(error) => self.end(device, lane, Err(spoilt(error))),
        }
    }

    /// Hands a request to the network.
    pub(super) fn send(&mut self, device: &mut Device<'m>, http: HttpRequest, purpose: Purpose) {
        let fate = self.next_fate(device.number);
        if let Purpose::Request { .. } = purpose {
            self.check_leadership(device, &http);
        }
        let (number, boot, sent) = (device.number, device.boot, self.now);
        let order = self.counts.sent;
        if number == 0 {
            self.deaths.before(order);
        }
        self.trace.note(
            sent,
            Actor::Controller(number),
            format_args!("sends {} {}?{}", http.method, http.path, http.query),
        );
        if let Some(fault) = fate {
            self.struck(fault);
        }
        if fate == Some(Fault::KillBeforeRequest) {
            device.dying = true;
            return;
        }
        let bytes = HEAD_BYTES + http.body.len();
        let passage = device.link.pass(sent, bytes, Way::ToServer, &mut self.random);
        let matters = http.method != Method::GET && !http.path.contains("/events");
        let leaves = passage.map_or(sent, |passage| passage.leaves);
        let message = Box::new(Message {
            device: number,
            boot,
            sent,
            leaves,
            http,
            purpose,
            fate,
            number: order,
        });
        match passage {
            Some(passage) if fate != Some(Fault::LoseRequest) => {
                if number == 0 && matters {
                    self.deaths.under_way(order);
                }
                self.agenda.plan(passage.ends, Happening::Arrive(message));
            }
            _ => self.give_up(*message),
        }
    }

    /// Nothing comes back: the controller waits as long as it has patience.
    fn give_up(&mut self, message: Message) {
        let Message { device, boot, sent, purpose, .. } = message;
        let at = sent.plus_secs(GIVES_UP_AFTER_SECS);
        self.fail(device, boot, at, purpose, Failure::Ambiguous);
    }

    fn fail(&mut self, device: usize, boot: u64, at: Moment, purpose: Purpose, failure: Failure) {
        let (exchange, is_source) = match purpose {
            Purpose::Request { exchange, .. } => (exchange, false),
            Purpose::Source { exchange } => (exchange, true),
            Purpose::Stream(opening) => {
                return self.fail_opening(device, boot, at, opening, failure);
            }
        };
        let answer =
            Answer { device, boot, exchange, is_source, is_begun: false, result: Err(failure) };
        self.agenda.plan(at, Happening::Answer(Box::new(answer)));
    }

    /// A request has reached the server.
    pub(super) fn arrive(&mut self, message: Message) {
        let (device, number) = (message.device, message.number);
        self.carry_out(message);
        if device == 0 {
            self.deaths.after(number);
        }
    }

    fn carry_out(&mut self, mut message: Message) {
        if self.healed_at.is_some_and(|healed_at| message.sent < healed_at) {
            message.fate = None;
        }
        if self.was_given_up(&message) {
            return;
        }
        let sender = self.devices[message.device].as_ref();
        if sender.is_some_and(|sender| sender.token_is_old_until > self.now) {
            message.fate = Some(Fault::Refuse(401));
        }
        if self.server_down_until > self.now || self.is_stuck(&message) {
            let Message { device, boot, purpose, .. } = message;
            let at = self.now.plus_millis(1);
            // On a connection that was open before, nobody knows how far it got.
            let known = self.random.below(2) == 0;
            let failure = if known { Failure::NotSent } else { Failure::Ambiguous };
            return self.fail(device, boot, at, purpose, failure);
        }
        let Message { device, boot, sent, http, purpose, fate, .. } = message;
        if let Purpose::Stream(opening) = purpose {
            return self.answer_stream(device, boot, sent, http, opening, fate);
        }
        let sender = self.devices[device].as_ref().filter(|sender| sender.boot == boot);
        if let Purpose::Request { exchange, basis } = &purpose {
            let is_awaited = sender.is_some_and(|sender| sender.lane_of(*exchange).is_some());
            self.checks.arrives(Some(basis.clone()), is_awaited);
        } else {
            self.checks.arrives(None, false);
        }
        let is_write = http.method != Method::GET;
        let before = self.server.store().revision();
        let mut response = match fate {
            Some(Fault::Refuse(status)) => refusal(status, &mut self.random),
            _ => self.server.handle(self.wall(), &http),
        };
        self.note(
            Actor::Controller(device),
            format_args!("is answered {}: {} {}", response.status, http.method, http.path),
        );
        let is_write = is_write && !is_of_election(&http.path);
        if is_write {
            // Silence is to try nothing, either.
            self.ending.wrote(self.now);
        }
        if is_write && response.status < 300 {
            let changed = self.server.store().revision() != before;
            let checked = self.checks.wrote(&http, changed);
            if let Err((property, detail)) = checked {
                self.violate(property, detail);
            }
        }
        self.observe(Actor::Controller(device));
        if fate == Some(Fault::KillAfterRequest) {
            return self.kill(device);
        }
        if let Some(Fault::FailAfter(status)) = fate {
            response = refusal(status, &mut self.random);
        }
        let reply = Reply::of(response, self.core_wall());
        self.send_back(device, boot, sent, purpose, fate, reply);
    }

    /// Whether a request was under way when all trouble ended, and would be for a long time: its
    /// connection is closed instead.
    fn is_stuck(&self, message: &Message) -> bool {
        self.plan.is_helped()
            && self.healed_at.is_some_and(|healed_at| {
                message.sent < healed_at && self.now > healed_at.plus_secs(1)
            })
    }

    fn send_back(
        &mut self,
        device: usize,
        boot: u64,
        sent: Moment,
        purpose: Purpose,
        fate: Option<Fault>,
        mut reply: Reply,
    ) {
        let Some(running) = self.devices[device].as_mut().filter(|running| running.boot == boot)
        else {
            return;
        };
        let bytes = HEAD_BYTES + reply.body.len();
        let passage = running.link.pass(self.now, bytes, Way::FromServer, &mut self.random);
        let patience = sent.plus_secs(GIVES_UP_AFTER_SECS);
        let late = match fate {
            Some(Fault::LateAnswer(seconds)) => u64::from(seconds),
            _ => 0,
        };
        let is_in_time = |passage: &Passage| passage.begins.plus_secs(late) <= patience;
        let passage = passage.filter(|it| is_in_time(it) && fate != Some(Fault::LoseAnswer));
        let Some(passage) = passage else {
            return self.fail(device, boot, patience, purpose, Failure::Ambiguous);
        };
        if let Some(Fault::CutAnswer(percent)) = fate {
            reply.body.truncate(reply.body.len() * usize::from(percent) / 100);
            reply.cut = true;
        }
        let (exchange, is_source) = match purpose {
            Purpose::Request { exchange, .. } => (exchange, false),
            Purpose::Source { exchange } => (exchange, true),
            Purpose::Stream(_) => return,
        };
        let result = Ok(reply);
        let answer = Answer { device, boot, exchange, is_source, is_begun: false, result };
        self.agenda.plan(passage.ends.plus_secs(late), Happening::Answer(Box::new(answer)));
    }

    /// An answer, or a failure, reaches a controller.
    pub(super) fn deliver(&mut self, answer: Answer) {
        let number = answer.device;
        let Some(device) = self.devices[number].as_mut().filter(|it| it.boot == answer.boot) else {
            return;
        };
        if device.stands_still(self.now) {
            return device.held.push(Happening::Answer(Box::new(answer)));
        }
        let Some(mut device) = self.devices[number].take() else { return };
        self.expire(&mut device);
        match device.lane_of(answer.exchange) {
            Some(lane) if answer.is_source => {
                self.deliver_source(&mut device, lane, answer.result);
            }
            Some(lane) => self.deliver_answer(&mut device, lane, answer),
            None => {}
        }
        self.put_back(device);
        self.pump(number);
    }

    fn deliver_answer(&mut self, device: &mut Device<'m>, lane: usize, answer: Answer) {
        let Some(request) = device.lanes[lane].work.as_ref().map(|work| &work.request) else {
            return;
        };
        let ticket = request.ticket;
        let reply = match &answer.result {
            Ok(reply) => reply,
            Err(failure) => return self.end(device, lane, Err(*failure)),
        };
        let local = device.local(self.now);
        if !answer.is_begun {
            if (200..300).contains(&reply.status) && !reply.cut {
                self.checks.done(device.number, ticket, reply.body.clone());
            }
            if let Some(seconds) = reply.retry_after {
                // Some clocks are a tenth faster, and are told by the millisecond.
                let from = self.now.plus_micros(u64::from(seconds) * 900_000);
                self.checks.postponed(device.number, ticket, from);
            }
            self.tell_leadership(device, lane, reply);
            device.manager.response_head(ticket, local, reply.head());
            let date = crate::time::Timestamp::from_unix_millis(reply.date.as_secs() * 1000);
            device.hear(self.now, date);
        }
        let mut taken = 0;
        for piece in pieces(&reply.body, &mut self.random) {
            let taken_now = device.manager.response_body(ticket, local, piece);
            taken += taken_now;
            if taken_now < piece.len() {
                let body = reply.body.slice(taken..);
                let result = Ok(Reply { body, ..*reply });
                let rest = Answer { is_begun: true, result, ..answer };
                return device.waiting.push(Happening::Answer(Box::new(rest)));
            }
        }
        let end = if reply.cut { Err(Failure::Ambiguous) } else { Ok(()) };
        self.end(device, lane, end);
    }

    fn deliver_source(
        &mut self,
        device: &mut Device<'m>,
        lane: usize,
        result: Result<Reply, Failure>,
    ) {
        let Some(splicing) =
            device.lanes[lane].work.as_mut().and_then(|work| work.splicing.as_mut())
        else {
            return;
        };
        // Only a source was asked for: whatever happened to that, nothing was written.
        let read = result.map_err(|_| Failure::NotSent).and_then(|reply| match reply.status {
            _ if reply.cut => Err(Failure::NotSent),
            200 => pieces(&reply.body, &mut self.random)
                .try_for_each(|piece| splicing.push(piece))
                .and_then(|()| splicing.splicer.end_of_source())
                .map_err(spoilt),
            status => Err(Failure::Source(status)),
        });
        match read {
            Ok(()) => self.read_source(device, lane),
            Err(failure) => self.end(device, lane, Err(failure)),
        }
    }

    /// All connections of a controller are reset.
    pub(super) fn reset(&mut self, device: &mut Device<'m>) {
        for lane in 0..device.lanes.len() {
            self.end(device, lane, Err(Failure::Ambiguous));
            device.lanes[lane].not_before = self.now;
        }
        self.cut_streams(device);
    }

    /// A request has ended, one way or another.
    fn end(&mut self, device: &mut Device<'m>, lane: usize, end: Result<(), Failure>) {
        let Some(work) = device.lanes[lane].work.take() else { return };
        if matches!(end, Err(Failure::NotSent | Failure::Ambiguous)) {
            device.back_off(lane, self.now);
        } else {
            device.calm_down(lane);
        }
        if let Err(failure) = end {
            self.trace.note(
                self.now,
                Actor::Controller(device.number),
                format_args!("fails: {failure}: {}", work.request.target),
            );
        }
        let local = device.local(self.now);
        device.manager.response_end(work.request.ticket, local, end);
        self.checks.ended(device, &work.request, end, self.now);
    }

    /// The server's `Date`: its wall clock, in whole seconds.
    pub(super) fn core_wall(&self) -> Timestamp {
        Timestamp::from_secs(self.wall().unix_millis().div_euclid(1000))
    }
}

impl Splicing {
    fn push(&mut self, mut source: &[u8]) -> Result<(), SpliceError> {
        let mut window = [0; 512];
        while !source.is_empty() {
            let len = self.splicer.push(&mut source, &mut window)?;
            self.made.extend_from_slice(&window[..len]);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Bytes, SpliceError> {
        let mut window = [0; 512];
        while let Some(len) = self.splicer.finish(&mut window)? {
            self.made.extend_from_slice(&window[..len]);
        }
        Ok(Bytes::from(std::mem::take(&mut self.made)))
    }
}

impl Reply {
    pub(super) fn of(response: Response, date: Timestamp) -> Self {
        let retry_after = response.headers.iter().find(|(name, _)| *name == "retry-after");
        let retry_after = retry_after.and_then(|(_, value)| value.parse().ok());
        let status = response.status;
        Self { status, retry_after, date, body: response.into_bytes(), cut: false }
    }
}

fn spoilt(error: SpliceError) -> Failure {
    match error {
        SpliceError::Changed => Failure::SourceChanged,
        SpliceError::Malformed | SpliceError::TooLarge => Failure::NotSent,
    }
}

/// The body in one, two or three pieces, cut anywhere.
pub(super) fn pieces<'b>(
    body: &'b [u8],
    random: &mut Random,
) -> impl Iterator<Item = &'b [u8]> + use<'b> {
    let mut cut = |rest: &'b [u8]| rest.split_at(random.below(rest.len() as u64 + 1) as usize);
    let (first, rest) = cut(body);
    let (second, third) = cut(rest);
    [first, second, third].into_iter().filter(|piece| !piece.is_empty())
}
