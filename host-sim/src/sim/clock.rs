//! Virtual time.
//!
//! There is one true time, which nobody in the simulation sees. Each party has a clock of its own
//! that is derived from it: the server's wall clock may be set wrong, a controller's monotonic
//! clock may run fast or slow and starts anew at every boot.

use picokube_core::time::Instant;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// True time: microseconds since the simulation began.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment(u64);

/// The wall-clock time at which every simulation begins: 2026-01-01T00:00:00Z.
const BEGIN_UNIX_MILLIS: i64 = 1_767_225_600_000;
/// What the monotonic clock of a controller shows when it begins to run.
const BOOT_MICROS: u64 = 3_000_000;

impl Moment {
    /// So many microseconds after the beginning.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// So many milliseconds after the beginning.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1000)
    }

    /// So many seconds after the beginning.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1_000_000)
    }

    /// Microseconds since the beginning.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The moment `micros` later.
    pub const fn plus_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// The moment `millis` later.
    pub const fn plus_millis(self, millis: u64) -> Self {
        self.plus_micros(millis.saturating_mul(1000))
    }

    /// The moment `seconds` later.
    pub const fn plus_secs(self, seconds: u64) -> Self {
        self.plus_millis(seconds.saturating_mul(1000))
    }

    /// The moment `seconds` before, or the beginning.
    pub(super) const fn minus_secs(self, seconds: u64) -> Self {
        Self(self.0.saturating_sub(seconds.saturating_mul(1_000_000)))
    }

    /// Microseconds since `earlier`; 0 if that is later.
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The right wall-clock time.
    pub const fn wall(self) -> Timestamp {
        Timestamp::from_unix_millis(BEGIN_UNIX_MILLIS + (self.0 / 1000) as i64)
    }

    /// The first moment at which the right wall clock shows `wall`, or the beginning.
    pub fn of_wall(wall: Timestamp) -> Self {
        Self::from_millis(wall.unix_millis().saturating_sub(BEGIN_UNIX_MILLIS).max(0) as u64)
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>10.3}", self.as_secs_f64())
    }
}

/// A monotonic clock that began at a boot and need not be exact.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceClock {
    booted: Moment,
    /// How fast it runs, in thousandths: 1000 is right.
    rate: u64,
}

impl DeviceClock {
    pub(super) const fn new(booted: Moment, rate: u64) -> Self {
        Self { booted, rate }
    }

    /// What it shows.
    pub(super) fn at(&self, now: Moment) -> Instant {
        Instant::from_micros(BOOT_MICROS + now.micros_since(self.booted) * self.rate / 1000)
    }

    /// The first moment at which it shows `instant`.
    pub(super) fn when(&self, instant: Instant) -> Moment {
        let local = instant.as_micros().saturating_sub(BOOT_MICROS);
        // Rounded up: a timer never fires early.
        let micros = (u128::from(local) * 1000).div_ceil(u128::from(self.rate));
        self.booted.plus_micros(u64::try_from(micros).unwrap_or(u64::MAX / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_of_a_drifting_clock_is_due_when_it_fires() {
        for rate in [900, 999, 1000, 1001, 1100] {
            let clock = DeviceClock::new(Moment::from_micros(12_345), rate);
            for micros in [0, 1, 2, 3, 999, 1_000_000, 86_400_000_001] {
                let due = Instant::from_micros(BOOT_MICROS + micros);
                let fires = clock.when(due);
                assert!(clock.at(fires) >= due, "{rate} {micros}");
                let before = Moment::from_micros(fires.as_micros().saturating_sub(2));
                assert!(micros < 3 || clock.at(before) < due, "{rate} {micros}");
            }
        }
    }
}
