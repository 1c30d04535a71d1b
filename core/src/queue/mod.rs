//! The work queue of one controller: which keys to look at, and when.
//!
//! A key is the slot of an object in its table, so a queue with as many items as the table has
//! slots always has room: an Add is never lost. Semantics are those of Kubernetes' work queue:
//!
//! - a key waits at most once, however often it is added;
//! - a key that is being processed is not handed out again before [`done`](Queue::done), and an
//!   Add in between causes exactly one more run;
//! - a key has at most one delayed Add, the earliest asked for, which nothing but
//!   [`retire`](Queue::retire) cancels.

mod delay;
mod limiter;

pub use limiter::{TokenBucket, item_delay};

use crate::link::{Link, Slot};
use crate::time::{Duration, Instant};

/// The state of one key. [`Queue`] holds one per slot.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Neighbours in the FIFO.
    before: Link,
    after: Link,
    /// The key at this place of the heap of delayed Adds.
    heap: Link,
    /// The place of this key in the heap.
    heap_place: Link,
    /// When the delayed Add is due, in three parts of an [`Instant`].
    due: [u16; 3],
    /// Rate-limited Adds since the last Forget, as far as that goes: the delay does not grow for so long.
    requeues: u8,
    /// Bits of [`flag`].
    flags: u8,
}

const _: () = assert!(size_of::<Item>() == 16);

/// Bits of [`Item::flags`].
mod flag {
    /// It is to be processed.
    pub(super) const DIRTY: u8 = 1;
    pub(super) const PROCESSING: u8 = 1 << 1;
}

impl Item {
    const fn is_dirty(&self) -> bool {
        self.flags & flag::DIRTY != 0
    }

    const fn is_processing(&self) -> bool {
        self.flags & flag::PROCESSING != 0
    }
}

/// A work queue. `S` is `[Item; N]` where it lives, `[Item]` where it is used.
#[derive(Debug)]
pub struct Queue<S: ?Sized = [Item]> {
    first: Link,
    last: Link,
    len: u16,
    delayed: u16,
    processing: u16,
    shutting_down: bool,
    bucket: TokenBucket,
    metrics: Metrics,
    items: S,
}

/// What the queue counts, under the names of Kubernetes' metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Metrics {
    /// Adds that made a key wait (`workqueue_adds_total`).
    pub adds: u32,
    /// Delayed Adds asked for (`workqueue_retries_total`).
    pub retries: u32,
}

/// What [`Queue::get`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Next {
    /// Process this key, then call [`Queue::done`].
    Key(Slot),
    /// Nothing waits now.
    Empty,
    /// Nothing waits and nothing will: the queue is shut down.
    ShutDown,
}

impl<const N: usize> Queue<[Item; N]> {
    /// An empty queue.
    pub const fn new() -> Self {
        const { assert!(N <= Slot::MOST) };
        let idle = Item {
            before: None,
            after: None,
            heap: None,
            heap_place: None,
            due: [0; 3],
            requeues: 0,
            flags: 0,
        };
        Self {
            first: None,
            last: None,
            len: 0,
            delayed: 0,
            processing: 0,
            shutting_down: false,
            bucket: TokenBucket::new(),
            metrics: Metrics { adds: 0, retries: 0 },
            items: [idle; N],
        }
    }
}

