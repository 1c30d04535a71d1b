//! The workers of a controller, each with a sync at hand, as something that can be run.

use core::fmt;

use crate::event::Message;
use crate::kind::Kind;
use crate::link::Slot;
use crate::splice::Splice;
use crate::store::{Cache, Change};
use crate::text::Text;
use crate::time::Instant;

use super::controller::{Activity, Controller};
use super::keys::Keys;
use super::reply::Reply;
use super::run::Run;
use super::world::World;
use super::write::Write;

/// The rules of a controller, and the state of one sync as far as it is its own.
pub(crate) trait Worker: Sized {
    /// What all its syncs share.
    type Shared<'a>;

    /// Nothing done: all bits zero.
    const IDLE: Self;

    /// An object has changed, of any kind: which keys have to be looked at?
    fn changed(
        keys: &mut Keys<'_>,
        shared: &mut Self::Shared<'_>,
        cache: &mut Cache<'_>,
        kind: Kind,
        change: &Change,
        now: Instant,
    );

    /// A sync begins: nothing is left of the one before.
    fn begin<'a>(&mut self, sync: &mut Sync<'_, '_, 'a, Self::Shared<'a>>);

    /// The next request of this sync; `None` while it waits for answers or when it has ended. It is sent
    /// if it [has room](Sync::has_room); else it is asked for again.
    fn next<'a>(&mut self, sync: &mut Sync<'_, '_, 'a, Self::Shared<'a>>) -> Option<Write>;

    /// A request was answered, or will not be; not one for claiming.
    fn answered<'a>(
        &mut self,
        sync: &mut Sync<'_, '_, 'a, Self::Shared<'a>>,
        write: &Write,
        reply: &Reply<'_>,
    );

    /// Writes the document of a request, neither for claiming nor for a deletion.
    fn write_body(
        &self,
        look: &Look<'_, '_, Self::Shared<'_>>,
        write: &Write,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result;

    /// The splice of a request. `None` if what it is about is gone.
    fn splice(&self, look: &Look<'_, '_, Self::Shared<'_>>, write: &Write) -> Option<Splice>;

    /// All syncs are given up, and with them what the cache was to be told of: what was asked for may never
    /// come, and what has come is listed before anybody decides again.
    fn abandoned(shared: &mut Self::Shared<'_>) {
        let _ = shared;
    }

    /// What it is doing about its key, for those who wait for it.
    fn activity(&self, run: &Run) -> Activity {
        let _ = run;
        Activity::Begun
    }
}

/// What one sync works with, for as long as one call takes.
pub(crate) struct Sync<'s, 'w, 'a, S> {
    pub(crate) key: Slot,
    pub(crate) run: &'s mut Run,
    pub(crate) keys: &'s mut Keys<'a>,
    pub(crate) shared: &'s mut S,
    pub(crate) world: &'s mut World<'w, 'a>,
}

impl<S> Sync<'_, '_, '_, S> {
    /// Tells something about the key.
    pub(crate) fn record(&mut self, message: Message) {
        self.world.record(self.keys.info, self.key, message);
    }

    /// As [`record`](Self::record), with an error in it.
    pub(crate) fn record_error(&mut self, error: &str, message: impl FnOnce(Text) -> Message) {
        let text = self.world.cache.texts.intern(error.as_bytes()).unwrap_or_default();
        self.record(message(text));
        self.world.cache.texts.release(text);
    }

    /// Whether a request can be sent now.
    pub(crate) fn has_room(&self, write: &Write) -> bool {
        (self.world.has_room)(write)
    }

    /// Whether a request had to wait for another one, and does not any more.
    pub(crate) fn has_waited_for(&self, write: &Write) -> bool {
        self.run.is_held_up && self.has_room(write)
    }

    /// Whether objects that belong to the key are missing from the cache, which its object is told of.
    pub(crate) fn is_blind(&mut self) -> bool {
        self.world.is_blind(self.keys.info, self.key)
    }

    /// The sync is over, see [`Run::end`].
    pub(crate) fn end(&mut self, min_ready_seconds: Option<i32>) {
        self.run.end(self.keys, self.world, min_ready_seconds);
    }
}

/// What the body of a request is made of.
pub(crate) struct Look<'s, 'c, S> {
    pub(crate) kind: Kind,
    pub(crate) key: Slot,
    pub(crate) run: &'s Run,
    pub(crate) shared: &'s S,
    pub(crate) cache: &'s Cache<'c>,
}

