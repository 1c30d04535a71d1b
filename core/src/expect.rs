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
    creations: i32,
    deletions: i32,
    /// When they were set, in the two halves of an [`Instant`].
    since: [u32; 2],
    set: bool,
}

/// What each key awaits. `S` is `[Expected; N]` where it lives, `[Expected]` where it is used.
#[derive(Debug)]
pub struct Expectations<S: ?Sized = [Expected]> {
    expected: S,
}

impl<const N: usize> Expectations<[Expected; N]> {
    /// Nobody awaits anything.
    pub const fn new() -> Self {
        const { assert!(N <= Slot::MOST) };
        let nothing = Expected { creations: 0, deletions: 0, since: [0; 2], set: false };
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
        self.set(key, i32::from(count), 0, now);
    }

    /// The key awaits so many deletions, and nothing else.
    pub fn expect_deletions(&mut self, key: Slot, count: u16, now: Instant) {
        self.set(key, 0, i32::from(count), now);
    }

    /// A creation was seen, or will never come.
    pub fn creation_observed(&mut self, key: Slot) {
        if let Some(expected) = self.expected.get_mut(key.index()) {
            expected.creations = expected.creations.saturating_sub(i32::from(expected.set));
        }
    }

    /// The deletion of an awaited pod was seen, or will never come.
    pub fn deletion_observed(&mut self, key: Slot) {
        if let Some(expected) = self.expected.get_mut(key.index()) {
            expected.deletions = expected.deletions.saturating_sub(i32::from(expected.set));
        }
    }

    /// Whether the key may act: it awaits nothing more, or has waited too long.
    pub fn are_satisfied(&self, key: Slot, now: Instant) -> bool {
        self.expected.get(key.index()).is_none_or(|expected| {
            !expected.set
                || (expected.creations <= 0 && expected.deletions <= 0)
                || now.since(expected.since()) > TIMEOUT
        })
    }

    /// When [`are_satisfied`](Self::are_satisfied) will turn true at the latest, while it is not.
    pub fn expire_at(&self, key: Slot, now: Instant) -> Option<Instant> {
        let expected = self.expected.get(key.index())?;
        let just_after = TIMEOUT + Duration::from_micros(1);
        (!self.are_satisfied(key, now)).then(|| expected.since() + just_after)
    }

    /// The key's object is gone or another one now.
    pub fn forget(&mut self, key: Slot) {
        if let Some(expected) = self.expected.get_mut(key.index()) {
            expected.set = false;
        }
    }

    fn set(&mut self, key: Slot, creations: i32, deletions: i32, now: Instant) {
        let now = now.as_micros();
        if let Some(expected) = self.expected.get_mut(key.index()) {
            let since = [now as u32, (now >> 32) as u32];
            *expected = Expected { creations, deletions, since, set: true };
        }
    }
}

impl Expected {
    fn since(&self) -> Instant {
        let [low, high] = self.since;
        Instant::from_micros(u64::from(low) | u64::from(high) << 32)
    }
}