impl<const N: usize> Default for Queue<[Item; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl Queue {
    /// Asks for a key to be processed.
    pub fn add(&mut self, key: Slot) {
        if self.shutting_down {
            return;
        }
        let Some(item) = self.items.get_mut(key.index()) else { return };
        if item.is_dirty() {
            return;
        }
        item.flags |= flag::DIRTY;
        let processing = item.is_processing();
        self.metrics.adds = self.metrics.adds.wrapping_add(1);
        if !processing {
            self.push(key);
        }
    }

    /// Asks for a key to be processed once `delay` has passed. Of several such wishes the
    /// earliest counts.
    pub fn add_after(&mut self, key: Slot, delay: Duration, now: Instant) {
        if self.shutting_down {
            return;
        }
        self.metrics.retries = self.metrics.retries.wrapping_add(1);
        if delay == Duration::ZERO {
            self.add(key);
        } else {
            self.delay(key, now + delay);
        }
    }

    /// Asks for a key to be processed after its back-off, or later if too many keys are retried:
    /// the longer of the two limits.
    pub fn add_rate_limited(&mut self, key: Slot, now: Instant) {
        self.add_rate_limited_after(key, Duration::ZERO, now);
    }

    /// As [`add_rate_limited`](Self::add_rate_limited), but after `delay` at the earliest.
    pub fn add_rate_limited_after(&mut self, key: Slot, delay: Duration, now: Instant) {
        let Some(item) = self.items.get_mut(key.index()) else { return };
        let own = item_delay(item.requeues.into());
        item.requeues = item.requeues.saturating_add(1);
        let all = self.bucket.reserve(now);
        self.add_after(key, own.max(all).max(delay), now);
    }

    /// The key did well: its back-off starts over. Delayed Adds and the common limit stay.
    pub fn forget(&mut self, key: Slot) {
        if let Some(item) = self.items.get_mut(key.index()) {
            item.requeues = 0;
        }
    }

    /// Rate-limited Adds of a key since it was last forgotten.
    pub fn num_requeues(&self, key: Slot) -> u16 {
        self.items.get(key.index()).map_or(0, |item| item.requeues.into())
    }

    /// Moves delayed Adds that are due into the queue. To be called before [`get`](Self::get).
    pub fn poll(&mut self, now: Instant) {
        if self.shutting_down {
            return;
        }
        while let Some(key) = self.take_due(now) {
            self.add(key);
        }
    }

    /// When [`poll`](Self::poll) has something to do next.
    pub fn poll_at(&self) -> Option<Instant> {
        if self.shutting_down { None } else { self.next_due() }
    }

    /// The key that has waited longest. It is then processing until [`done`](Self::done).
    pub fn get(&mut self) -> Next {
        let Some(key) = self.first else {
            return if self.shutting_down { Next::ShutDown } else { Next::Empty };
        };
        self.unlink(key);
        if let Some(item) = self.items.get_mut(key.index()) {
            item.flags = flag::PROCESSING;
            self.processing += 1;
        }
        Next::Key(key)
    }

    /// Processing of a key has ended. If it was added meanwhile, it waits again.
    pub fn done(&mut self, key: Slot) {
        let Some(item) = self.items.get_mut(key.index()) else { return };
        if item.is_processing() {
            item.flags &= !flag::PROCESSING;
            self.processing -= 1;
            if item.is_dirty() {
                self.push(key);
            }
        }
    }

    /// Removes every trace of a key whose object is gone, so that its slot can be reused.
    ///
    /// Kubernetes processes such a key once more to find that there is nothing to do. Returns
    /// `false` while the key is being processed: then to be tried again after
    /// [`done`](Self::done).
    pub fn retire(&mut self, key: Slot) -> bool {
        self.cancel_delayed(key);
        let Some(item) = self.items.get_mut(key.index()) else { return true };
        item.requeues = 0;
        let idle = !item.is_processing();
        let waiting = item.is_dirty() && idle;
        item.flags &= !flag::DIRTY;
        if waiting {
            self.unlink(key);
        }
        idle
    }

    /// Refuses further Adds. Keys that wait are still handed out.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// Whether the queue refuses Adds.
    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// Whether nothing waits and nothing is processed: after [`shut_down`](Self::shut_down), all
    /// work has ended.
    pub fn is_drained(&self) -> bool {
        self.len == 0 && self.processing == 0
    }

    /// Whether a key is being processed.
    pub fn is_processing(&self) -> bool {
        self.processing > 0
    }

    /// Keys that wait (`workqueue_depth`).
    pub fn depth(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether a key is to be processed, now or when its present run has ended.
    pub fn is_wanted(&self, key: Slot) -> bool {
        self.items.get(key.index()).is_some_and(Item::is_dirty)
    }

    /// What the queue has counted.
    pub fn metrics(&self) -> Metrics {
        self.metrics
    }

    fn push(&mut self, key: Slot) {
        let before = self.last.replace(key);
        if let Some(item) = self.items.get_mut(key.index()) {
            item.before = before;
            item.after = None;
        }
        match before.and_then(|before| self.items.get_mut(before.index())) {
            Some(item) => item.after = Some(key),
            None => self.first = Some(key),
        }
        self.len += 1;
    }

    fn unlink(&mut self, key: Slot) {
        let Some(item) = self.items.get_mut(key.index()) else { return };
        let (before, after) = (item.before.take(), item.after.take());
        match before.and_then(|before| self.items.get_mut(before.index())) {
            Some(item) => item.after = after,
            None => self.first = after,
        }
        match after.and_then(|after| self.items.get_mut(after.index())) {
            Some(item) => item.before = before,
            None => self.last = before,
        }
        self.len -= 1;
    }
}