/// Memory for `N` syncs at a time.
#[derive(Debug)]
pub(crate) struct WorkerMemory<W, const N: usize>([(Run, W); N]);

/// A view of [`WorkerMemory`], whatever its size.
pub(crate) type WorkerSlots<'a, W> = &'a mut [(Run, W)];

impl<W: Worker, const N: usize> WorkerMemory<W, N> {
    /// No syncs: all bits zero.
    pub(crate) const NEW: Self = Self([const { (Run::IDLE, W::IDLE) }; N]);

    /// The parts, whatever their number.
    pub(crate) fn parts(&mut self) -> WorkerSlots<'_, W> {
        &mut self.0
    }
}

/// A controller: its keys, and workers that sync one key each.
pub(crate) struct Runner<'a, W: Worker> {
    keys: Keys<'a>,
    workers: WorkerSlots<'a, W>,
    shared: W::Shared<'a>,
}

impl<'a, W: Worker> Runner<'a, W> {
    /// Begins with nothing done.
    pub(crate) fn new(keys: Keys<'a>, workers: WorkerSlots<'a, W>, shared: W::Shared<'a>) -> Self {
        Self { keys, workers, shared }
    }

    /// A worker with a sync at hand, and what that works with.
    fn split<'s, 'w>(
        &'s mut self,
        world: &'s mut World<'w, 'a>,
        worker: usize,
    ) -> Option<(&'s mut W, Sync<'s, 'w, 'a, W::Shared<'a>>)> {
        let Self { keys, workers, shared } = self;
        let (run, worker) = workers.get_mut(worker)?;
        Some((worker, Sync { key: run.key?, run, keys, shared, world }))
    }

    /// A worker with a sync at hand, and what its requests are made of.
    fn look<'s, 'c>(
        &'s self,
        cache: &'s Cache<'c>,
        worker: usize,
    ) -> Option<(&'s W, Look<'s, 'c, W::Shared<'a>>)> {
        let Self { keys, workers, shared } = self;
        let (run, worker) = workers.get(worker)?;
        Some((worker, Look { kind: keys.kind(), key: run.key?, run, shared, cache }))
    }
}

impl<'a, W: Worker> Controller<'a> for Runner<'a, W> {
    fn keys(&self) -> &Keys<'a> {
        &self.keys
    }

    fn keys_mut(&mut self) -> &mut Keys<'a> {
        &mut self.keys
    }

    fn workers(&self) -> usize {
        self.workers.len()
    }

    fn run(&self, worker: usize) -> Option<&Run> {
        self.workers.get(worker).map(|(run, _)| run)
    }

    fn run_mut(&mut self, worker: usize) -> Option<&mut Run> {
        self.workers.get_mut(worker).map(|(run, _)| run)
    }

    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change, now: Instant) {
        W::changed(&mut self.keys, &mut self.shared, cache, kind, change, now);
    }

    fn next_request(
        &mut self,
        world: &mut World<'_, 'a>,
        worker: usize,
        is_new: bool,
    ) -> Option<Write> {
        let (worker, mut sync) = self.split(world, worker)?;
        if is_new {
            worker.begin(&mut sync);
        }
        worker.next(&mut sync)
    }

    fn request_answered(&mut self, world: &mut World<'_, 'a>, write: &Write, reply: &Reply<'_>) {
        if let Some((worker, mut sync)) = self.split(world, usize::from(write.worker)) {
            worker.answered(&mut sync, write, reply);
        }
    }

    fn write_request(
        &self,
        cache: &Cache<'_>,
        write: &Write,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        let (worker, look) = self.look(cache, write.worker.into()).ok_or(fmt::Error)?;
        worker.write_body(&look, write, out)
    }

    fn splice(&self, cache: &Cache<'_>, write: &Write) -> Option<Splice> {
        let (worker, look) = self.look(cache, write.worker.into())?;
        worker.splice(&look, write)
    }

    fn expect_nothing(&mut self) {
        W::abandoned(&mut self.shared);
    }

    fn activity_of(&self, worker: usize) -> Activity {
        self.workers.get(worker).map_or(Activity::Idle, |(run, worker)| worker.activity(run))
    }
}
