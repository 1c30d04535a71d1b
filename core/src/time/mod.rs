//! Time as the core sees it: an argument, never a system call.
//!
//! [`Instant`] is monotonic and counts from an arbitrary start (on a board: power-on). All timers
//! are instants. Both types count microseconds in a `u64`, because `core::time::Duration` drags
//! 128-bit arithmetic into firmware.
//!
//! [`Timestamp`] is wall-clock time, as objects carry it; [`WallClock`] tells it from the server's
//! `Date` and the monotonic clock.

mod duration_text;
mod http_date;
mod rfc3339;
mod timestamp;
mod wall;

pub use duration_text::InvalidDuration;
pub use rfc3339::Rfc3339;
pub use timestamp::Timestamp;
pub use wall::WallClock;

use core::ops::{Add, Sub};

/// A point on the monotonic clock, in microseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Instant(u64);

/// A span of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Duration(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);

    /// The instant `micros` microseconds after the start of the clock.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start of the clock.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The instant in little memory: milliseconds that begin again after 49 days, since only differences
    /// count; never 0.
    pub(crate) fn stamp(self) -> u32 {
        ((self.0 / 1_000) as u32).wrapping_add(1).max(1)
    }

    /// Time since a [`stamp`](Self::stamp), in whole milliseconds.
    pub(crate) fn since_stamp(self, earlier: u32) -> Duration {
        Duration::from_millis(u64::from(self.stamp().wrapping_sub(earlier)))
    }

    /// The beginning of its millisecond.
    pub(crate) const fn in_millis(self) -> Self {
        Self(self.0 / 1_000 * 1_000)
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// The span in whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000
    }

    /// `self × factor`, at most the longest span there is.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates: an instant past the end of the clock is "never".
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl Add for Duration {
    type Output = Duration;

    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Duration;

    /// Saturates at zero.
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}
