//! Everything there is, and the passing of time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use picokube_core::manager::{Rate, Settings};
use picokube_core::time::Duration;

use crate::nodes::Nodes;
use crate::random::Random;
use crate::server::Server;
use crate::server::request::Request;
use crate::time::Timestamp;

use super::agenda::Agenda;
use super::boards::Boards;
use super::checks::{Checks, Leadership, Violation};
use super::clock::Moment;
use super::converge::Ending;
use super::deaths::Deaths;
use super::device::{Device, Start};
use super::election::Election;
use super::exchange::{Answer, Message};
use super::fault::Fault;
use super::memory::Memory;
use super::plan::{Plan, When};
use super::stage::Audience;
use super::stream::Piece;
use super::trace::{Actor, Trace};
use super::workload::namespace;

/// How long what has changed waits to be noticed by nodes and by the cluster itself.
const NOTICED_AFTER_MICROS: u64 = 1_000;

/// More than this does not happen within a second, unless somebody spins.
const MOST_A_SECOND: u32 = 50_000;
/// Nor that controllers send so many requests in all.
const MOST_REQUESTS: u64 = 20_000;

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What was violated, if anything.
    pub violation: Option<Violation>,
    /// What happened.
    pub trace: Trace,
    /// How long it took, in simulated time.
    pub lasted: Moment,
    /// From the end of all trouble until everything was as desired, in simulated time.
    pub converged_after: Option<Moment>,
    /// What was counted.
    pub counts: Counts,
    /// Faults that struck, by sort.
    pub struck: BTreeMap<&'static str, u64>,
    /// Changes of controllers that were judged, by what they did to which resource.
    pub judged: BTreeMap<(&'static str, &'static str), u64>,
    /// What the first controller could have died into.
    pub deaths: Deaths,
}

/// What a run counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests of controllers, those of watches not included.
    pub requests: u64,
    /// Everything that the first controller has sent: lists, watches and sources of bodies, too.
    pub sent: u64,
    /// Events that watches brought.
    pub events: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Boots of controllers.
    pub boots: u64,
}

/// Runs a plan. `keep` is how many lines of the trace are remembered.
pub fn run(plan: &Plan, keep: usize) -> Outcome {
    #[cfg(feature = "driver")]
    if let Some(shipping) = plan.shape.shipping {
        let mut world = World::new(plan, keep, Vec::new());
        world.boards = Some(Box::new(super::shipped::Shipped::new(plan, shipping)));
        world.live();
        return world.outcome();
    }
    let mut memories = memories(plan);
    let mut world = World::new(plan, keep, memories.iter_mut().collect());
    world.live();
    world.outcome()
}

/// Memory for each boot of a controller; a plan tells how many there can be.
pub(super) fn memories(plan: &Plan) -> Vec<Memory> {
    (0..plan.most_boots()).map(|_| Memory::new(&plan.shape)).collect()
}

/// Something that is going to happen.
pub(super) enum Happening {
    /// A user acts.
    Act(usize),
    /// A fault strikes.
    Strike(usize),
    /// A request reaches the server.
    Arrive(Box<Message>),
    /// An answer reaches a controller.
    Answer(Box<Answer>),
    /// Something reaches a controller over the connection of a watch.
    Stream(Box<Piece>),
    /// The server looks after a watch.
    LookAfterStream { device: usize, boot: u64, number: u64 },
    /// A controller has something to do.
    Wake { device: usize, boot: u64 },
    /// A controller starts.
    Boot { device: usize },
    /// A controller goes for good.
    SwitchOff { device: usize },
    /// Scheduler and kubelets have something to do.
    Nodes,
    /// The cluster itself has something to do.
    Cluster,
    /// The server's clock is right again.
    ClockIsRight,
    /// All trouble is over.
    Heal,
    /// Kubelets look at pods of which something is said that is not so.
    TellTheTruth,
    /// Is everything as desired?
    Look,
    /// By now somebody leads.
    SomebodyLeads,
}

