//! The client-side rate limit: a token bucket per controller.

use crate::time::{Duration, Instant};

/// A token bucket: so many requests a second, so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rate {
    /// Requests a second (`--kube-api-qps`).
    pub qps: u32,
    /// Requests at once (`--kube-api-burst`).
    pub burst: u32,
}

impl Rate {
    /// Kubernetes' default: 20 a second, 30 at once.
    pub const KUBERNETES: Self = Self { qps: 20, burst: 30 };
}

/// The bucket of one controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// When all tokens will be there again.
    full_at: Instant,
}

impl Bucket {
    pub(crate) const FULL: Self = Self { full_at: Instant::ZERO };

    /// When a token is there: now or earlier, if there is one.
    pub(crate) fn ready_at(&self, rate: Option<Rate>) -> Instant {
        let Some(rate) = rate else { return Instant::ZERO };
        let tokens = token(rate).saturating_mul(u64::from(rate.burst.max(1)) - 1);
        Instant::from_micros(self.full_at.as_micros().saturating_sub(tokens.as_micros()))
    }

    /// Takes a token.
    pub(crate) fn take(&mut self, rate: Option<Rate>, now: Instant) {
        if let Some(rate) = rate {
            self.full_at = self.full_at.max(now) + token(rate);
        }
    }
}

fn token(rate: Rate) -> Duration {
    Duration::from_micros(1_000_000 / u64::from(rate.qps.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_at_once_then_so_many_a_second() {
        let rate = Some(Rate { qps: 20, burst: 30 });
        let start = Instant::from_micros(7_000_000);
        let mut bucket = Bucket::FULL;
        for number in 0..30 {
            assert!(bucket.ready_at(rate) <= start, "{number}");
            bucket.take(rate, start);
        }
        assert_eq!(bucket.ready_at(rate), start + Duration::from_millis(50));
        bucket.take(rate, start + Duration::from_millis(50));
        assert_eq!(bucket.ready_at(rate), start + Duration::from_millis(100));
        let later = start + Duration::from_secs(100);
        (0..30).for_each(|_| bucket.take(rate, later));
        assert_eq!(bucket.ready_at(rate), later + Duration::from_millis(50));
    }

    #[test]
    fn without_a_rate_there_is_always_a_token() {
        let mut bucket = Bucket::FULL;
        (0..1000).for_each(|_| bucket.take(None, Instant::ZERO));
        assert_eq!(bucket.ready_at(None), Instant::ZERO);
    }
}
