//! Expectations: a ReplicaSet that has asked for pods to be created or deleted waits until its
//! cache has seen them before it decides again.
//!
//! Creations are counted. Deletions are counted too, but only of the very pods that were asked
//! for: the cache marks those, see [`Cache::expect_deletions`](crate::store::Cache), and reports
//! each mark once. So the set of awaited pods costs one bit a pod.

use crate::link::Slot;
use crate::time::{Duration, Instant};

/// After so long without being met, expectations no longer hold a ReplicaSet back.
pub const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What one key awaits. [`Expectations`] holds one per slot.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Creations and deletions still awaited; more may be seen than were awaited.
    creations: i16,
    deletions: i16,
    /// When they were set, in [milliseconds](Instant::stamp); 0 if they are not.
    since: u32,
}

const _: () = assert!(size_of::<Expected>() == 8);

/// What each key awaits. `S` is `[Expected; N]` where it lives, `[Expected]` where it is used.
#[derive(Debug)]
pub struct Expectations<S: ?Sized = [Expected]> {
    expected: S,
}

impl<const N: usize> Expectations<[Expected; N]> {
    /// Nobody awaits anything.
    pub const fn new() -> Self {
        const { assert!(N <= Slot::MOST) };
        let nothing = Expected { creations: 0, deletions: 0, since: 0 };
        Self { expected: [nothing; N] }
    }
}

impl<const N: usize> Default for Expectations<[Expected; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl Expectations {
    /// The key awaits so many creations, and nothing else.
    pub fn expect_creations(&mut self, key: Slot, count: u16, now: Instant) {
        self.set(key, limited(count), 0, now);
    }

    /// The key awaits so many deletions, and nothing else.
    pub fn expect_deletions(&mut self, key: Slot, count: u16, now: Instant) {
        self.set(key, 0, limited(count), now);
    }

    /// A creation was seen, or will never come.
    pub fn creation_observed(&mut self, key: Slot) {
        if let Some(expected) = self.expected.get_mut(key.index()) {
            expected.creations = expected.creations.saturating_sub(i16::from(expected.is_set()));
        }
    }

    /// The deletion of an awaited pod was seen, or will never come.
    pub fn deletion_observed(&mut self, key: Slot) {
        if let Some(expected) = self.expected.get_mut(key.index()) {
            expected.deletions = expected.deletions.saturating_sub(i16::from(expected.is_set()));
        }
    }

    /// Whether the key may act: it awaits nothing more, or has waited too long.
    pub fn are_satisfied(&self, key: Slot, now: Instant) -> bool {
        self.expected.get(key.index()).is_none_or(|expected| {
            !expected.is_set()
                || (expected.creations <= 0 && expected.deletions <= 0)
                || now.since_stamp(expected.since) > TIMEOUT
        })
    }

    /// When [`are_satisfied`](Self::are_satisfied) will turn true at the latest, while it is not.
    pub fn expire_at(&self, key: Slot, now: Instant) -> Option<Instant> {
        let expected = self.expected.get(key.index())?;
        let just_after = TIMEOUT + Duration::from_millis(1);
        let left = just_after - now.since_stamp(expected.since);
        (!self.are_satisfied(key, now)).then(|| now.in_millis() + left)
    }

    /// The key's object is gone or another one now.
    pub fn forget(&mut self, key: Slot) {
        if let Some(expected) = self.expected.get_mut(key.index()) {
            expected.since = 0;
        }
    }

    /// Nobody awaits anything any more.
    pub fn forget_all(&mut self) {
        self.expected.iter_mut().for_each(|expected| expected.since = 0);
    }

    fn set(&mut self, key: Slot, creations: i16, deletions: i16, now: Instant) {
        if let Some(expected) = self.expected.get_mut(key.index()) {
            *expected = Expected { creations, deletions, since: now.stamp() };
        }
    }
}

impl Expected {
    fn is_set(&self) -> bool {
        self.since != 0
    }
}

/// A sync asks for far fewer.
fn limited(count: u16) -> i16 {
    i16::try_from(count).unwrap_or(i16::MAX)
}
