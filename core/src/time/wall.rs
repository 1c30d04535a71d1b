//! The wall clock: the server's time, carried on by the monotonic clock.
//!
//! A board has no battery-backed clock, and Kubernetes' timestamps are written by the server; so
//! the server's `Date` is the time. Before the first answer it is unknown, and verdicts that need
//! it wait.

use super::{Duration, Instant, Timestamp};

/// What is known of wall-clock time.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock {
    reading: Option<(Instant, Timestamp)>,
    /// A `Date` from before that time: the server's clock was set, or the answer was long on its way.
    earlier: Option<(Instant, Timestamp)>,
}

/// Clocks that differ by no more agree: `Date` has whole seconds, and answers take their time.
const AGREE: Duration = Duration::from_secs(2);

impl WallClock {
    /// A clock that does not know the time yet.
    pub const fn new() -> Self {
        Self { reading: None, earlier: None }
    }

    /// Takes over the time of a server that answered at `now` with this `Date`.
    ///
    /// `Date` is cut to whole seconds, so an answer that shows the second the clock has anyway
    /// tells nothing new; ignoring it keeps the clock from stepping back and forth within a second.
    ///
    /// An answer that was long on its way shows an earlier time, never a later one. So the clock goes
    /// back only when two answers in a row agree on that.
    pub fn set(&mut self, now: Instant, date: Timestamp) {
        let earlier = self.earlier.take();
        match self.at(now) {
            Some(time) if time.as_secs() == date.as_secs() => {}
            Some(time) if date < time && !earlier.is_some_and(|it| agrees(it, now, date)) => {
                self.earlier = Some((now, date));
            }
            _ => self.reading = Some((now, date)),
        }
    }

    /// The time at `now`; `None` before the first answer of a server.
    pub fn at(&self, now: Instant) -> Option<Timestamp> {
        let (read_at, date) = self.reading?;
        Some(date.saturating_add(now.since(read_at)))
    }
}

/// Whether a clock that was read before shows about this time now.
fn agrees(reading: (Instant, Timestamp), now: Instant, date: Timestamp) -> bool {
    let (read_at, then) = reading;
    let expected = then.saturating_add(now.since(read_at));
    expected <= date.saturating_add(AGREE) && date <= expected.saturating_add(AGREE)
}

#[cfg(test)]
mod tests {
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
        clock.set(millis(300), Timestamp::from_secs(2_000));
        assert_eq!(micros(&clock, millis(300)), Some(2_000_000_000));
    }

    #[test]
    fn an_answer_that_was_long_on_its_way_does_not_turn_it_back() {
        let mut clock = WallClock::new();
        clock.set(millis(0), Timestamp::from_secs(1_000));
        clock.set(millis(60_000), Timestamp::from_secs(1_015));
        assert_eq!(micros(&clock, millis(60_000)), Some(1_060_000_000));
        // Nor do several that were delayed by different times.
        clock.set(millis(61_000), Timestamp::from_secs(1_040));
        clock.set(millis(62_000), Timestamp::from_secs(1_062));
        clock.set(millis(63_000), Timestamp::from_secs(1_043));
        assert_eq!(micros(&clock, millis(63_000)), Some(1_063_000_000));
    }
}
