//! The driver that is shipped, inside the simulation.
//!
//! Controllers are made of the core and of the driver with all its tasks, buffers, time-outs and
//! back-off, as on a board; their server is hyper, set up as the real one, in front of the simulated
//! cluster. Between them is a network of ours ([`net`]), which carries bytes. All of it runs in one
//! thread ([`executor`]) and in virtual time: embassy's clock is the board's, or the server's for hyper
//! ([`picokube_clock`]).
//!
//! HTTP/2 goes without TLS: of the driver, only its tie to TLS takes no part.

mod attempts;
mod board;
mod executor;
mod lab;
mod net;
mod service;
mod streams;
mod strike;
mod watches;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use picokube_core::time::Instant;

use crate::api::status::Status;
use crate::random::Random;
use crate::server::response::{Body, Response};
use crate::time::Timestamp;

use super::boards::{Boards, Seen};
use super::checks::Basis;
use super::clock::{DeviceClock, Moment};
use super::device::{KINDS, Start};
use super::election::is_of_election;
use super::fault::{Fault, refusal};
use super::memory::Memory;
use super::plan::{Plan, Shipping};
use super::trace::Actor;
use super::world::World;

use attempts::Attempts;
use board::Probe;
use executor::Executor;
pub use lab::{Lab, LabListener, LabSocket};
use net::{Manners, Net, Parting};
use service::{AnswerBody, Call, Calls};
use streams::Stack;
use watches::OpenWatch;

/// So often nobody has to go on at one moment, unless somebody spins.
const MOST_AT_ONCE: usize = 50_000;

/// So many connections nobody begins within a second, unless somebody spins.
const MOST_KNOCKS: u32 = 200;

const TOKEN: &str = "every request carries the token";
const ONCE: &str = "what the server has carried out is sent once";

/// About how long the head of an answer is.
const HEAD_BYTES: usize = 250;

/// Boards, the network, and the server's end of it.
pub(super) struct Shipped {
    shipping: Shipping,
    net: Net,
    boards: BTreeMap<usize, Board>,
    server: Executor,
    calls: Calls,
    watches: Vec<OpenWatch>,
    /// Faults that wait for a request to arrive.
    fates: VecDeque<Fault>,
    /// Nobody listens before, and how those are treated who knock.
    listens_at: Option<Moment>,
    /// No token is accepted before.
    knows_at: Moment,
    attempts: Attempts,
    /// How far the server's clock was ahead, at most.
    ahead_millis: i64,
    random: Random,
    /// All kinds that are watched.
    kinds: usize,
}

/// A controller that runs.
struct Board {
    executor: Executor,
    clock: DeviceClock,
    frozen_until: Moment,
    probe: Rc<Probe>,
}

impl Shipped {
    pub(super) fn new(plan: &Plan, shipping: Shipping) -> Self {
        let mut random = Random::from_seed(plan.seed ^ 0xd41f_e400);
        let delay_micros = plan.shape.delay_micros;
        let Shipping { segment, window, .. } = shipping;
        let net = Net::new(random.next_u64(), Manners { delay_micros, segment, window });
        let mut shipped = Self {
            shipping,
            net,
            boards: BTreeMap::new(),
            server: Executor::default(),
            calls: Calls::default(),
            watches: Vec::new(),
            fates: VecDeque::new(),
            listens_at: None,
            knows_at: Moment::default(),
            ahead_millis: 0,
            attempts: Attempts::default(),
            random,
            kinds: plan.shape.watched().len(),
        };
        shipped.start_server();
        shipped
    }

    /// A new process of the server: nobody is connected.
    fn start_server(&mut self) {
        self.server = Executor::default();
        self.watches.clear();
        self.calls.borrow_mut().clear();
        let spawner = self.server.spawner();
        spawner.spawn(service::accept(self.net.clone(), spawner.clone(), self.calls.clone()));
    }

    /// A controller dies, of a fault.
    fn kill(&mut self, world: &mut World<'_>, device: usize) {
        if self.stop(device) {
            world.has_died(device);
        }
    }

