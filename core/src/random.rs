//! Pseudo-random numbers for jitter; nothing secret is made of them.

/// Marsaglia's xorshift32.
#[derive(Clone, Debug)]
pub struct Random(u32);

impl Random {
    /// A sequence that depends on `seed` only. Zero, which would yield zeros for ever, is replaced.
    pub const fn new(seed: u32) -> Self {
        Self(if seed == 0 { 0x9e37_79b9 } else { seed })
    }

    /// The next number, of which all but zero are equally likely.
    pub fn draw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}
