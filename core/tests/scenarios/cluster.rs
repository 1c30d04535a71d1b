//! A manager and a server joined by a network that is a queue, with a kubelet beside them.
//!
//! Real bytes go through the real machines. Time is virtual; where two things could happen in
//! either order, a seed decides.

use std::collections::BTreeMap;

use picokube_core::kind::Kind;
use picokube_core::manager::{
    Body, Failure, Manager, Request, ResponseHead, Settings, Workspace, WorkspaceParts,
};
use picokube_core::resources;
use picokube_core::resources::Parts;
use picokube_core::splice::{SpliceError, Splicer};
use picokube_core::time::{Duration, Instant, Timestamp};
use picokube_core::watch::{Command, Input, RequestId};
use serde_json::{Value, json};

use crate::server::{Answer, Server, status};

pub(crate) type Memory = resources! { pods: 200, replica_sets: 40, deployments: 10 };
pub(crate) type Space = Workspace<4, 3, 64>;

/// What the server knows.
const KINDS: &[Kind] = &[
    Kind::Pod,
    Kind::ReplicaSet,
    Kind::Deployment,
    #[cfg(feature = "replication-controller")]
    Kind::ReplicationController,
    #[cfg(feature = "statefulset")]
    Kind::StatefulSet,
    #[cfg(feature = "statefulset")]
    Kind::ControllerRevision,
    #[cfg(feature = "statefulset")]
    Kind::PersistentVolumeClaim,
];

/// What may go wrong on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accident {
    /// The request does not reach the server.
    LostBefore,
    /// The answer does not come back.
    LostAfter,
    /// The request does not reach the server, but nobody can tell.
    Vanished,
    /// The source of its body is gone.
    SourceGone,
    /// The server answers with this code and reason, and does nothing.
    #[cfg(feature = "statefulset")]
    Refused(u16, &'static str),
    /// Somebody else has just deleted the object.
    #[cfg(feature = "statefulset")]
    Deleted,
    /// The manager is no more before the request is sent.
    #[cfg(feature = "statefulset")]
    CrashBefore,
    /// The manager is no more when the answer comes.
    #[cfg(feature = "statefulset")]
    CrashAfter,
}

pub(crate) struct Cluster<'a> {
    pub(crate) server: Server,
    pub(crate) manager: Manager<'a>,
    pub(crate) now: Instant,
    watches: [Option<(RequestId, u64)>; KINDS.len()],
    /// What is on the way to the watches.
    wires: [Wire; KINDS.len()],
    /// How long it takes until a watch is told of a change.
    pub(crate) lag: BTreeMap<Kind, Duration>,
    /// When the changes in the server's history were first seen.
    seen: Vec<Instant>,
    /// Requests under way, with the answers that the server has given.
    open: Vec<Open>,
    rng: u64,
    /// Requests sent, by verb; reads of sources included.
    pub(crate) requests: BTreeMap<String, usize>,
    /// Applied to the next request whose target contains the text.
    pub(crate) accident: Option<(String, Accident)>,
    /// Requests of the controllers, without those for events: method and target.
    pub(crate) sent: Vec<(String, String)>,
    /// Applied to the request of this number.
    pub(crate) accident_at: Option<(usize, Accident)>,
    /// Of so many requests one meets one of these accidents.
    pub(crate) storm: Option<(u32, &'static [Accident])>,
    /// The manager is no more.
    pub(crate) has_crashed: bool,
    /// Looks at every request before it reaches the server.
    pub(crate) inspect: Option<fn(&Server, &Request)>,
    /// So long the server answers every request with 429 and this `Retry-After`.
    pub(crate) busy_for: Option<Duration>,
    pub(crate) retry_after: u32,
    /// The server does not show objects of this kind.
    pub(crate) hidden: Option<Kind>,
    /// Requests whose target has this in it are answered with 429 and `Retry-After: 60`.
    pub(crate) refused: Option<&'static str>,
}

