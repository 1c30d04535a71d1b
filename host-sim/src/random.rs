//! The one source of randomness of a server, seeded by whoever starts it.

use std::fmt::Write;

/// SplitMix64: tiny, fast, and the same sequence for the same seed on every machine.
///
/// It names objects and spreads timers; nothing secret is made from it.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that repeats exactly for the same seed.
    pub const fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A generator that nobody can repeat.
    pub fn from_entropy() -> Self {
        use std::hash::{BuildHasher, Hasher, RandomState};
        // The standard library seeds its hash maps from the operating system.
        Self::from_seed(RandomState::new().build_hasher().finish())
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The product's high half is unbiased enough for names and jitter.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A UUID of version 4.
    pub fn uuid(&mut self) -> String {
        let high = (self.next_u64() & !0xf000) | 0x4000;
        let low = (self.next_u64() & !(0b11 << 62)) | (0b10 << 62);
        let mut text = String::with_capacity(36);
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_version_four_and_repeat_for_a_seed() {
        let mut one = Random::from_seed(7);
        let mut two = Random::from_seed(7);
        for _ in 0..1000 {
            let uuid = one.uuid();
            assert_eq!(uuid, two.uuid());
            let bytes = uuid.as_bytes();
            assert_eq!((uuid.len(), bytes[14]), (36, b'4'));
            assert!(matches!(bytes[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
        }
    }

    #[test]
    fn below_reaches_every_value_and_never_the_bound() {
        let mut random = Random::from_seed(1);
        let mut seen = [false; 27];
        for _ in 0..2000 {
            seen[random.below(27) as usize] = true;
        }
        assert!(seen.iter().all(|hit| *hit));
    }
}
