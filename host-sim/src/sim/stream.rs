//! Lists and watches: connections over which the server tells a controller what there is.

use std::collections::VecDeque;

use bytes::Bytes;
use picokube_core::kind::Kind;
use picokube_core::manager::{Failure, ResponseHead};
use picokube_core::time::Timestamp;
use picokube_core::watch::{Command, Input, RequestId};

use crate::server::request::Request as HttpRequest;
use crate::server::response::Body;
use crate::server::watch::WatchState;

use super::clock::Moment;
use super::device::{Device, KINDS, Stream};
use super::exchange::{Purpose, Reply, pieces};
use super::fault::{Fault, refusal};
use super::link::{GIVES_UP_AFTER_SECS, Way};
use super::plan::When;
use super::trace::Actor;
use super::world::{Happening, World};

/// Events that can be repeated.
const REMEMBERED: usize = 16;
/// On a slow link a long answer comes in segments of this size.
const SEGMENT: usize = 1024;

/// A connection of a watched kind that is being opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) kind: Kind,
    pub(super) number: u64,
}

/// Something that reaches a controller over such a connection.
pub(super) struct Piece {
    device: usize,
    boot: u64,
    kind: Kind,
    number: u64,
    content: Content,
}

impl Piece {
    /// Whether it was sent, rather than given up.
    pub(super) fn is_sent(&self) -> bool {
        !matches!(self.content, Content::GivenUp | Content::Refused)
    }
}

enum Content {
    Head {
        status: u16,
        retry_after: Option<u32>,
        date: Timestamp,
    },
    Bytes(Bytes),
    End,
    Cut,
    /// Nothing has come for so long that the connection is closed.
    GivenUp,
    Refused,
}

impl<'m> World<'m> {
    /// Does what the manager wants of its watches.
    pub(super) fn poll_streams(&mut self, device: &mut Device<'m>) {
        for kind in KINDS {
            loop {
                let local = device.local(self.now);
                let (id, target) = match device.manager.poll_watch(kind, local) {
                    Some(Command::Send(request)) => (request.id(), request.to_string()),
                    Some(Command::Close(id)) => {
                        let stream = device.stream_mut(kind);
                        if stream.as_ref().is_some_and(|stream| stream.id == id) {
                            *stream = None;
                        }
                        continue;
                    }
                    // The manager has done it already.
                    None => break,
                };
                if let Err((property, detail)) = self.checks.opens(&target) {
                    self.violate(property, detail);
                }
                let number = self.next_serial();
                *device.stream_mut(kind) = Some(Stream::opening(number, id));
                let http = HttpRequest::new(http::Method::GET, &target);
                self.send(device, http, Purpose::Stream(Opening { kind, number }));
            }
        }
    }

    /// The request of a stream came to nothing.
    pub(super) fn fail_opening(
        &mut self,
        device: usize,
        boot: u64,
        at: Moment,
        opening: Opening,
        failure: Failure,
    ) {
        let content = match failure {
            Failure::NotSent => Content::Refused,
            _ => Content::GivenUp,
        };
        let Opening { kind, number } = opening;
        self.agenda
            .plan(at, Happening::Stream(Box::new(Piece { device, boot, kind, number, content })));
    }

    /// A list or watch has reached the server.
    pub(super) fn answer_stream(
        &mut self,
        device: usize,
        boot: u64,
        sent: Moment,
        mut http: HttpRequest,
        opening: Opening,
        fate: Option<Fault>,
    ) {
        if self.old_lists_until > self.now {
            self.ask_for_old_list(&mut http);
        }
        let response = match fate {
            Some(Fault::Refuse(status) | Fault::FailAfter(status)) => {
                refusal(status, &mut self.random)
            }
            _ => self.server.handle(self.wall(), &http),
        };
        if fate == Some(Fault::KillAfterRequest) {
            return self.kill(device);
        }
        let late = match fate {
            Some(Fault::LateAnswer(seconds)) => u64::from(seconds),
            Some(Fault::LoseAnswer) => GIVES_UP_AFTER_SECS,
            _ => 0,
        };
        let (begins, at) = (self.now.plus_secs(late), sent.plus_secs(GIVES_UP_AFTER_SECS));
        if late > 0 && begins >= at {
            return self.fail_opening(device, boot, at, opening, Failure::Ambiguous);
        }
        let Some(mut running) =
            self.devices[device].take_if(|running| running.boot == boot && !running.dying)
        else {
            return;
        };
        let kind = opening.kind;
        let stream = running.stream_mut(kind).as_mut();
        if let Some(stream) = stream.filter(|it| it.number == opening.number) {
            // Nothing overtakes what is late.
            stream.last_delivery = stream.last_delivery.max(begins);
            self.begin_stream(&mut running, kind, response, fate);
        }
        self.devices[device] = Some(running);
    }

