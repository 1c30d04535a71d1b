//! The whole: controllers over one cache, as a state machine without I/O.
//!
//! Read [`Manager`] first, then [`Request`]. A driver
//!
//! - runs one connection per watched [`Kind`]: [`Manager::poll_watch`] says what to send or
//!   close, [`Manager::handle_watch`] takes what comes back;
//! - runs some request connections: [`Manager::poll`] hands out requests as long as there is
//!   something to send, [`Manager::response_head`], [`response_body`](Manager::response_body) and
//!   [`response_end`](Manager::response_end) take the answers, in any order between tickets;
//! - calls `poll_watch` and `poll` again whenever something came in, and at
//!   [`Manager::poll_at`] at the latest.

mod answers;
mod client;
mod decoders;
mod dispatch;
mod exposition;
mod informers;
mod leading;
mod settings;
mod workspace;

pub use crate::control::Rate;
pub use crate::json::Escape;
pub use crate::limits::{ObjectName, TARGET, Target};
pub use crate::registry::{ControllerName, Enabled, UnknownController};
pub use crate::request::{Body, ContentType, Failure, Method, Request, ResponseHead, Ticket};
pub use crate::splice::{Make, Splice};
pub use settings::Settings;
pub use workspace::{Workspace, WorkspaceParts};

use crate::control::OrderedPod;
use crate::event::{About, Message, Recorder, Subject};
use crate::kind::{Info, Kind};
use crate::leader_election::Elector;
use crate::metrics::Metrics;
use crate::planted::{Bug, planted};
use crate::random::Random;
use crate::registry::Controllers;
use crate::resources::Parts;
use crate::store::Cache;
use crate::text::Name;
use crate::time::{Instant, Timestamp, WallClock};
use crate::watch::{self, Resource, Watch};
use crate::wire::{ResourceVersion, Uid};
use crate::zero::ZeroOption;

use client::ClientRequest;
use decoders::{ResponseBody, SharedDecoder};
use informers::Informers;
use workspace::{Lanes, Watches};

/// The controllers, their cache and their requests.
pub struct Manager<'a> {
    cache: Cache<'a>,
    controllers: Controllers<'a>,
    pods_in_order: &'a mut [OrderedPod],
    lanes: Lanes<'a>,
    recorder: &'a mut Recorder,
    /// The event at hand.
    event: ClientRequest,
    elector: &'a mut ZeroOption<Elector>,
    /// The request of the election at hand.
    election: ClientRequest,
    decoder: &'a mut SharedDecoder,
    watches: &'a mut Watches,
    settings: Settings,
    wall: WallClock,
    serial: u16,
    /// Counts requests, so that events get their turn.
    turn: u8,
    /// When `poll` was last called.
    polled_at: Instant,
    random: Random,
    /// Something waits for the rate limit until then.
    blocked_until: Option<Instant>,
    /// One bit per kind whose watch could not reach the server of late, or might have been refused if it had
    /// begun then.
    lost: u8,
    metrics: Metrics,
}

const _: () = assert!(Kind::COUNT <= u8::BITS as usize);

impl<'a> Manager<'a> {
    /// Controllers that have not begun; one without room for a single key does not run.
    ///
    /// The seed is a secret: whoever knows it can choose names that all fall into one bucket of the
    /// cache's indices. Jitter comes of it, too, so that no two devices act in step.
    pub fn new(
        parts: Parts<'a>,
        workspace: WorkspaceParts<'a>,
        settings: Settings,
        seed: u64,
    ) -> Self {
        let Parts { cache, controllers, pods_in_order } = parts;
        let WorkspaceParts { lanes, workers, recorder, decoder, watches, elector } = workspace;
        *elector = ZeroOption::None;
        if let Some(settings) = settings.leader_election {
            leading::stand_for_election(elector, settings);
        }
        cache.texts.seed(seed);
        let has_room = |controller: ControllerName| cache.capacity(controller.info().key) > 0;
        let controllers_with_room = settings.controllers.filter(has_room);
        let settings = Settings { controllers: controllers_with_room, ..settings };
        let Settings { namespaces, label_selector, resync, .. } = settings;
        let namespace = match namespaces {
            [only] => Some(*only),
            _ => None,
        };
        for (watch, kind) in watches.iter_mut().zip(Kind::ALL) {
            let Info { api, plural, .. } = *kind.info();
            let resource = Resource { api, plural, namespace, label_selector };
            *watch = ZeroOption::Some(Watch::new(resource, resync));
        }
        Self {
            cache,
            controllers: Controllers::start(controllers, workers),
            pods_in_order,
            lanes,
            recorder,
            event: ClientRequest::NONE,
            elector,
            election: ClientRequest::NONE,
            decoder,
            watches,
            settings,
            wall: WallClock::new(),
            serial: 0,
            turn: 0,
            polled_at: Instant::ZERO,
            random: Random::new(seed as u32 ^ (seed >> 32) as u32),
            blocked_until: None,
            lost: 0,
            metrics: Metrics::ZERO,
        }
    }

