//! What a controller is to those who run it.

use core::fmt;

use crate::kind::Kind;
use crate::link::Slot;
use crate::splice::Splice;
use crate::store::{Cache, Change};
use crate::time::Instant;

use super::keys::Keys;
use super::reply::Reply;
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
/// It owns its writes: what [`next`](Self::next) returns is sent as it is, and comes back with the
/// answer. It is used as a trait object, so that those who run controllers are compiled once.
pub(crate) trait Controller<'a> {
    /// What is fixed about it.
    fn info(&self) -> &'static ControllerInfo;

    /// Its keys.
    fn keys(&self) -> &Keys<'a>;

    /// Its keys, to be changed.
    fn keys_mut(&mut self) -> &mut Keys<'a>;

    /// How many keys it works on at a time.
    fn workers(&self) -> usize;

    /// Whether a key is being worked on.
    fn is_working(&self) -> bool;

    /// An object has changed, of any kind.
    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change, now: Instant);

    /// What a worker sends next; `None` while it waits or has nothing to do. What is returned has
    /// room, and is sent.
    fn next(&mut self, world: &mut World<'_, 'a>, worker: usize) -> Option<Write>;

    /// The write was answered, or will not be.
    fn answered(&mut self, world: &mut World<'_, 'a>, write: &Write, reply: &Reply<'_>);

    /// Writes the document of a write.
    fn write_body(&self, cache: &Cache<'_>, write: &Write, out: &mut dyn fmt::Write)
    -> fmt::Result;

    /// The splice of a write. `None` if what it is about is gone.
    fn splice(&self, cache: &Cache<'_>, write: &Write) -> Option<Splice>;

    /// What it is doing about a key.
    fn activity(&self, key: Slot) -> Activity;

    /// When a worker goes on at the latest that waits for something else than an answer.
    fn wakes_at(&self) -> Option<Instant>;
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
