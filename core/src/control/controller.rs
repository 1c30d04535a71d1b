//! What a controller is to those who run it.

use core::fmt;

use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::splice::Splice;
use crate::store::{Cache, Change};
use crate::time::Instant;

use super::claiming::write_claim;
use super::keys::Keys;
use super::reply::{Reply, Verdict};
use super::run::Run;
use super::world::World;
use super::write::Write;

/// What is fixed about a controller.
#[derive(Debug)]
pub struct ControllerInfo {
    /// Its canonical name.
    pub name: &'static str,
    /// Its name before Kubernetes 1.27, which still works.
    pub alias: &'static str,
    /// The component that its events name as their source.
    pub component: &'static str,
    /// The name of its work queue in metrics.
    pub queue: &'static str,
    /// The kind whose objects are its keys.
    pub key: Kind,
    /// The kinds it watches.
    pub watches: &'static [Kind],
}

/// A controller: keys in a queue, and workers that sync one key each.
///
/// It owns its writes: what a worker wants to send is sent as it is, and comes back with the answer. It
/// is used as a trait object, so that those who run controllers are compiled once; and what is the same
/// for all of them are methods of the trait object, so that this is, too. A controller does not
/// implement the trait: it is a [`Worker`](super::runner::Worker), with its rules, in a
/// [`Runner`](super::runner::Runner).
pub(crate) trait Controller<'a> {
    /// Its keys.
    fn keys(&self) -> &Keys<'a>;

    /// Its keys, to be changed.
    fn keys_mut(&mut self) -> &mut Keys<'a>;

    /// How many keys it works on at a time.
    fn workers(&self) -> usize;

    /// What a worker has at hand.
    fn run(&self, worker: usize) -> Option<&Run>;

    /// What a worker has at hand, to be changed.
    fn run_mut(&mut self, worker: usize) -> Option<&mut Run>;

    /// An object has changed, of any kind.
    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change, now: Instant);

    /// The next request of the sync at hand, which may be a new one; `None` while it waits or when it
    /// has ended.
    fn next_request(
        &mut self,
        world: &mut World<'_, 'a>,
        worker: usize,
        is_new: bool,
    ) -> Option<Write>;

    /// A request was answered, or will not be; not one for claiming.
    fn request_answered(&mut self, world: &mut World<'_, 'a>, write: &Write, reply: &Reply<'_>);

    /// Writes the document of a write, neither for claiming nor for a deletion.
    fn write_request(
        &self,
        cache: &Cache<'_>,
        write: &Write,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result;

    /// The splice of a write. `None` if what it is about is gone.
    fn splice(&self, cache: &Cache<'_>, write: &Write) -> Option<Splice>;

    /// Nothing is awaited any more of what syncs have asked for.
    fn expect_nothing(&mut self);

    /// What a worker is doing about its key.
    fn activity_of(&self, worker: usize) -> Activity;
}

impl<'a> dyn Controller<'a> + 'a {
    /// What is fixed about it.
    pub(crate) fn info(&self) -> &'static ControllerInfo {
        self.keys().info
    }

    /// Whether a key is being worked on.
    pub(crate) fn is_working(&self) -> bool {
        self.keys().queue.is_processing()
    }

    /// What a worker sends next; `None` while it waits or has nothing to do. What is returned has
    /// room, and is sent.
    pub(crate) fn next(&mut self, world: &mut World<'_, 'a>, worker: usize) -> Option<Write> {
        loop {
            let is_new = self.run(worker)?.key.is_none();
            if is_new {
                let (key, uid) = self.keys_mut().begin(world.cache)?;
                self.run_mut(worker)?.begin(key, uid);
            }
            let write = self.next_request(world, worker, is_new);
            let run = self.run_mut(worker)?;
            let Some(write) = write else {
                if run.key.is_some() {
                    return None;
                }
                continue;
            };
            run.is_held_up = !(world.has_room)(&write);
            if run.is_held_up {
                return None;
            }
            run.open += 1;
            return Some(Write { worker: worker as u8, ..write });
        }
    }

    /// The write was answered, or will not be.
    pub(crate) fn answered(&mut self, world: &mut World<'_, 'a>, write: &Write, reply: &Reply<'_>) {
        let kind = self.keys().kind();
        let Some(run) = self.run_mut(write.worker.into()) else { return };
        run.open = run.open.saturating_sub(1);
        let is_about_key = write.kind == kind && run.key == Some(write.slot);
        if reply.verdict == Verdict::NotFound && is_about_key && write.is_status() {
            // Its watch may be long in telling, and whatever is made for what is gone is collected again. A
            // status that is still to be told is tried again: that puts right what was not so.
            world.cache.note_gone(write.kind, write.slot, write.uid);
        }
        if write.purpose.is_claiming() {
            run.claim_answered(write, reply);
        } else {
            self.request_answered(world, write, reply);
        }
    }

    /// Gives up all syncs at hand, none of whose requests is waited for: their keys wait again.
    pub(crate) fn abandon(&mut self, cache: &mut Cache<'_>) {
        for worker in 0..self.workers() {
            let Some(run) = self.run_mut(worker) else { break };
            run.open = 0;
            let Some(key) = run.key.take() else { continue };
            let keys = self.keys_mut();
            if cache.head(keys.kind(), key).is_some() {
                keys.queue.add(key);
            }
            keys.end(cache, key);
        }
        self.expect_nothing();
    }

    /// Writes the document of a write.
    pub(crate) fn write_body(
        &self,
        cache: &Cache<'_>,
        write: &Write,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        if write.is_delete() {
            if planted(Bug::PodsKilled) && write.kind == Kind::Pod {
                return out.write_str("{\"gracePeriodSeconds\":0}");
            }
            return write.write_delete_options(out);
        }
        if !write.purpose.is_claiming() {
            return self.write_request(cache, write, out);
        }
        let run = self.run(write.worker.into()).ok_or(fmt::Error)?;
        write_claim(cache, self.keys().kind(), run.key.ok_or(fmt::Error)?, run.uid, write, out)
    }

    /// What it is doing about a key.
    pub(crate) fn activity(&self, key: Slot) -> Activity {
        let is_at = |worker: &usize| self.run(*worker).is_some_and(|run| run.key == Some(key));
        let worker = (0..self.workers()).find(is_at);
        match worker.map_or(Activity::Idle, |worker| self.activity_of(worker)) {
            Activity::Idle if self.keys().queue.is_wanted(key) => Activity::Queued,
            activity => activity,
        }
    }

    /// When a worker goes on at the latest that waits for something else than an answer.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        (0..self.workers()).filter_map(|worker| self.run(worker)?.waits_until()).min()
    }
}

/// What a controller is doing about a key, for those who wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Nothing.
    Idle,
    /// It is going to look at it.
    Queued,
    /// It has begun.
    Begun,
    /// What others may wait for is under way or done.
    GotOn,
    /// All that is left to do is to write the status.
    AtStatus,
}
