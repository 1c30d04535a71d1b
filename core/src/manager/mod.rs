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
mod body;
mod context;
mod dispatch;
mod exposition;
mod issue;
mod names;
mod rate;
mod registry;
mod request;
mod respond;
mod router;
mod settings;
mod workspace;

pub(crate) use context::Context;
pub use registry::{Controller, Enabled, UnknownController};
pub use request::{
    Body, ContentType, Failure, Make, Method, ObjectName, Request, Splice, TARGET, Target, Ticket,
};
pub use settings::{Rate, Settings};
pub use workspace::{Desk, Workspace};

use crate::deployment;
use crate::metrics::Metrics;
use crate::planted::{Bug, planted};
use crate::replicaset;
use crate::resources::Parts;
use crate::store::Kind;
use crate::time::{Instant, Timestamp, WallClock};
use crate::watch::{self, Feed, Resource, Watch};

use rate::Bucket;
use router::Router;

/// What syncs of a controller work with, and its workers.
type Split<'m, 'a, W> = (Context<'m, 'a>, &'m mut [W]);

/// The controllers, their cache and their requests.
pub struct Manager<'a> {
    parts: Parts<'a>,
    desk: Desk<'a>,
    settings: Settings,
    pod_watch: Watch,
    replica_set_watch: Watch,
    deployment_watch: Watch,
    wall: WallClock,
    deployment_bucket: Bucket,
    replica_set_bucket: Bucket,
    /// The event at hand is under way under this number.
    event_ticket: Option<u16>,
    event_status: u16,
    serial: u16,
    /// Counts requests, so that events get their turn.
    turn: u8,
    /// When and with which random number `poll` was last called.
    polled_at: Instant,
    random: u32,
    /// Something waits for the rate limit until then.
    blocked_until: Option<Instant>,
    /// One bit per kind whose watch could not reach the server of late.
    lost: u8,
    metrics: Metrics,
}

impl<'a> Manager<'a> {
    /// Controllers that have not begun. The seed is a secret: whoever knows it can choose names that all
    /// fall into one bucket of the cache's indices.
    pub fn new(parts: Parts<'a>, desk: Desk<'a>, settings: Settings, seed: u64) -> Self {
        parts.cache.texts.seed(seed);
        let Settings { namespaces, label_selector, resync, .. } = settings;
        let namespace = match namespaces {
            [only] => Some(*only),
            _ => None,
        };
        let watch =
            |resource| Watch::new(Resource { namespace, label_selector, ..resource }, resync);
        Self {
            parts,
            desk,
            settings,
            pod_watch: watch(Resource::PODS),
            replica_set_watch: watch(Resource::REPLICA_SETS),
            deployment_watch: watch(Resource::DEPLOYMENTS),
            wall: WallClock::new(),
            deployment_bucket: Bucket::FULL,
            replica_set_bucket: Bucket::FULL,
            event_ticket: None,
            event_status: 0,
            serial: 0,
            turn: 0,
            polled_at: Instant::ZERO,
            random: 0,
            blocked_until: None,
            lost: 0,
            metrics: Metrics::ZERO,
        }
    }