    fn begin_stream(
        &mut self,
        device: &mut Device<'m>,
        kind: Kind,
        mut response: crate::server::response::Response,
        fate: Option<Fault>,
    ) {
        let date = self.core_wall();
        let body = std::mem::replace(&mut response.body, Body::Whole(Bytes::new()));
        let (watch, rest) = match body {
            Body::Watch(watch) => (Some(watch), None),
            other => (None, Some(other)),
        };
        let reply = Reply::of(response, date);
        let head = Content::Head { status: reply.status, retry_after: reply.retry_after, date };
        self.send_piece(device, kind, head);
        if let Some(rest) = rest {
            let bytes = whole(rest);
            let cut = match fate {
                Some(Fault::CutAnswer(percent)) => Some(bytes.len() * usize::from(percent) / 100),
                _ => None,
            };
            let bytes = bytes.slice(..cut.unwrap_or(bytes.len()));
            for segment in bytes.chunks(SEGMENT.max(bytes.len() / 16 + 1)) {
                self.send_piece(device, kind, Content::Bytes(Bytes::copy_from_slice(segment)));
            }
            self.send_piece(device, kind, if cut.is_some() { Content::Cut } else { Content::End });
            return;
        }
        if let Some(stream) = device.stream_mut(kind) {
            stream.watch = watch;
            stream.cut_at = match fate {
                Some(Fault::CutAnswer(percent)) => Some(percent),
                _ => None,
            };
        }
        self.feed_stream(device, kind);
    }

    /// Any version will do, says the request: it gets an old one.
    pub(super) fn ask_for_old_list(&mut self, http: &mut HttpRequest) {
        let at_least = http.query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
        let Some(at_least) = at_least.and_then(|version| version.parse::<u64>().ok()) else {
            return;
        };
        if http.query.contains("watch=") {
            return;
        }
        let old = self.past.front().map_or(0, |(_, revision)| *revision).max(at_least);
        let query = format!("resourceVersion={old}&resourceVersionMatch=Exact");
        let exact = HttpRequest { query, ..http.clone() };
        if self.server.handle(self.wall(), &exact).status == 200 {
            self.note(Actor::Fault, format_args!("{} is listed as of {old}", http.path));
            *http = exact;
        }
    }

    /// Tells every watcher what is new.
    pub(super) fn feed_streams(&mut self) {
        for number in 0..self.devices.len() {
            let Some(mut device) = self.devices[number].take() else { continue };
            for kind in KINDS {
                self.feed_stream(&mut device, kind);
            }
            self.devices[number] = Some(device);
        }
    }

    pub(super) fn look_after_stream(&mut self, device: usize, boot: u64, number: u64) {
        let Some(mut running) = self.devices[device].take_if(|running| running.boot == boot) else {
            return;
        };
        for kind in KINDS {
            let stream = running.stream_mut(kind).as_mut();
            if let Some(stream) = stream.filter(|stream| stream.number == number) {
                stream.looks_at = None;
                self.feed_stream(&mut running, kind);
            }
        }
        self.devices[device] = Some(running);
    }

    fn feed_stream(&mut self, device: &mut Device<'m>, kind: Kind) {
        let (now, wall) = (self.now, self.wall());
        let (number, boot) = (device.number, device.boot);
        let Some(stream) = device.stream_mut(kind) else { return };
        let serial = stream.number;
        let Some(watch) = &mut stream.watch else { return };
        if stream.stalled_until > now {
            if stream.looks_at.is_none_or(|at| at > stream.stalled_until) {
                stream.looks_at = Some(stream.stalled_until);
                let look = Happening::LookAfterStream { device: number, boot, number: serial };
                self.agenda.plan(stream.stalled_until, look);
            }
            return;
        }
        let mut out = Vec::new();
        // However much was missed: nobody else wakes the server's end to tell the rest.
        let state = watch.fill(self.server.store(), wall, &mut out, usize::MAX);
        let pause = watch.wake_at().millis_since(wall).clamp(1, 3_600_000) as u64;
        let looks_at = now.plus_millis(pause);
        if stream.looks_at.is_none_or(|at| at <= now || looks_at < at) {
            stream.looks_at = Some(looks_at);
            let look = Happening::LookAfterStream { device: number, boot, number: serial };
            self.agenda.plan(looks_at, look);
        }
        let is_over = state == WatchState::Ended;
        if is_over {
            stream.watch = None;
        }
        for line in out.split_inclusive(|byte| *byte == b'\n') {
            self.send_event(device, kind, Bytes::copy_from_slice(line));
        }
        if is_over {
            self.send_piece(device, kind, Content::End);
        }
    }