/// What is on the way to a watch.
#[derive(Default)]
struct Wire {
    id: Option<RequestId>,
    bytes: Vec<u8>,
    /// Nothing follows.
    is_last: bool,
}

/// A request under way.
struct Open {
    request: Request,
    answer: Result<Answer, Failure>,
    /// What of the answer's body is still to come, once its head has.
    rest: Option<Vec<u8>>,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(memory: &'a mut Memory, space: &'a mut Space, seed: u64) -> Self {
        let settings = Settings { rate: None, ..Settings::DEFAULT };
        Self::with(memory, space, seed, settings)
    }

    pub(crate) fn with(
        memory: &'a mut Memory,
        space: &'a mut Space,
        seed: u64,
        settings: Settings,
    ) -> Self {
        Self::of(memory.parts(), space, seed, settings)
    }

    /// A cluster whose manager has this memory.
    pub(crate) fn of(
        parts: Parts<'a>,
        space: &'a mut Space,
        seed: u64,
        settings: Settings,
    ) -> Self {
        Self::in_space(parts, space.parts(), seed, settings)
    }

    /// A cluster whose manager has this memory, and this to work with.
    pub(crate) fn in_space(
        parts: Parts<'a>,
        space: WorkspaceParts<'a>,
        seed: u64,
        settings: Settings,
    ) -> Self {
        Self {
            server: Server::new(),
            manager: Manager::new(parts, space, settings, seed),
            now: Instant::from_micros(1),
            watches: [None; KINDS.len()],
            wires: Default::default(),
            lag: BTreeMap::new(),
            seen: vec![],
            open: vec![],
            rng: seed,
            requests: BTreeMap::new(),
            accident: None,
            sent: vec![],
            accident_at: None,
            storm: None,
            has_crashed: false,
            inspect: None,
            busy_for: None,
            retry_after: 2,
            hidden: None,
            refused: None,
        }
    }

    fn random(&mut self) -> u32 {
        self.rng = self.rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (self.rng >> 32) as u32
    }

    /// Lets everything happen that happens without the kubelet and within `patience`.
    pub(crate) fn run(&mut self, patience: Duration) {
        let end = self.now + patience;
        for _ in 0..1_000_000 {
            if self.step() {
                continue;
            }
            let next = self.manager.poll_at().into_iter().chain(self.next_news()).min();
            match next {
                Some(at) if at <= end && !self.has_crashed => self.advance(at.since(self.now)),
                _ => return,
            }
        }
        panic!("never comes to rest");
    }

    /// When a watch is told of something next.
    fn next_news(&self) -> Option<Instant> {
        let news = (0..KINDS.len()).filter_map(|which| Some(self.news(which)?.1));
        news.filter(|at| *at > self.now).min()
    }

    /// Quiet for a quarter of a second.
    pub(crate) fn settle(&mut self) {
        self.run(Duration::from_millis(250));
    }

    pub(crate) fn advance(&mut self, span: Duration) {
        // Half a millisecond at least: nothing is due twice at the same time.
        self.now = self.now + span.max(Duration::from_micros(500));
        let elapsed = self.now.as_micros() / 1_000_000;
        self.server.now = 1_800_000_000 + elapsed as i64;
    }

    /// One thing that can happen now.
    pub(crate) fn step(&mut self) -> bool {
        if self.has_crashed {
            return false;
        }
        let random = self.random();
        // Either order of an answer and the watch's news of the same write is possible.
        let first = random.is_multiple_of(2);
        (first && self.answer()) || self.watch() || self.bytes() || self.send() || self.answer()
    }

    /// Goes on until such a request has been sent, and takes it out of the server's hands.
    pub(crate) fn until_sent(&mut self, is_it: impl Fn(&Request) -> bool) -> Request {
        for _ in 0..10_000 {
            if let Some(at) = self.open.iter().position(|open| is_it(&open.request)) {
                let request = self.open.remove(at).request;
                // Nothing else is on its way.
                while self.bytes() || self.answer() {}
                return request;
            }
            if !self.step() {
                self.advance(Duration::from_millis(1));
            }
        }
        panic!("no such request");
    }

