//! A canonical 128-bit digest of a JSON value.

/// A canonical digest: equal values have equal digests, whatever the order of their members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Digest(u128);

impl Digest {
    /// The digest with these bits.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits of the digest.
    pub const fn to_bits(self) -> u128 {
        self.0
    }
}