    /// A request has arrived as a whole.
    fn answer(&mut self, world: &mut World<'_>, call: Call) {
        let Call { device, connection, mut request, attempt, reply } = call;
        let actor = Actor::Controller(device);
        let kind = watches::kind_of(&request);
        let fate = self.fates.pop_front();
        if let Some(fault) = fate {
            world.struck(fault);
        }
        let is_write = request.method != http::Method::GET && !is_of_election(&request.path);
        if kind.is_some() {
            if let Err((property, detail)) = world.checks.opens(&watches::target(&request)) {
                world.violate(property, detail);
            }
            if world.old_lists_until > world.now {
                world.ask_for_old_list(&mut request);
            }
        } else {
            world.counts.requests += 1;
        }
        world.counts.sent += 1;
        let basis = Basis::of_anything(world.server.store().revision(), self.latest(world));
        world.checks.arrives_unknown(basis);
        let before = world.server.store().revision();
        let mut response = match fate {
            Some(Fault::Refuse(status)) => refusal(status, &mut self.random),
            _ if attempt.is_none() || self.knows_at > world.now => Status::unauthorized().into(),
            _ => world.server.handle(world.wall(), &request),
        };
        let (method, path, query) = (&request.method, &request.path, &request.query);
        let status = response.status;
        world.note(actor, format_args!("is answered {status}: {method} {path}?{query}"));
        let is_repeated = attempt.is_some_and(|it| self.attempts.arrives(it));
        if attempt.is_none() {
            world.violate(TOKEN, format!("{method} {path}"));
        } else if is_repeated && request.method != http::Method::GET {
            world.violate(ONCE, format!("{method} {path} is sent again by the driver itself"));
        }
        if is_write {
            world.ending.wrote(world.now);
        }
        if is_write && status < 300 {
            let changed = world.server.store().revision() != before;
            if let Err((property, detail)) = world.checks.wrote(&request, changed) {
                world.violate(property, detail);
            }
        }
        world.observe(actor);
        if let Some(Fault::FailAfter(status)) = fate {
            response = refusal(status, &mut self.random);
        }
        response.headers.push(("date", world.wall().to_http_date()));
        let body = std::mem::replace(&mut response.body, Body::Whole(bytes::Bytes::new()));
        let body = self.body_of(world, &response, body, device, connection, kind);
        self.seal_fate(world, fate, device, connection, &body);
        reply.give(response.to_http(body));
    }

    /// The latest that a controller may take the time to be: by any `Date` that there was, and by the
    /// fastest clock.
    fn latest(&mut self, world: &World<'_>) -> Timestamp {
        let ahead = world.wall().millis_since(world.now.wall());
        self.ahead_millis = self.ahead_millis.max(ahead);
        let drift = world.now.as_micros() / 1000 / 10 + 1000;
        world.now.wall().plus_millis(self.ahead_millis + drift as i64)
    }

    fn body_of(
        &mut self,
        world: &World<'_>,
        response: &Response,
        body: Body,
        device: usize,
        connection: u64,
        kind: Option<usize>,
    ) -> AnswerBody {
        match body {
            Body::Whole(bytes) => AnswerBody::Whole(Some(bytes)),
            Body::List(list) => AnswerBody::List(list),
            Body::Watch(watch) => {
                debug_assert_eq!(response.status, 200);
                let pipe = Rc::new(RefCell::default());
                let kind = kind.unwrap_or_default();
                let open = OpenWatch::new(device, connection, kind, watch, &pipe, world.now);
                self.watches.push(open);
                AnswerBody::Watch(pipe)
            }
        }
    }
}

impl Boards for Shipped {
    fn next_at(&self) -> Option<Moment> {
        let boards = self.boards.values().filter_map(|board| {
            if board.frozen_until > Moment::default() {
                return Some(board.frozen_until);
            }
            let at = board.executor.next_at()?;
            Some(board.clock.when(Instant::from_micros(at)))
        });
        let server = self.server.next_at().map(Moment::from_micros);
        let watches = self.watches.iter().map(|watch| watch.looks_at);
        boards.chain(server).chain(watches).chain(self.net.next_at()).chain(self.listens_at).min()
    }