    /// Answers a request that was taken out of the server's hands, with an object as it is now.
    pub(crate) fn answer_of_now(&mut self, request: &Request, plural: &str, name: &str) {
        let (ticket, now) = (request.ticket, self.now);
        let object = self.server.get(plural, name).expect("an object").to_string();
        self.manager.response_head(ticket, now, ResponseHead::of_status(200));
        let taken = self.manager.response_body(ticket, now, object.as_bytes());
        assert_eq!(taken, object.len(), "nothing else is being read");
        self.manager.response_end(ticket, now, Ok(()));
    }

    /// The open request of a watch.
    pub(crate) fn watch_id(&self, kind: Kind) -> Option<RequestId> {
        let at = KINDS.iter().position(|it| *it == kind)?;
        self.watches[at].map(|(id, _)| id)
    }

    fn send(&mut self) -> bool {
        if self.open.len() >= 6 {
            return false;
        }
        let Some(request) = self.manager.poll(self.now) else { return false };
        *self.requests.entry(request.method.name().into()).or_default() += 1;
        let accident = match &self.accident {
            Some((text, accident)) if request.target.contains(text.as_str()) => Some(*accident),
            _ => None,
        };
        if accident.is_some() {
            self.accident = None;
        }
        let accident = self.count(&request).or(accident);
        let is_busy = |span: Duration| self.now.since(Instant::ZERO) < span;
        let answer = match accident {
            _ if self.busy_for.is_some_and(is_busy) || self.refuses(&request) => {
                Ok(status(429, "TooManyRequests", "too many requests"))
            }
            Some(Accident::LostBefore) => Err(Failure::NotSent),
            Some(Accident::LostAfter) => self.serve(&request).and(Err(Failure::Ambiguous)),
            Some(Accident::Vanished) => Err(Failure::Ambiguous),
            Some(Accident::SourceGone) => Err(Failure::Source(404)),
            #[cfg(feature = "statefulset")]
            Some(Accident::Refused(code, reason)) => Ok(status(code, reason, "by accident")),
            #[cfg(feature = "statefulset")]
            Some(Accident::Deleted) => {
                self.server.expel_target(&request.target);
                self.serve(&request)
            }
            #[cfg(feature = "statefulset")]
            Some(Accident::CrashBefore) => {
                self.has_crashed = true;
                return true;
            }
            #[cfg(feature = "statefulset")]
            Some(Accident::CrashAfter) => {
                let _ = self.serve(&request);
                self.has_crashed = true;
                return true;
            }
            None => self.serve(&request),
        };
        self.open.push(Open { request, answer, rest: None });
        true
    }

    /// Counts a request, and tells what happens to it.
    fn count(&mut self, request: &Request) -> Option<Accident> {
        if request.target.contains("/events") {
            return None;
        }
        let number = self.sent.len();
        self.sent.push((request.method.name().into(), request.target.as_str().into()));
        let random = self.random();
        let storm = self.storm.filter(|(one_of, _)| random.is_multiple_of(*one_of));
        let by_chance = storm.map(|(one_of, any)| any[(random / one_of) as usize % any.len()]);
        let at = self.accident_at.filter(|(at, _)| *at == number);
        at.map(|(_, accident)| accident).or(by_chance)
    }

    fn refuses(&self, request: &Request) -> bool {
        self.refused.is_some_and(|part| request.target.contains(part))
    }