    /// One event of a watch, and what may happen to it.
    fn send_event(&mut self, device: &mut Device<'m>, kind: Kind, line: Bytes) {
        let is_bookmark = line.starts_with(br#"{"type":"BOOKMARK""#);
        if is_bookmark && self.no_bookmarks_until > self.now {
            return;
        }
        let mut repeated = None;
        if !is_bookmark && device.number == 0 {
            self.counts.events += 1;
            repeated = self.strike_event(device, kind, When::Event(self.counts.events));
        }
        let Some(stream) = device.stream_mut(kind) else { return };
        if !is_bookmark {
            if stream.recent.len() == REMEMBERED {
                stream.recent.pop_front();
            }
            stream.recent.push_back(line.clone());
        }
        match stream.cut_at.take() {
            Some(percent) => {
                stream.watch = None;
                let cut = line.slice(..line.len() * usize::from(percent) / 100);
                self.send_piece(device, kind, Content::Bytes(cut));
                self.send_piece(device, kind, Content::Cut);
            }
            None => self.send_piece(device, kind, Content::Bytes(line)),
        }
        if let Some(count) = repeated {
            self.repeat_events(device, kind, usize::from(count));
        }
    }

    /// Sends the last events once more.
    pub(super) fn repeat_events(&mut self, device: &mut Device<'m>, kind: Kind, count: usize) {
        let Some(stream) = device.stream_mut(kind).as_ref().filter(|it| it.watch.is_some()) else {
            return;
        };
        let skipped = stream.recent.len().saturating_sub(count);
        let again: Vec<Bytes> = stream.recent.iter().skip(skipped).cloned().collect();
        for line in again {
            self.send_piece(device, kind, Content::Bytes(line));
        }
    }

    /// Ends a stream from the server's side, in good order or not.
    pub(super) fn close_stream(&mut self, device: &mut Device<'m>, kind: Kind, in_order: bool) {
        let Some(stream) = device.stream_mut(kind) else { return };
        if stream.watch.take().is_some() {
            self.send_piece(device, kind, if in_order { Content::End } else { Content::Cut });
        }
    }

    /// All streams of a controller are reset.
    pub(super) fn cut_streams(&mut self, device: &mut Device<'m>) {
        for kind in KINDS {
            if let Some(stream) = device.stream_mut(kind).take() {
                feed(device, kind, stream.id, self.now, Input::Cut);
            }
        }
    }

    fn send_piece(&mut self, device: &mut Device<'m>, kind: Kind, content: Content) {
        let bytes = match &content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Head { .. } => 200,
            Content::End | Content::Cut | Content::GivenUp | Content::Refused => 1,
        };
        let passage = device.link.pass(self.now, bytes, Way::FromServer, &mut self.random);
        let (number, boot) = (device.number, device.boot);
        let Some(stream) = device.stream_mut(kind) else { return };
        let (at, content) = match passage {
            Some(passage) => (passage.ends.max(stream.last_delivery), content),
            // Both sides give the connection up; what was sent is lost with it.
            None => {
                stream.watch = None;
                let at = self.now.plus_secs(GIVES_UP_AFTER_SECS);
                (at.max(stream.last_delivery), Content::GivenUp)
            }
        };
        stream.last_delivery = at;
        let piece = Piece { device: number, boot, kind, number: stream.number, content };
        self.agenda.plan(at, Happening::Stream(Box::new(piece)));
    }