    fn go_on(&mut self, world: &mut World<'_>) -> usize {
        let now = world.now;
        self.listen_again(now);
        self.net.pass(now);
        let mut turns = 0;
        loop {
            let before = turns;
            for board in self.boards.values_mut() {
                if board.frozen_until > now {
                    continue;
                }
                board.frozen_until = Moment::default();
                let local = board.clock.at(now).as_micros();
                turns += board.executor.run(local, MOST_AT_ONCE);
            }
            for device in self.net.take_killed() {
                self.kill(world, device);
            }
            turns += self.server.run(now.as_micros(), MOST_AT_ONCE);
            loop {
                let Some(call) = self.calls.borrow_mut().pop_front() else { break };
                self.answer(world, call);
                turns += 1;
            }
            turns += self.feed(world);
            if turns == before || world.violation.is_some() {
                break;
            }
            if turns >= MOST_AT_ONCE {
                let detail = format!("{turns} turns at one moment");
                world.violate("nobody spins", detail);
            }
        }
        let knocks = self.net.most_knocks();
        if knocks > MOST_KNOCKS {
            world.violate("nobody spins", format!("{knocks} connections within a second"));
        }
        if self.are_connected() {
            world.ending.connected(now);
        }
        turns
    }

    fn runs(&self, device: usize) -> bool {
        self.boards.contains_key(&device)
    }

    fn boot(&mut self, start: Start, memory: Memory) {
        let Start { number, boot, at, clock_rate, lanes, settings, seed, .. } = start;
        let (executor, probe) = (Executor::default(), Rc::new(Probe::default()));
        executor.spawner().spawn(board::run(board::Parts {
            memory,
            settings,
            lanes,
            shipping: self.shipping,
            seed: seed ^ boot,
            stack: Stack { net: self.net.clone(), device: number },
            probe: probe.clone(),
            attempts: self.attempts.clone(),
        }));
        let clock = DeviceClock::new(at, clock_rate);
        let frozen_until = Moment::default();
        self.boards.insert(number, Board { executor, clock, frozen_until, probe });
    }

    fn stop(&mut self, device: usize) -> bool {
        // A program that ends resets its connections; a board whose power is cut says nothing.
        let is_silent = self.random.below(2) == 0;
        let parting = if is_silent { Parting::Silent } else { Parting::Usual };
        let board = self.boards.remove(&device);
        let was_there = board.is_some();
        self.net.parting(parting, || drop(board));
        was_there
    }

    fn strike(&mut self, world: &mut World<'_>, fault: Fault) {
        self.strike_boards(world, fault);
    }

    fn heal(&mut self, world: &mut World<'_>) {
        self.end_trouble(world);
    }

    fn are_connected(&self) -> bool {
        self.boards.keys().all(|device| {
            let open = self.watches.iter().filter(|watch| watch.device == *device);
            let mut kinds: Vec<usize> =
                open.filter(|watch| watch.is_open(&self.net)).map(|watch| watch.kind).collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds.len() == self.kinds
        })
    }

    fn left_open(&self) -> Option<String> {
        let open = |watch: &&OpenWatch| watch.is_open(&self.net);
        let mut open: Vec<(usize, usize)> =
            self.watches.iter().filter(open).map(|watch| (watch.device, watch.kind)).collect();
        open.sort_unstable();
        let twice = open.windows(2).find(|two| two[0] == two[1])?;
        let (device, kind) = twice[0];
        Some(format!("{:?} is watched twice by controller {device}", KINDS[kind]))
    }

    fn look_inside(&mut self, now: Moment) -> Vec<Seen> {
        let look = |board: &mut Board| {
            board.probe.ask();
            board.executor.run(board.clock.at(now).as_micros(), MOST_AT_ONCE);
            board.probe.take()
        };
        self.boards.values_mut().filter_map(look).collect()
    }

    fn carried(&self) -> String {
        let (bytes, hash) = self.net.carried();
        format!("{bytes} bytes were read from the network, {hash:016x}")
    }
}
