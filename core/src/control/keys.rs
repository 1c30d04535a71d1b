//! The keys of one controller: which wait, how fast it may send, whose status waits.

use crate::kind::Kind;
use crate::link::Slot;
use crate::queue::{Item, Next, Queue};
use crate::store::{Cache, Change, ChangeType, Owner};
use crate::time::{Duration, Instant};
use crate::wire::Uid;

use super::controller::ControllerInfo;
use super::rate::Bucket;

/// Memory for `N` keys.
#[derive(Debug)]
pub struct KeysMemory<const N: usize> {
    queue: Queue<[Item; N]>,
    status_since: [u32; N],
}

/// The keys of one controller: slots of objects of one kind.
#[derive(Debug)]
pub struct Keys<'a> {
    pub(crate) info: &'static ControllerInfo,
    pub(crate) queue: &'a mut Queue,
    /// Since when the status of each key waits to be written, in milliseconds; 0 if it does not.
    status_since: &'a mut [u32],
    pub(crate) bucket: Bucket,
    /// Syncs begun.
    pub(crate) syncs: u32,
}

impl<const N: usize> KeysMemory<N> {
    /// No keys: all bits zero.
    pub const NEW: Self = Self { queue: Queue::new(), status_since: [0; N] };

    /// A view of them, whatever their number.
    pub fn parts(&mut self, info: &'static ControllerInfo) -> Keys<'_> {
        let Self { queue, status_since } = self;
        Keys { info, queue, status_since, bucket: Bucket::FULL, syncs: 0 }
    }
}

impl Keys<'_> {
    /// The kind of object that they are slots of.
    pub(crate) const fn kind(&self) -> Kind {
        self.info.key
    }

    /// The next key to sync, and its uid.
    pub(crate) fn begin(&mut self, cache: &Cache<'_>) -> Option<(Slot, Uid)> {
        loop {
            let Next::Key(key) = self.queue.get() else { return None };
            if let Some(head) = cache.head(self.kind(), key) {
                self.syncs = self.syncs.wrapping_add(1);
                return Some((key, head.uid()));
            }
            self.queue.done(key);
        }
    }

    /// A sync is over.
    pub(crate) fn end(&mut self, cache: &mut Cache<'_>, key: Slot) {
        self.queue.done(key);
        if cache.head(self.kind(), key).is_none() && self.queue.retire(key) {
            cache.free(self.kind(), key);
        }
    }

    /// The object of a key has changed.
    pub(crate) fn changed(&mut self, cache: &mut Cache<'_>, change: &Change) {
        let Change { slot, event, same_version, uid_changed, .. } = *change;
        if event == ChangeType::Deleted || uid_changed {
            self.status_told(slot);
        }
        match event {
            ChangeType::Deleted => {
                if self.queue.retire(slot) {
                    cache.free(self.kind(), slot);
                }
            }
            // The echo of an own write whose answer was heard before.
            ChangeType::Updated if same_version => {}
            ChangeType::Updated | ChangeType::Added => self.queue.add(slot),
        }
    }

    /// The owner of an object has to look at it.
    pub(crate) fn add_owner(&mut self, owner: Owner) {
        if let Some(owner) = owner.of(self.kind()) {
            self.queue.add(owner);
        }
    }

    /// All who might adopt an orphan have to look at it.
    pub(crate) fn add_selecting(&mut self, cache: &Cache<'_>, members: Kind, orphan: Slot) {
        let (head, record) = (cache.head(members, orphan), cache.record(members, orphan));
        let (Some(head), Some(record)) = (head, record) else { return };
        for key in cache.selecting(self.kind(), head.namespace(), record.labels()) {
            self.queue.add(key);
        }
    }

    /// A pod of a key is ready: the key has to be looked at when it is available, too.
    pub(crate) fn add_when_available(&mut self, key: Slot, min_ready_seconds: i32, now: Instant) {
        if min_ready_seconds > 0 {
            let wait = Duration::from_secs(u64::from(min_ready_seconds.unsigned_abs()));
            self.queue.add_after(key, wait, now);
        }
    }

    /// How much of `lag` is left until a key's status has to be written, which may begin to wait now.
    pub(crate) fn lag_left(&mut self, key: Slot, lag: Duration, now: Instant) -> Option<Duration> {
        if lag == Duration::ZERO {
            return None;
        }
        let since = self.status_since.get_mut(key.index())?;
        if *since == 0 {
            *since = now.stamp();
        }
        let left = lag - now.since_stamp(*since);
        (left > Duration::ZERO).then_some(left)
    }

    /// The status of a key does not wait any more.
    pub(crate) fn status_told(&mut self, key: Slot) {
        if let Some(since) = self.status_since.get_mut(key.index()) {
            *since = 0;
        }
    }
}