/// The whole simulation.
pub(super) struct World<'m> {
    pub(super) plan: &'m Plan,
    pub(super) now: Moment,
    /// Draws what the plan does not say: delays, where bytes are cut into pieces.
    pub(super) random: Random,
    pub(super) server: Server,
    pub(super) nodes: Nodes,
    pub(super) devices: Vec<Option<Device<'m>>>,
    /// Controllers with the driver that is shipped, instead of those.
    pub(super) boards: Option<Box<dyn Boards>>,
    memories: Vec<&'m mut Memory>,
    switched_off: BTreeSet<usize>,
    pub(super) agenda: Agenda<Happening>,
    pub(super) trace: Trace,
    pub(super) checks: Checks,
    pub(super) leadership: Leadership,
    /// For how many seconds controllers stand still before their next writes.
    pub(super) freezes: VecDeque<u32>,
    /// When requests were given up that were under way.
    pub(super) given_up: BTreeMap<u64, Moment>,
    pub(super) violation: Option<Violation>,
    pub(super) ending: Ending,
    pub(super) counts: Counts,
    pub(super) struck: BTreeMap<&'static str, u64>,
    /// Numbers exchanges, connections and boots.
    serial: u64,
    /// The second that it is, and how much has happened in it.
    happened: (u64, u32),
    /// Everything up to this revision has been checked.
    cursor: u64,
    nodes_planned: Option<Moment>,
    cluster_planned: Option<Moment>,
    /// Faults that wait for the next request.
    pub(super) waiting: VecDeque<usize>,
    /// What becomes of the next things that users do.
    pub(super) user_fates: VecDeque<Fault>,
    /// Pods of which something is said that is not so.
    pub(super) misreported: BTreeSet<String>,
    pub(super) kubelets_held_until: Moment,
    /// How wrong the server's wall clock is, in milliseconds.
    pub(super) wrong_by_millis: i64,
    pub(super) server_down_until: Moment,
    pub(super) no_bookmarks_until: Moment,
    pub(super) old_lists_until: Moment,
    /// Revisions of the past, for lists that are old.
    pub(super) past: VecDeque<(Moment, u64)>,
    /// When all trouble was over.
    pub(super) healed_at: Option<Moment>,
    /// Those who watch from outside.
    pub(super) audience: Audience,
    pub(super) deaths: Deaths,
}

