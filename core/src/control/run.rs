//! One sync of a key, as far as it is the same for every controller: claiming, what is not answered,
//! how it ends.

use heapless::String;

use crate::kind::Kind;
use crate::limits;
use crate::link::Slot;
use crate::store::{Cache, Pod};
use crate::text::push_cut;
use crate::time::{Duration, Instant, Timestamp};
use crate::wire::Uid;

use super::claiming::{ClaimRule, Claiming};
use super::keys::Keys;
use super::pods::next_availability;
use super::reply::Reply;
use super::world::World;
use super::write::Write;

/// How long to wait at least for the watch after a write of which nobody knows whether it succeeded.
const AMBIGUOUS: Duration = Duration::from_secs(1);

/// How often a status is written before the key is retried.
const STATUS_TRIES: u8 = 2;

/// One sync of a key. All requests of a key come from one run, in order.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The key; `None` without work.
    pub(crate) key: Option<Slot>,
    /// The uid of its object when the sync began.
    pub(crate) uid: Uid,
    claiming: Claiming,
    /// Requests that are not answered.
    pub(crate) open: u16,
    /// When to go on at the latest, while it waits for something else than an answer.
    pub(crate) wakes_at: Option<Instant>,
    /// The request at hand had to wait for another one.
    pub(crate) is_held_up: bool,
    pub(crate) outcome: Outcome,
    /// Writes of the status that have failed.
    pub(crate) status_tries: u8,
    /// The first error of this sync.
    pub(crate) error: String<{ limits::MESSAGE }>,
}

/// How a sync ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As planned.
    Good,
    /// The key is retried with back-off.
    Retry,
    /// Likewise, but not before the watch has had time to tell what really happened.
    RetryLater,
    /// Nothing can be done until something changes.
    Forget,
}

/// What claiming comes to.
pub(crate) enum NextClaim {
    /// This is to be sent.
    Send(Write),
    /// Something could not be claimed, which makes every decision wrong: the sync ends.
    Failed,
    /// All is claimed.
    Done,
}

impl Run {
    /// Without work: all bits zero.
    pub(super) const IDLE: Self = Self {
        key: None,
        uid: Uid::NIL,
        claiming: Claiming::START,
        open: 0,
        wakes_at: None,
        is_held_up: false,
        outcome: Outcome::Good,
        status_tries: 0,
        error: String::new(),
    };

    /// Begins with a key.
    pub(super) fn begin(&mut self, key: Slot, uid: Uid) {
        self.key = Some(key);
        self.uid = uid;
        self.restart();
    }

    /// Begins with the same key again: nothing has been done.
    pub(crate) fn restart(&mut self) {
        self.claiming = Claiming::START;
        self.open = 0;
        self.wakes_at = None;
        self.is_held_up = false;
        self.outcome = Outcome::Good;
        self.status_tries = 0;
        self.error.clear();
    }

    /// Whether the object of the key is gone, or another one has taken its name and its place.
    pub(crate) fn is_void(&self, cache: &Cache<'_>, kind: Kind) -> bool {
        let head = self.key.and_then(|key| cache.head(kind, key));
        head.is_none_or(|head| head.uid() != self.uid)
    }

    /// When it goes on at the latest, if it waits for something else than an answer.
    pub(super) fn waits_until(&self) -> Option<Instant> {
        self.wakes_at.filter(|_| self.key.is_some() && self.open == 0)
    }

    /// Something failed: the sync ends with this error, the first one that came. What is worse stays.
    pub(crate) fn fail(&mut self, outcome: Outcome, error: &str) {
        if self.error.is_empty() {
            push_cut(&mut self.error, error);
        }
        if self.outcome != Outcome::RetryLater {
            self.outcome = outcome;
        }
    }

    /// The next request that claiming needs. What could not be claimed does not keep others from
    /// being claimed. When all is, the next rule can be claimed by.
    pub(crate) fn next_claim(&mut self, cache: &Cache<'_>, rule: &ClaimRule) -> NextClaim {
        let next = self.key.and_then(|key| self.claiming.next(cache, rule, key));
        match next {
            Some(write) => return NextClaim::Send(write),
            None => self.claiming = Claiming::START,
        }
        if self.outcome == Outcome::Good { NextClaim::Done } else { NextClaim::Failed }
    }

    /// A request for claiming was answered.
    pub(super) fn claim_answered(&mut self, write: &Write, reply: &Reply<'_>) {
        if !self.claiming.answered(self.uid, write, reply) {
            self.fail(Outcome::Retry, reply.message);
        }
    }

    /// A status could not be written: whatever went wrong, once more, then the key is retried.
    pub(crate) fn status_failed(&mut self, outcome: Outcome, reply: &Reply<'_>) {
        self.status_tries += 1;
        if self.gives_up_status() {
            self.fail(outcome, reply.message);
        }
    }

    /// Whether the status is not tried again.
    pub(crate) fn gives_up_status(&self) -> bool {
        self.status_tries >= STATUS_TRIES
    }

    /// The sync is over: its key is put where its outcome wants it. If all went well and pods are ready that
    /// are not yet available, it is looked at again when the next of them is: after `min_ready_seconds`.
    pub(crate) fn end(
        &mut self,
        keys: &mut Keys<'_>,
        world: &mut World<'_, '_>,
        min_ready_seconds: Option<i32>,
    ) {
        let Some(key) = self.key.take() else { return };
        let (kind, now) = (keys.kind(), world.now);
        match self.outcome {
            _ if world.cache.head(kind, key).is_none() => {}
            Outcome::Retry => keys.queue.add_rate_limited(key, now),
            Outcome::RetryLater => keys.queue.add_rate_limited_after(key, AMBIGUOUS, now),
            Outcome::Forget => keys.queue.forget(key),
            Outcome::Good => {
                keys.queue.forget(key);
                if let Some(seconds) = min_ready_seconds.filter(|seconds| *seconds > 0) {
                    let pods = world.cache.pods_of(kind, key).map(|(_, pod)| pod.record);
                    keys.queue.add_after(key, until_available(pods, seconds, world.wall), now);
                }
            }
        }
        keys.end(world.cache, key);
    }
}

/// How long until the next of these pods is available, some of which will be.
fn until_available<'p>(
    pods: impl Iterator<Item = &'p Pod>,
    seconds: i32,
    wall: Timestamp,
) -> Duration {
    let fallback = Duration::from_secs(u64::from(seconds.unsigned_abs()));
    // It is longer only by a wrong clock, which may be put right any moment.
    next_availability(pods, seconds, wall).unwrap_or(fallback).min(fallback)
}
