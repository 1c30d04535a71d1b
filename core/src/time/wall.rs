//! The wall clock: the server's time, carried on by the monotonic clock.
//!
//! A board has no battery-backed clock, and Kubernetes' timestamps are written by the server; so
//! the server's `Date` is the time. Before the first answer it is unknown, and verdicts that need
//! it wait.

use super::{Instant, Timestamp};

/// What is known of wall-clock time.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock {
    reading: Option<(Instant, Timestamp)>,
}

impl WallClock {
    /// A clock that does not know the time yet.
    pub const fn new() -> Self {
        Self { reading: None }
    }

    /// Takes over the time of a server that answered at `now` with this `Date`.
    ///
    /// `Date` is cut to whole seconds, so an answer that shows the second the clock has anyway
    /// tells nothing new; ignoring it keeps the clock from stepping back and forth within a second.
    pub fn set(&mut self, now: Instant, date: Timestamp) {
        let known = self.at(now).is_some_and(|time| time.as_secs() == date.as_secs());
        if !known {
            self.reading = Some((now, date));
        }
    }

    /// The time at `now`; `None` before the first answer of a server.
    pub fn at(&self, now: Instant) -> Option<Timestamp> {
        let (read_at, date) = self.reading?;
        Some(date.saturating_add(now.since(read_at)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Duration;
    use super::*;

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn micros(clock: &WallClock, now: Instant) -> Option<i64> {
        clock.at(now).map(Timestamp::as_micros)
    }

    #[test]
    fn is_unknown_before_the_first_answer() {
        assert_eq!(WallClock::new().at(millis(5)), None);
    }

    #[test]
    fn runs_on_with_the_monotonic_clock() {
        let mut clock = WallClock::new();
        clock.set(millis(5_000), Timestamp::from_secs(1_000));
        assert_eq!(micros(&clock, millis(5_000)), Some(1_000_000_000));
        assert_eq!(micros(&clock, millis(7_500)), Some(1_002_500_000));
    }

    #[test]
    fn an_answer_within_the_same_second_does_not_turn_it_back() {
        let mut clock = WallClock::new();
        clock.set(millis(0), Timestamp::from_secs(1_000));
        clock.set(millis(900), Timestamp::from_secs(1_000));
        assert_eq!(micros(&clock, millis(900)), Some(1_000_900_000));
    }

    #[test]
    fn follows_a_server_whose_clock_was_set() {
        let mut clock = WallClock::new();
        clock.set(millis(0), Timestamp::from_secs(1_000));
        clock.set(millis(100), Timestamp::from_secs(5_000));
        assert_eq!(micros(&clock, millis(100)), Some(5_000_000_000));
        clock.set(millis(200), Timestamp::from_secs(2_000));
        assert_eq!(micros(&clock, millis(200)), Some(2_000_000_000));
    }
}