    /// The next thing to do for the watch of a kind, if any. To be called until it returns
    /// `None`. `random` is a fresh uniform number.
    pub fn poll_watch(
        &mut self,
        kind: Kind,
        now: Instant,
        random: u32,
    ) -> Option<watch::Command<'_>> {
        if self.watch_mut(kind).take_resync(now) {
            self.resync(kind);
        }
        if self.parts.cache.take_relist_wish(kind) {
            self.watch_mut(kind).want_relist();
        }
        self.watch_mut(kind).poll(now, random)
    }

    /// Takes in what came back for a request of a watch. `random` is a fresh uniform number.
    pub fn handle_watch(
        &mut self,
        kind: Kind,
        now: Instant,
        random: u32,
        id: watch::RequestId,
        input: watch::Input<'_>,
    ) {
        let is_back = self.note_reach(kind, &input);
        let Self { parts, desk, metrics, settings: Settings { namespaces, .. }, .. } = self;
        let cache = &mut parts.cache;
        let handler = &mut Router {
            replica_set_queue: parts.replica_set_queue,
            deployment_queue: parts.deployment_queue,
            expectations: parts.expectations,
            status_pending: parts.status_pending,
            deployment_status_pending: parts.deployment_status_pending,
            metrics,
            now,
        };
        match kind {
            Kind::Pod => {
                let decoder = &mut *desk.pod_feed;
                let mut feed = Feed { decoder, cache, handler, namespaces };
                self.pod_watch.handle(now, random, id, input, &mut feed);
            }
            Kind::ReplicaSet => {
                let decoder = &mut *desk.replica_set_feed;
                let mut feed = Feed { decoder, cache, handler, namespaces };
                self.replica_set_watch.handle(now, random, id, input, &mut feed);
            }
            Kind::Deployment => {
                let decoder = &mut *desk.deployment_feed;
                let mut feed = Feed { decoder, cache, handler, namespaces };
                self.deployment_watch.handle(now, random, id, input, &mut feed);
            }
        }
        if is_back {
            self.resync(kind);
        }
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
            watch::Input::Head { status: 500.., .. } => self.lost |= bit,
            watch::Input::Head { status: 200, .. } => self.lost &= !bit,
            _ => {}
        }
        was_lost && self.lost & bit == 0 && !planted(Bug::RetryForgotten)
    }

    /// The server's `Date`, from the head of any response, those of watches included.
    pub fn set_date(&mut self, now: Instant, date: Timestamp) {
        self.wall.set(now, date);
    }

    /// The server's time at `now`; `None` before its first answer.
    pub fn wall_time(&self, now: Instant) -> Option<Timestamp> {
        self.wall.at(now)
    }

    /// Whether all caches are complete and the time is known, so that controllers act.
    pub fn has_started(&self) -> bool {
        self.wall.at(Instant::ZERO).is_some()
            && [&self.pod_watch, &self.replica_set_watch, &self.deployment_watch]
                .into_iter()
                .all(|watch| watch.has_synced() || planted(Bug::ActsBeforeSync))
    }

    /// The state of the watch of a kind.
    pub fn watch(&self, kind: Kind) -> &Watch {
        match kind {
            Kind::Pod => &self.pod_watch,
            Kind::ReplicaSet => &self.replica_set_watch,
            Kind::Deployment => &self.deployment_watch,
        }
    }

    /// The cached cluster.
    pub fn cache(&self) -> &crate::store::Cache<'a> {
        &self.parts.cache
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn replica_set_syncs(&mut self, now: Instant) -> Option<Split<'_, 'a, replicaset::Worker>> {
        let (context, workers, deployment_workers) = self.split(now)?;
        Some((Context { deployment_workers, ..context }, workers))
    }

    fn deployment_syncs(&mut self, now: Instant) -> Option<Split<'_, 'a, deployment::Worker>> {
        let (context, replica_set_workers, workers) = self.split(now)?;
        Some((Context { replica_set_workers, ..context }, workers))
    }

    fn split(
        &mut self,
        now: Instant,
    ) -> Option<(Context<'_, 'a>, &mut [replicaset::Worker], &mut [deployment::Worker])> {
        let wall = self.wall.at(now)?;
        let Self { parts, desk, settings, .. } = self;
        let context = Context {
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
        Some((context, desk.replica_set_workers, desk.deployment_workers))
    }

    fn watch_mut(&mut self, kind: Kind) -> &mut Watch {
        match kind {
            Kind::Pod => &mut self.pod_watch,
            Kind::ReplicaSet => &mut self.replica_set_watch,
            Kind::Deployment => &mut self.deployment_watch,
        }
    }

    /// Every object is looked at again, as if it had changed.
    fn resync(&mut self, kind: Kind) {
        let Parts { cache, replica_set_queue, deployment_queue, .. } = &mut self.parts;
        match kind {
            Kind::Pod => {}
            Kind::ReplicaSet => {
                cache.replica_sets.iter().for_each(|(slot, _)| replica_set_queue.add(slot));
            }
            Kind::Deployment => {
                cache.deployments.iter().for_each(|(slot, _)| deployment_queue.add(slot));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::hash::Hasher;
    use std::boxed::Box;

    use super::*;

    #[test]
    fn nobody_knows_the_bucket_of_a_name_without_the_seed() {
        type Memory = crate::resources! { pods: 1, replica_sets: 1, deployments: 1 };
        let bucket = |seed| {
            let mut memory = Box::new(Memory::new());
            let mut work = Box::new(Workspace::<1, 1, 1>::new());
            let manager = Manager::new(memory.parts(), work.desk(), Settings::DEFAULT, seed);
            manager.cache().texts.hash(|hasher| hasher.write(b"web"))
        };
        assert_eq!(bucket(1), bucket(1));
        assert_ne!(bucket(1), bucket(2));
    }
}
