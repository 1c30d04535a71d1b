//! A simulation whose users are somebody else: they ask the server what they like, watch what
//! comes of it, and decide when time passes. Controllers, network and faults are those of any run.

use crate::server::Server;
use crate::server::request::Request;
use crate::server::response::{Body, CHUNK_BYTES, Response};
use crate::server::watch::{Watch, WatchState};
use crate::time::Timestamp;

use super::clock::Moment;
use super::device::Stream;
use super::plan::Plan;
use super::trace::Actor;
use super::world::{Outcome, World, memories};

/// What is sent longer than this before it arrives is held up.
const HELD_UP_MICROS: u64 = 100_000;

/// A simulation for somebody to act in.
pub struct Stage<'m> {
    world: World<'m>,
}

/// Tells one watch from outside from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spectator(usize);

/// Sets a stage, lets `play` act on it, and tells what it came to. `keep` is how many lines of the
/// trace are remembered.
pub fn stage<T>(plan: &Plan, keep: usize, play: impl FnOnce(&mut Stage<'_>) -> T) -> (T, Outcome) {
    let mut memories = memories(plan);
    let mut stage = Stage { world: World::new(plan, keep, memories.iter_mut().collect()) };
    let played = play(&mut stage);
    (played, stage.world.outcome())
}

impl Stage<'_> {
    /// The moment that it is.
    pub fn now(&self) -> Moment {
        self.world.now
    }

    /// When something happens next, unless somebody asks for something before; nothing does
    /// any more once a property was violated.
    pub fn next_at(&self) -> Option<Moment> {
        let goes_on = self.world.violation.is_none();
        self.world.agenda.next_at().filter(|_| goes_on)
    }

    /// Whether a property was violated.
    pub fn is_violated(&self) -> bool {
        self.world.violation.is_some()
    }

    /// Lets everything happen that is due until then.
    pub fn pass_until(&mut self, moment: Moment) {
        while self.next_at().is_some_and(|at| at <= moment) && self.world.take_step() {}
        self.world.now = self.world.now.max(moment);
    }

    /// Asks the server for something, over a network that never fails. A watch is not answered but
    /// [begun](Self::watch).
    pub fn ask(&mut self, request: &Request) -> Response {
        let response = self.world.server.handle(self.world.now.wall(), request);
        if request.method != http::Method::GET {
            let (method, path) = (&request.method, &request.path);
            self.world.note(Actor::User, format_args!("{method} {path}: {}", response.status));
            self.world.observe(Actor::User);
        }
        response
    }

    /// Begins a watch, if that is what is asked for.
    pub fn watch(&mut self, request: &Request) -> Option<Spectator> {
        let response = self.world.server.handle(self.world.now.wall(), request);
        let Body::Watch(watch) = response.body else { return None };
        let audience = &mut self.world.audience;
        audience.0.push(Seat { watch, told: Vec::new(), is_over: false });
        audience.feed(&self.world.server, self.world.now.wall());
        Some(Spectator(audience.0.len() - 1))
    }

    /// What a watch has brought since the last time; nothing any more once it is over.
    pub fn told(&mut self, spectator: Spectator) -> Option<Vec<u8>> {
        let seat = self.world.audience.0.get_mut(spectator.0)?;
        (!seat.is_over || !seat.told.is_empty()).then(|| std::mem::take(&mut seat.told))
    }

    /// Whether the controllers run and know what there is: nobody is dead or frozen, no watch is
    /// closed or held up.
    pub fn is_calm(&self) -> bool {
        let now = self.world.now;
        let is_open = |stream: &Option<Stream>| {
            stream.as_ref().is_some_and(|stream| {
                let held_up = stream.last_delivery.micros_since(now) > HELD_UP_MICROS;
                stream.watch.is_some() && stream.stalled_until <= now && !held_up
            })
        };
        self.world.devices.iter().all(|device| {
            device
                .as_ref()
                .is_some_and(|device| device.frozen_until <= now && device.streams().all(is_open))
        })
    }

    /// What the controllers know must be what there is, once everything has come to rest.
    pub fn check_rest(&mut self) {
        if let Err((property, detail)) = self.world.cache_is_right() {
            self.world.violate(property, detail);
        }
    }
}

/// Those who watch from outside.
#[derive(Debug, Default)]
pub(super) struct Audience(Vec<Seat>);

#[derive(Debug)]
struct Seat {
    watch: Box<Watch>,
    told: Vec<u8>,
    is_over: bool,
}

impl Audience {
    /// Tells everybody what is new.
    pub(super) fn feed(&mut self, server: &Server, wall: Timestamp) {
        for seat in self.0.iter_mut().filter(|seat| !seat.is_over) {
            let most = seat.told.len() + CHUNK_BYTES * 16;
            seat.is_over =
                seat.watch.fill(server.store(), wall, &mut seat.told, most) == WatchState::Ended;
        }
    }
}
