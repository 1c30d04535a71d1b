//! A 64-bit stand-in for a text that is only ever compared for equality.
//!
//! Label keys, label values and annotation values are never shown or sent by the controllers, so
//! the cache keeps a fingerprint of each. The hash is SipHash-1-3, whose output is
//! indistinguishable from random for texts that were not chosen to collide. A wrong match needs
//! two different values *under the same key in the same namespace* to share all 64 bits: with
//! ten million comparisons of distinct values in a cache's life the chance is below 10⁻¹². Texts
//! chosen to collide gain nothing, because whoever may set such a label on an object may set the
//! true one as well.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

/// The fingerprint of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of `text`.
    pub fn of(text: &str) -> Self {
        let mut hasher = FingerprintHasher::new();
        hasher.push(text.as_bytes());
        hasher.finish()
    }

    /// The fingerprint with these bits, as [`to_bits`](Self::to_bits) gave them.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The 64 bits of the fingerprint.
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// Takes the fingerprint of a text that arrives in fragments of any size.
#[derive(Clone, Copy, Debug)]
pub struct FingerprintHasher(SipHasher13);

impl FingerprintHasher {
    /// A hasher that has seen nothing.
    pub fn new() -> Self {
        Self(SipHasher13::new())
    }

    /// Takes in the next bytes of the text (UTF-8, escapes already resolved).
    pub fn push(&mut self, fragment: &[u8]) {
        self.0.write(fragment);
    }

    /// The fingerprint of everything pushed.
    pub fn finish(&self) -> Fingerprint {
        Fingerprint(self.0.finish())
    }
}

impl Default for FingerprintHasher {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_gives_the_same_fingerprint() {
        let text = "app.kubernetes.io/managed-by=picokube";
        let whole = Fingerprint::of(text);
        for split in 0..=text.len() {
            for second in split..=text.len() {
                let mut hasher = FingerprintHasher::new();
                hasher.push(&text.as_bytes()[..split]);
                hasher.push(&text.as_bytes()[split..second]);
                hasher.push(&text.as_bytes()[second..]);
                assert_eq!(hasher.finish(), whole, "split at {split} and {second}");
            }
        }
    }

    #[test]
    fn differs_from_its_prefixes_and_from_the_empty_text() {
        let text = "a".repeat(crate::limits::LABEL_KEY);
        let mut seen = std::collections::HashSet::new();
        for len in 0..=text.len() {
            assert!(seen.insert(Fingerprint::of(&text[..len])), "prefix of {len} bytes repeats");
        }
    }
}
