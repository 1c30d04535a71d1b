//! How long a failed key waits: Kubernetes' default limits for controllers.

use crate::time::{Duration, Instant};

const ITEM_BASE: Duration = Duration::from_millis(5);
const ITEM_CAP: Duration = Duration::from_secs(1000);
/// 10 tokens a second.
const TOKEN_EVERY: Duration = Duration::from_millis(100);
const BURST: u64 = 100;

/// The back-off of one key after `requeues` earlier tries: 5 ms, doubling, at most 1000 s.
pub const fn item_delay(requeues: u16) -> Duration {
    // The cap is reached at 18 doublings.
    let doublings = if requeues < 32 { requeues } else { 32 };
    let delay = ITEM_BASE.saturating_mul(1 << doublings);
    if delay.as_micros() < ITEM_CAP.as_micros() { delay } else { ITEM_CAP }
}

/// The limit that all keys of a queue share: 10 tokens a second, 100 at once.
///
/// Reservation style: every call takes a token, if need be one of the future, and is told how
/// long to wait for it.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// When the bucket will be full again if nobody takes a token any more. The start of the
    /// clock, all zero bits, for a bucket nobody has used.
    full_at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub const fn new() -> Self {
        Self { full_at: Instant::ZERO }
    }

    /// Takes a token and says how long to wait for it.
    pub fn reserve(&mut self, now: Instant) -> Duration {
        self.full_at = self.full_at.max(now) + TOKEN_EVERY;
        self.full_at.since(now) - TOKEN_EVERY.saturating_mul(BURST)
    }
}

impl Default for TokenBucket {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_waits_twice_as_long_each_time() {
        let delays: std::vec::Vec<_> = (0..20).map(|n| item_delay(n).as_millis()).collect();
        assert_eq!(delays[..4], [5, 10, 20, 40]);
        assert_eq!(delays[14], 81_920);
        assert_eq!(delays[..15].iter().sum::<u64>(), 163_835);
        assert_eq!(delays[17], 655_360);
        assert_eq!(delays[18..], [1_000_000, 1_000_000]);
        assert_eq!(item_delay(u16::MAX), ITEM_CAP);
    }

    #[test]
    fn a_hundred_at_once_then_ten_a_second() {
        for start in [0, 5_000_000, 1 << 60] {
            let mut bucket = TokenBucket::new();
            let at = |micros: u64| Instant::from_micros(start + micros);
            for call in 0..100 {
                assert_eq!(bucket.reserve(at(0)), Duration::ZERO, "call {call}");
            }
            assert_eq!(bucket.reserve(at(0)).as_millis(), 100);
            assert_eq!(bucket.reserve(at(0)).as_millis(), 200);
            assert_eq!(bucket.reserve(at(50_000)).as_millis(), 250);
            // Three tokens are owed; after ten more seconds the bucket holds 97.
            for _ in 0..97 {
                assert_eq!(bucket.reserve(at(10_000_000)), Duration::ZERO);
            }
            assert_eq!(bucket.reserve(at(10_000_000)).as_millis(), 100);
        }
    }

    #[test]
    fn never_holds_more_than_the_burst() {
        let mut bucket = TokenBucket::new();
        bucket.reserve(Instant::ZERO);
        let later = Instant::ZERO + Duration::from_secs(86_400);
        for _ in 0..100 {
            assert_eq!(bucket.reserve(later), Duration::ZERO);
        }
        assert_eq!(bucket.reserve(later).as_millis(), 100);
    }
}