    fn serve(&mut self, request: &Request) -> Result<Answer, Failure> {
        let body = match &request.body {
            Body::Empty => None,
            Body::Document => {
                let mut text = String::new();
                let written = self.manager.write_body(request.ticket, &mut text);
                written.map_err(|_| Failure::NotSent)?;
                Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
            }
            Body::Splice(splice) => Some(self.splice(&mut Splicer::new(splice))?),
        };
        if let Some(inspect) = self.inspect {
            inspect(&self.server, request);
        }
        let (method, kind) = (request.method.name(), request.content_type.name());
        Ok(self.server.request(method, &request.target, kind, body))
    }

    fn splice(&mut self, splicer: &mut Splicer) -> Result<Value, Failure> {
        let spoilt = |error| match error {
            SpliceError::Changed => Failure::SourceChanged,
            SpliceError::Malformed | SpliceError::TooLarge => Failure::NotSent,
        };
        let mut out = Vec::new();
        let mut window = [0; 100];
        while let Some(source) = splicer.source().cloned() {
            *self.requests.entry("GET".into()).or_default() += 1;
            let (code, object) = self.server.request("GET", &source, "", None);
            if code != 200 {
                return Err(Failure::Source(code));
            }
            let bytes = object.to_string().into_bytes();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let len = splicer.push(&mut rest, &mut window).map_err(spoilt)?;
                out.extend_from_slice(&window[..len]);
            }
            splicer.end_of_source().map_err(spoilt)?;
        }
        while let Some(len) = splicer.finish(&mut window).map_err(spoilt)? {
            out.extend_from_slice(&window[..len]);
        }
        Ok(serde_json::from_slice(&out).unwrap())
    }

    /// One of the open requests is answered, or a piece of an answer comes.
    fn answer(&mut self) -> bool {
        let from = self.random() as usize;
        let open = self.open.len();
        (0..open).any(|at| self.answer_at((from + at) % open))
    }

    fn answer_at(&mut self, at: usize) -> bool {
        let size = self.random() as usize;
        let refuses = self.refuses(&self.open[at].request);
        let Open { request, answer, rest } = &mut self.open[at];
        let ticket = request.ticket;
        if let (Ok((code, object)), None) = (&*answer, &*rest) {
            let seconds = if refuses { 60 } else { self.retry_after };
            let retry_after = (*code == 429).then_some(seconds);
            let date = Some(Timestamp::from_secs(self.server.now));
            let head = ResponseHead { status: *code, date, retry_after };
            self.manager.response_head(ticket, self.now, head);
            *rest = Some(object.to_string().into_bytes());
        }
        let rest = rest.get_or_insert_default();
        if !rest.is_empty() {
            let piece = &rest[..rest.len().min(1 + size % 4_000)];
            let taken = self.manager.response_body(ticket, self.now, piece);
            rest.drain(..taken);
            return taken > 0;
        }
        let Open { answer, .. } = self.open.remove(at);
        self.manager.response_end(ticket, self.now, answer.map(drop));
        true
    }

    /// A piece of what is on its way to a watch comes.
    fn bytes(&mut self) -> bool {
        let from = self.random() as usize;
        (0..KINDS.len()).any(|at| self.bytes_of((from + at) % KINDS.len()))
    }

    fn bytes_of(&mut self, which: usize) -> bool {
        let size = self.random() as usize;
        let Some(id) = self.wires[which].id else { return false };
        let bytes = std::mem::take(&mut self.wires[which].bytes);
        if bytes.is_empty() {
            let is_last = std::mem::take(&mut self.wires[which].is_last);
            if is_last {
                self.feed(which, id, Input::End);
            }
            return is_last;
        }
        let piece = &bytes[..bytes.len().min(1 + size % 4_000)];
        let taken = self.feed(which, id, Input::Body(piece));
        self.wires[which].bytes = bytes[taken..].to_vec();
        taken > 0
    }

    fn watch(&mut self) -> bool {
        let mut happened = false;
        for (which, kind) in KINDS.iter().enumerate() {
            happened |= match self.hidden == Some(*kind) {
                true => self.refuse_watch(*kind),
                false => self.watch_kind(which),
            };
        }
        happened
    }

    /// This server does not show such objects.
    fn refuse_watch(&mut self, kind: Kind) -> bool {
        let Some(Command::Send(request)) = self.manager.poll_watch(kind, self.now) else {
            return false;
        };
        let id = request.id();
        for input in [Input::Head(ResponseHead::of_status(403)), Input::End] {
            self.manager.handle_watch(kind, self.now, id, input);
        }
        true
    }

    fn watch_kind(&mut self, which: usize) -> bool {
        let random = self.random();
        let (kind, plural) = (KINDS[which], KINDS[which].info().plural);
        // More may happen while something is on its way.
        if random.is_multiple_of(4) && self.bytes_of(which) {
            return true;
        }
        match self.manager.poll_watch(kind, self.now) {
            Some(Command::Close(_)) => {
                self.watches[which] = None;
                self.wires[which] = Wire::default();
            }
            Some(Command::Send(request)) => {
                let (id, path) = (request.id(), request.to_string());
                self.wires[which] = Wire { id: Some(id), ..Wire::default() };
                let date = Some(Timestamp::from_secs(self.server.now));
                let head = ResponseHead { date, ..ResponseHead::of_status(200) };
                self.feed(which, id, Input::Head(head));
                let version = self.server.version;
                if path.contains("watch=true") {
                    let from = path.split("resourceVersion=").nth(1).unwrap();
                    let from = from.split('&').next().unwrap().parse().unwrap();
                    self.watches[which] = Some((id, from));
                } else {
                    let items: Vec<_> = self.server.of(plural).cloned().collect();
                    let list = json!({"kind": "List", "items": items,
                        "metadata": {"resourceVersion": version.to_string()}});
                    let wire = &mut self.wires[which];
                    wire.bytes = list.to_string().into_bytes();
                    wire.is_last = true;
                }
            }
            None => return self.tell(which),
        }
        true
    }

    /// Tells a watch what it has not heard of yet, all at once or one by one.
    fn tell(&mut self, which: usize) -> bool {
        self.seen.resize(self.server.history.len(), self.now);
        let Some((id, _)) = self.watches[which] else { return false };
        let Some((index, _)) = self.news(which).filter(|(_, due)| *due <= self.now) else {
            return false;
        };
        let (at, _, change, object) = &self.server.history[index];
        let (at, event) = (*at, json!({"type": change, "object": object}).to_string());
        self.watches[which] = Some((id, at));
        let wire = &mut self.wires[which].bytes;
        wire.extend_from_slice(event.as_bytes());
        wire.push(b'\n');
        true
    }

    /// The next change that a watch has not heard of, and when it will.
    fn news(&self, which: usize) -> Option<(usize, Instant)> {
        let (_, told) = self.watches[which]?;
        let kind = KINDS[which];
        let mut history = self.server.history.iter();
        let index =
            history.position(|(at, plural, ..)| *at > told && plural == kind.info().plural)?;
        let seen = self.seen.get(index).copied().unwrap_or(self.now);
        Some((index, seen + self.lag.get(&kind).copied().unwrap_or(Duration::ZERO)))
    }

    fn feed(&mut self, which: usize, id: RequestId, input: Input<'_>) -> usize {
        self.manager.handle_watch(KINDS[which], self.now, id, input)
    }
}

/// Plays a scenario with several seeds.
pub(crate) fn with_cluster(scenario: impl Fn(&mut Cluster<'_>)) {
    with_settings(Settings { rate: None, ..Settings::DEFAULT }, scenario);
}

/// As [`with_cluster`], with a manager of these settings.
pub(crate) fn with_settings(settings: Settings, scenario: impl Fn(&mut Cluster<'_>)) {
    for seed in 1..6 {
        let mut memory = Box::new(Memory::new());
        let mut space = Box::new(Space::new());
        let mut cluster = Cluster::with(&mut memory, &mut space, seed, settings);
        scenario(&mut cluster);
    }
}