    /// The next thing to do for the watch of a kind, if any. To be called until it returns
    /// `None`.
    pub fn poll_watch(&mut self, kind: Kind, now: Instant) -> Option<watch::Command<'_>> {
        if !self.watches(kind) {
            return None;
        }
        let wants_relist = self.cache.take_relist_wish(kind);
        let watch = self.watch_mut(kind)?;
        if wants_relist {
            watch.want_relist();
        }
        if watch.take_resync(now) {
            self.resync(kind);
        }
        let random = self.random.draw();
        self.watch_mut(kind)?.poll(now, random)
    }

    /// Takes in what came back for a request of a watch.
    ///
    /// Returns how many bytes of an [`Input::Body`](watch::Input::Body) were taken: not all if the decoder
    /// is in the midst of something else, or is wanted for it. The rest is to be handed over again: at
    /// once if some were taken, else when anything else was, and at
    /// [`decoder_free_at`](Self::decoder_free_at) at the latest.
    pub fn handle_watch(
        &mut self,
        kind: Kind,
        now: Instant,
        id: watch::RequestId,
        input: watch::Input<'_>,
    ) -> usize {
        let body = ResponseBody::Watch(kind, id);
        if let watch::Input::Body(bytes) = input {
            if self.watch_request(kind, id).is_none() {
                return bytes.len();
            }
            if !self.takes_decoder(body, now) {
                return 0;
            }
        }
        if let watch::Input::Head(head) = input {
            self.note_date(now, &head);
        }
        let is_back = self.note_reach(kind, &input);
        let random = self.random.draw();
        let wall = self.wall.at(now);
        let Self { cache, controllers, decoder, watches, metrics, recorder, settings, .. } = self;
        let watch = watches.get_mut(kind as usize).and_then(ZeroOption::as_mut);
        let Some(watch) = watch else { return 0 };
        let informers = &mut Informers { controllers, recorder, metrics, now, wall };
        let (mut input, mut taken) = (Some(input), 0);
        decoder.with_watch(kind, id, cache, informers, settings.namespaces, &mut |source| {
            if let Some(input) = input.take() {
                taken = watch.handle(now, random, id, input, source);
            }
        });
        if is_back {
            self.resync(kind);
        }
        taken
    }

    /// Whether the server did not answer a watch properly before, and now does. Keys may have
    /// been given up meanwhile, or wait for long: all are looked at again.
    fn note_reach(&mut self, kind: Kind, input: &watch::Input<'_>) -> bool {
        let bit = 1 << kind as u8;
        let was_lost = self.lost & bit != 0;
        match input {
            watch::Input::Refused | watch::Input::Unreachable | watch::Input::Cut => {
                self.lost |= bit;
            }
            watch::Input::Head(ResponseHead { status: 401 | 500.., .. }) => self.lost |= bit,
            watch::Input::Head(ResponseHead { status: 200, .. }) => self.lost &= !bit,
            _ => {}
        }
        was_lost && self.lost & bit == 0 && !planted(Bug::RetryForgotten)
    }

    /// The server did not know who asks, whatever was asked for: as good as out of reach. Watches that are
    /// open go on, so that they are back when they have ended and begin anew.
    fn note_unknown(&mut self) {
        self.lost = u8::MAX;
    }

    /// Every answer of the server tells the time.
    fn note_date(&mut self, now: Instant, head: &ResponseHead) {
        if let Some(date) = head.date {
            self.wall.set(now, date);
        }
    }

    /// The server's time at `now`; `None` before its first answer.
    pub fn wall_time(&self, now: Instant) -> Option<Timestamp> {
        self.wall.at(now)
    }

    /// Has an event tell, in `namespace` and about the Node of this name, that a certificate by which the
    /// controllers speak to the server is about to end.
    pub fn tell_certificate_ends(
        &mut self,
        now: Instant,
        node: &str,
        namespace: &str,
        which: &'static str,
        at: Timestamp,
    ) {
        let texts = &mut *self.cache.texts;
        let (Some(told_at), Ok(name)) = (self.wall.at(now), Name::whole(texts, node)) else {
            return;
        };
        if let Ok(namespace) = texts.intern(namespace.as_bytes()) {
            let subject = Subject {
                about: About::Node,
                component: "picokube",
                namespace,
                name,
                uid: Uid::default(),
                version: ResourceVersion::default(),
            };
            let message = Message::CertificateEnds { which, at };
            // It keeps what it needs of the texts.
            self.recorder.record(texts, subject, message, told_at);
            texts.release(namespace);
        }
        name.release(texts);
    }

    /// Whether all caches are complete and the time is known, so that all controllers act if they lead.
    pub fn has_started(&self) -> bool {
        self.wall.at(Instant::ZERO).is_some()
            && Kind::ALL.iter().all(|kind| {
                !self.watches(*kind) || self.has_synced(*kind) || planted(Bug::ActsBeforeSync)
            })
    }

    /// Whether a controller acts: it runs, it leads, the time is known, and the caches are complete of all
    /// that it watches, and of the owners of its keys, with whom it keeps in step. Others need not be.
    pub fn acts(&self, controller: ControllerName) -> bool {
        let info = controller.info();
        let owners = info.key.info().owners.iter().filter(|kind| self.watches(**kind));
        let mut needed = info.watches.iter().chain(owners);
        self.settings.controllers.contains(controller)
            && self.leads()
            && self.wall.at(Instant::ZERO).is_some()
            && needed.all(|kind| self.has_synced(*kind) || planted(Bug::ActsBeforeSync))
    }

    fn watch(&self, kind: Kind) -> Option<&Watch> {
        self.watches.get(kind as usize)?.as_ref()
    }

    fn watch_mut(&mut self, kind: Kind) -> Option<&mut Watch> {
        self.watches.get_mut(kind as usize)?.as_mut()
    }

    /// Whether a controller that runs watches this kind. What nobody watches is not read.
    pub fn watches(&self, kind: Kind) -> bool {
        let enabled = ControllerName::ALL.iter();
        enabled
            .filter(|controller| self.settings.controllers.contains(**controller))
            .any(|controller| controller.info().watches.contains(&kind))
    }

    /// Whether the list of a kind has been read.
    pub fn has_synced(&self, kind: Kind) -> bool {
        self.watch(kind).is_some_and(Watch::has_synced)
    }

    /// When the watch of a kind has something to do, if nothing comes in before.
    pub fn poll_watch_at(&self, kind: Kind) -> Option<Instant> {
        self.watch(kind).filter(|_| self.watches(kind)).map(Watch::poll_at)
    }

    /// The request of this number of the watch of a kind, as long as it is open.
    pub fn watch_request(
        &self,
        kind: Kind,
        id: watch::RequestId,
    ) -> Option<watch::WatchRequest<'_>> {
        self.watch(kind)?.request(id)
    }

    /// The cached cluster.
    pub fn cache(&self) -> &crate::store::Cache<'a> {
        &self.cache
    }

    /// How many syncs a controller has begun.
    pub fn syncs(&self, controller: ControllerName) -> u32 {
        let controllers = self.controllers.all();
        controllers.get(controller as usize).map_or(0, |controller| controller.keys().syncs)
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Every object is looked at again, as if it had changed.
    fn resync(&mut self, kind: Kind) {
        let Self { cache, controllers, .. } = self;
        for controller in controllers.all_mut() {
            let keys = controller.keys_mut();
            if keys.kind() == kind {
                cache.slots(kind).for_each(|slot| keys.queue.add(slot));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::hash::Hasher;
    use std::boxed::Box;

    use super::*;
    use crate::resources::Tiny;

    #[test]
    fn nobody_knows_the_bucket_of_a_name_without_the_seed() {
        let bucket = |seed| {
            let mut memory = Box::new(Tiny::new());
            let mut work = Box::new(Workspace::<1, 1, 1>::new());
            let manager = Manager::new(memory.parts(), work.parts(), Settings::DEFAULT, seed);
            manager.cache().texts.hash(|hasher| hasher.write(b"web"))
        };
        assert_eq!(bucket(1), bucket(1));
        assert_ne!(bucket(1), bucket(2));
    }
}