impl<'m> World<'m> {
    pub(super) fn new(plan: &'m Plan, keep: usize, memories: Vec<&'m mut Memory>) -> Self {
        let mut random = Random::from_seed(plan.seed);
        let mut server = plan.new_server(random.next_u64());
        let now = Moment::default();
        server.bootstrap(now.wall());
        for n in 1..plan.shape.namespaces {
            let body = format!(r#"{{"metadata":{{"name":"{}"}}}}"#, namespace(n));
            let request = Request::new(http::Method::POST, "/api/v1/namespaces")
                .with_body("application/json", body);
            server.handle(now.wall(), &request);
        }
        server.settle(now.wall());
        let nodes = Nodes::new(&server, plan.shape.nodes);
        let mut world = Self {
            plan,
            now,
            random,
            nodes,
            devices: Vec::new(),
            boards: None,
            memories,
            switched_off: BTreeSet::new(),
            agenda: Agenda::new(),
            trace: Trace::new(keep),
            checks: Checks::new(&server, plan),
            leadership: Leadership::default(),
            freezes: VecDeque::new(),
            given_up: BTreeMap::new(),
            violation: None,
            ending: Ending::default(),
            counts: Counts::default(),
            struck: BTreeMap::new(),
            serial: 0,
            happened: (0, 0),
            cursor: server.store().revision(),
            server,
            nodes_planned: None,
            cluster_planned: None,
            waiting: VecDeque::new(),
            user_fates: VecDeque::new(),
            misreported: BTreeSet::new(),
            kubelets_held_until: now,
            wrong_by_millis: 0,
            server_down_until: now,
            no_bookmarks_until: now,
            old_lists_until: now,
            past: VecDeque::new(),
            healed_at: None,
            audience: Audience::default(),
            deaths: Deaths::default(),
        };
        world.make_plans();
        world
    }

    fn make_plans(&mut self) {
        let plan = self.plan;
        for (index, action) in plan.actions.iter().enumerate() {
            if let When::At(at) = action.when {
                self.agenda.plan(at, Happening::Act(index));
            }
        }
        for (index, fault) in plan.faults.iter().enumerate() {
            if let When::At(at) = fault.when {
                self.agenda.plan(at, Happening::Strike(index));
            }
        }
        self.agenda.plan(Moment::default(), Happening::Nodes);
        for device in 0..plan.managers() {
            self.devices.push(None);
            self.agenda.plan(Moment::default(), Happening::Boot { device });
        }
        self.agenda.plan(plan.shape.horizon, Happening::Heal);
    }

    /// What it has come to.
    pub(super) fn outcome(self) -> Outcome {
        Outcome {
            violation: self.violation,
            trace: self.trace,
            lasted: self.now,
            converged_after: self.ending.converged_after(),
            counts: self.counts,
            struck: self.struck,
            judged: self.checks.judged(),
            deaths: self.deaths,
        }
    }

    /// Lets time pass until everything is over.
    fn live(&mut self) {
        while self.violation.is_none() && !self.ending.is_over() && self.take_step() {}
        if let Some(carried) = self.boards.as_ref().map(|boards| boards.carried()) {
            self.note(Actor::Cluster, format_args!("{carried}"));
        }
    }

    /// Lets the next thing happen, if there is one.
    pub(super) fn take_step(&mut self) -> bool {
        let planned = self.agenda.next_at();
        let inside = self.boards.as_ref().and_then(|boards| boards.next_at());
        if let Some(at) = inside.filter(|at| planned.is_none_or(|planned| *at < planned)) {
            self.now = self.now.max(at);
        } else {
            let Some((at, happening)) = self.agenda.next() else { return false };
            self.now = self.now.max(at);
            self.happen(happening);
        }
        let inside = self.with_boards(|boards, world| boards.go_on(world)).unwrap_or_default();
        let (second, happened) = &mut self.happened;
        *happened += 1 + inside as u32;
        if *second != self.now.as_micros() / 1_000_000 {
            self.happened = (self.now.as_micros() / 1_000_000, 0);
        } else if *happened > MOST_A_SECOND {
            let detail = format!("{happened} happenings within a second");
            self.violate("nobody spins", detail);
        }
        if self.counts.requests > MOST_REQUESTS {
            self.violate("nobody spins", format!("{MOST_REQUESTS} requests of controllers"));
        }
        true
    }

    /// Lets somebody act on controllers with the driver that is shipped, if there are any.
    pub(super) fn with_boards<T>(
        &mut self,
        act: impl FnOnce(&mut dyn Boards, &mut Self) -> T,
    ) -> Option<T> {
        let mut boards = self.boards.take()?;
        let result = act(&mut *boards, self);
        self.boards = Some(boards);
        Some(result)
    }

    pub(super) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Act(index) => self.act(index),
            Happening::Strike(index) => self.strike(index),
            Happening::Arrive(message) => self.arrive(*message),
            Happening::Answer(answer) => self.deliver(*answer),
            Happening::Stream(piece) => self.deliver_piece(*piece),
            Happening::LookAfterStream { device, boot, number } => {
                self.look_after_stream(device, boot, number);
            }
            Happening::Wake { device, boot } => self.wake(device, boot),
            Happening::Boot { device } => self.boot(device),
            Happening::SwitchOff { device } => self.switch_off(device),
            Happening::Nodes => self.poll_nodes(),
            Happening::Cluster => self.step_cluster(),
            Happening::ClockIsRight => self.set_clock(0),
            Happening::Heal => self.heal(),
            Happening::TellTheTruth => self.tell_the_truth(),
            Happening::Look => self.look(),
            Happening::SomebodyLeads => self.somebody_leads(),
        }
    }

    /// The server's wall clock.
    pub(super) fn wall(&self) -> Timestamp {
        self.now.wall().plus_millis(self.wrong_by_millis)
    }

    /// A number that was not used before.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(super) fn note(&mut self, actor: Actor, text: std::fmt::Arguments<'_>) {
        self.trace.note(self.now, actor, text);
    }

    /// A property does not hold.
    pub(super) fn violate(&mut self, property: &'static str, detail: String) {
        if self.violation.is_none() {
            self.note(Actor::Fault, format_args!("VIOLATION of {property}: {detail}"));
            self.violation = Some(Violation { property, detail, at: self.now });
        }
    }

    /// Somebody may have written: checks it, and lets everybody know who has to.
    pub(super) fn observe(&mut self, actor: Actor) {
        let newest = self.server.store().revision();
        if newest == self.cursor {
            return;
        }
        let found = self.checks.observe(&self.server, actor, self.cursor, self.now);
        self.cursor = newest;
        self.deaths.changed(found.lines.len());
        for line in found.lines {
            self.trace.note(self.now, actor, format_args!("{line}"));
        }
        if let Err((property, detail)) = found.verdict {
            self.violate(property, detail);
        }
        if self.past.back().is_none_or(|(at, _)| self.now.micros_since(*at) > 500_000) {
            self.past.push_back((self.now, newest));
            if self.past.len() > 200 {
                self.past.pop_front();
            }
        }
        let soon = self.now.plus_micros(NOTICED_AFTER_MICROS);
        self.plan_nodes(soon);
        if self.server.has_work() {
            self.plan_cluster(soon);
        }
        // Before anything can happen to the history.
        self.audience.feed(&self.server, self.now.wall());
        self.feed_streams();
    }

    pub(super) fn plan_nodes(&mut self, at: Moment) {
        if self.nodes_planned.is_none_or(|planned| at < planned) {
            self.nodes_planned = Some(at);
            self.agenda.plan(at, Happening::Nodes);
        }
    }

    fn plan_cluster(&mut self, at: Moment) {
        if self.cluster_planned.is_none_or(|planned| at < planned) {
            self.cluster_planned = Some(at);
            self.agenda.plan(at, Happening::Cluster);
        }
    }

    /// Kubelets have clocks of their own, which are right.
    fn poll_nodes(&mut self) {
        if self.nodes_planned.is_some_and(|planned| planned > self.now) {
            return;
        }
        self.nodes_planned = None;
        let held_until = self.server_down_until.max(self.kubelets_held_until);
        if held_until > self.now {
            return self.plan_nodes(held_until);
        }
        let more = self.nodes.poll(self.now.wall(), &mut self.server);
        self.observe(Actor::Nodes);
        let soon = self.now.plus_micros(NOTICED_AFTER_MICROS);
        if more {
            self.plan_nodes(soon);
        } else if let Some(at) = self.nodes.poll_at() {
            self.plan_nodes(Moment::of_wall(at).max(soon));
        }
    }

    pub(super) fn step_cluster(&mut self) {
        if self.cluster_planned.is_some_and(|planned| planned > self.now) {
            return;
        }
        self.cluster_planned = None;
        self.server.settle(self.now.wall());
        self.observe(Actor::Cluster);
        if let Some(at) = self.server.step_at() {
            let soon = self.now.plus_micros(NOTICED_AFTER_MICROS);
            self.plan_cluster(Moment::of_wall(at).max(soon));
        }
    }

    /// Starts a controller, unless it runs.
    fn boot(&mut self, device: usize) {
        let has_board = self.boards.as_ref().is_some_and(|boards| boards.runs(device));
        let is_there = self.devices[device].is_some() || has_board;
        if is_there || self.switched_off.contains(&device) {
            return;
        }
        if self.memories.is_empty() && self.boards.is_none() {
            return;
        }
        let shape = &self.plan.shape;
        let boot = self.next_serial();
        let election = self.plan.shape.election.as_ref();
        let own_rate = election.and_then(|election| election.clock_rates.get(device)).copied();
        let start = Start {
            number: device,
            boot,
            at: self.now,
            clock_rate: own_rate.unwrap_or(shape.clock_rate),
            lanes: shape.lanes,
            delay_micros: shape.delay_micros,
            settings: Settings {
                rate: self.rate_of(device),
                terminating_replicas: shape.terminating_replicas,
                max_unavailable_stateful_set: shape.max_unavailable_stateful_set,
                status_lag: Duration::from_millis(shape.status_lag_millis),
                leader_election: election.map(|_| Election::settings(device, boot)),
                ..Settings::DEFAULT
            },
            seed: self.plan.seed,
        };
        self.counts.boots += 1;
        self.checks.booted(device);
        self.leadership.forget(device);
        self.note(Actor::Controller(device), format_args!("boots"));
        if let Some(boards) = &mut self.boards {
            boards.boot(start, Memory::new(shape));
        } else if let Some(memory) = self.memories.pop() {
            self.devices[device] = Some(Device::new(&start, memory));
            self.pump(device);
        }
    }

    /// The rate limit of a controller. Of two at once, one may not know yet what the other does, and each
    /// puts right what the other says. A rate limit holds that up, or a status that waits; without either,
    /// two kube-controller-managers go on as fast as the network lets them, too. So who joins has one.
    fn rate_of(&self, device: usize) -> Option<Rate> {
        let shape = &self.plan.shape;
        let joins = device >= self.plan.managers();
        let is_held_up = shape.rate.is_some() || shape.status_lag_millis > 0;
        if joins && !is_held_up { Some(Rate::KUBERNETES) } else { shape.rate }
    }

    pub(super) fn switch_off(&mut self, device: usize) {
        self.switched_off.insert(device);
        let had_board = self.boards.as_mut().is_some_and(|boards| boards.stop(device));
        if self.devices[device].take().is_some() || had_board {
            self.note(Actor::Controller(device), format_args!("is switched off"));
            self.checks.died(device);
        }
    }

    /// A controller loses power; it is back after a while.
    pub(super) fn kill(&mut self, device: usize) {
        if self.devices[device].take().is_some() {
            self.has_died(device);
        }
    }

    /// A controller has lost power; it is back after a while.
    pub(super) fn has_died(&mut self, device: usize) {
        self.note(Actor::Controller(device), format_args!("dies"));
        self.checks.died(device);
        let back = self.now.plus_millis(100 + self.random.below(3_000));
        self.agenda.plan(back, Happening::Boot { device });
    }

    fn wake(&mut self, device: usize, boot: u64) {
        let now = self.now;
        let Some(running) = self.devices[device].as_mut().filter(|running| running.boot == boot)
        else {
            return;
        };
        if running.wakes_at.is_some_and(|at| at <= now) {
            running.wakes_at = None;
            self.pump(device);
        }
    }

    pub(super) fn set_clock(&mut self, wrong_by_millis: i64) {
        self.wrong_by_millis = wrong_by_millis;
        self.note(Actor::Fault, format_args!("the server's clock shows {}", self.wall()));
        self.feed_streams();
    }
}
