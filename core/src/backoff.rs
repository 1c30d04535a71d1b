//! Exponential back-off with jitter, as Kubernetes' reflectors do it.
//!
//! The n-th delay is `base · 2ⁿ`, at most `cap`, times a factor drawn from [1, 2). The sequence
//! starts over once `reset` has passed without a call.

use crate::time::{Duration, Instant};

/// The parameters of a back-off sequence.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The first delay, before jitter.
    pub base: Duration,
    /// The longest delay, before jitter.
    pub cap: Duration,
    /// Quiet time after which the sequence starts over.
    pub reset: Duration,
}

impl Policy {
    /// The reflector's: 0.8 s doubling to 30 s, forgotten after two quiet minutes.
    pub const REFLECTOR: Self = Self {
        base: Duration::from_millis(800),
        cap: Duration::from_secs(30),
        reset: Duration::from_secs(120),
    };
}

/// Where in its back-off sequence something is.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    policy: Policy,
    step: Duration,
    last: Option<Instant>,
}

impl Backoff {
    /// A sequence that has not begun.
    pub const fn new(policy: Policy) -> Self {
        Self { policy, step: policy.base, last: None }
    }

    /// The next delay. `random` is a fresh uniform number; it sets the jitter.
    pub fn next(&mut self, now: Instant, random: u32) -> Duration {
        if self.last.is_some_and(|last| now.since(last) > self.policy.reset) {
            self.step = self.policy.base;
        }
        self.last = Some(now);
        let delay = self.step;
        self.step = delay.saturating_mul(2).min(self.policy.cap);
        let jitter = (u128::from(delay.as_micros()) * u128::from(random)) >> 32;
        delay + Duration::from_micros(jitter as u64)
    }

    /// Starts the sequence over: what was tried has worked.
    pub fn reset(&mut self) {
        self.step = self.policy.base;
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(backoff: &mut Backoff, now: Instant, random: u32) -> u64 {
        backoff.next(now, random).as_millis()
    }

    #[test]
    fn doubles_to_the_cap_and_stays_there() {
        let mut backoff = Backoff::new(Policy::REFLECTOR);
        let delays: [u64; 8] = core::array::from_fn(|_| millis(&mut backoff, Instant::ZERO, 0));
        assert_eq!(delays, [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
    }

    #[test]
    fn jitter_is_at_least_one_and_less_than_two_times_the_delay() {
        let mut backoff = Backoff::new(Policy::REFLECTOR);
        assert_eq!(millis(&mut backoff, Instant::ZERO, 0), 800);
        backoff.reset();
        assert_eq!(millis(&mut backoff, Instant::ZERO, 1 << 31), 1200);
        backoff.reset();
        assert_eq!(millis(&mut backoff, Instant::ZERO, u32::MAX), 1599);
    }

    #[test]
    fn starts_over_after_quiet_time_only() {
        let mut backoff = Backoff::new(Policy::REFLECTOR);
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        assert_eq!(millis(&mut backoff, at(0), 0), 800);
        assert_eq!(millis(&mut backoff, at(120), 0), 1600);
        assert_eq!(millis(&mut backoff, at(241), 0), 800);
    }
}