    /// Something reaches a controller over the connection of a watch.
    pub(super) fn deliver_piece(&mut self, piece: Piece) {
        let Piece { device: number, boot, kind, number: serial, .. } = piece;
        let Some(device) = self.devices[number].as_mut().filter(|device| device.boot == boot)
        else {
            return;
        };
        if device.stands_still(self.now) {
            return device.held.push(Happening::Stream(Box::new(piece)));
        }
        let Some(id) =
            device.stream_mut(kind).as_ref().filter(|it| it.number == serial).map(|it| it.id)
        else {
            return;
        };
        let is_before =
            |waiting: &Happening| matches!(waiting, Happening::Stream(it) if it.number == serial);
        if device.waiting.iter().any(is_before) {
            return device.waiting.push(Happening::Stream(Box::new(piece)));
        }
        let mut is_over = false;
        match piece.content {
            Content::Head { status, retry_after, date } => {
                let head = ResponseHead { status, date: Some(date), retry_after };
                feed(device, kind, id, self.now, Input::Head(head));
                let date = crate::time::Timestamp::from_unix_millis(date.as_secs() * 1000);
                device.hear(self.now, date);
            }
            Content::Bytes(bytes) => {
                let mut taken = 0;
                let mut is_whole = true;
                for part in pieces(&bytes, &mut self.random) {
                    let taken_now = feed(device, kind, id, self.now, Input::Body(part));
                    taken += taken_now;
                    if taken_now < part.len() {
                        let content = Content::Bytes(bytes.slice(taken..));
                        let rest = Piece { content, ..piece };
                        device.waiting.push(Happening::Stream(Box::new(rest)));
                        is_whole = false;
                        break;
                    }
                }
                if is_whole && let Some(version) = device.note_told(kind, &bytes) {
                    self.checks.told(number, kind, version, false);
                }
            }
            end => {
                let input = match end {
                    Content::End => Input::End,
                    Content::Refused => Input::Refused,
                    _ => Input::Cut,
                };
                let is_end = matches!(input, Input::End);
                feed(device, kind, id, self.now, input);
                if is_end && let Some(version) = device.note_listed(kind) {
                    self.checks.told(number, kind, version, true);
                }
                is_over = true;
            }
        }
        if is_over {
            *device.stream_mut(kind) = None;
        }
        let is_open =
            |stream: &Option<Stream>| stream.as_ref().is_some_and(|it| it.watch.is_some());
        if device.streams().all(is_open) {
            self.ending.connected(self.now);
        }
        self.pump(number);
    }
}

impl Device<'_> {
    /// A piece of a list or an event was taken: how far an event has told the controller is remembered.
    fn note_told(&mut self, kind: Kind, bytes: &[u8]) -> Option<u64> {
        let is_event = bytes.starts_with(br#"{"type":""#);
        let version = version_in(bytes);
        if is_event {
            // One that was cut was not taken.
            let version = version.filter(|_| bytes.ends_with(b"\n"))?;
            self.told.set(kind, version);
            return Some(version);
        }
        if let Some(stream) = self.stream_mut(kind).as_mut().filter(|it| it.listed.is_none()) {
            stream.listed = version;
        }
        None
    }

    /// A list has been taken to its end: how far it has told the controller is remembered.
    fn note_listed(&mut self, kind: Kind) -> Option<u64> {
        let version = self.stream_mut(kind).as_ref()?.listed?;
        self.told.set(kind, version);
        Some(version)
    }
}

/// The first version in a document: that of a list, or of the object of an event.
pub(super) fn version_in(document: &[u8]) -> Option<u64> {
    let (_, rest) = std::str::from_utf8(document).ok()?.split_once("\"resourceVersion\":\"")?;
    rest.split('"').next()?.parse().ok()
}

impl Stream {
    fn opening(number: u64, id: RequestId) -> Self {
        Self {
            number,
            id,
            watch: None,
            last_delivery: Moment::default(),
            stalled_until: Moment::default(),
            cut_at: None,
            looks_at: None,
            recent: VecDeque::new(),
            listed: None,
        }
    }
}

/// How much of a body was taken.
fn feed(
    device: &mut Device<'_>,
    kind: Kind,
    id: RequestId,
    now: Moment,
    input: Input<'_>,
) -> usize {
    let local = device.local(now);
    device.manager.handle_watch(kind, local, id, input)
}

fn whole(body: Body) -> Bytes {
    crate::server::response::Response {
        body,
        ..crate::server::response::Response::json(200, Bytes::new())
    }
    .into_bytes()
}
