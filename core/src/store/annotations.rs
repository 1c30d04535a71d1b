//! The annotations that a Deployment hands on to its ReplicaSets, as fingerprints.

use heapless::Vec;

use crate::limits;
use crate::sort::heap_sort;
use crate::text::{Interner, Text, TextFull};
use crate::wire::SharedAnnotations;

/// Interned fingerprints of annotations, or a digest of them all where there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    prints: Text,
    digest_only: bool,
}

/// Bytes of one fingerprint.
const PRINT: usize = 8;

impl Annotations {
    /// No annotations.
    pub const EMPTY: Self = Self { prints: Text::EMPTY, digest_only: false };

    pub(super) fn intern(
        texts: &mut Interner,
        annotations: &SharedAnnotations,
    ) -> Result<Self, TextFull> {
        if annotations.overflowed {
            let digest = annotations.digest.to_bits().to_le_bytes();
            return Ok(Self { prints: texts.intern(&digest)?, digest_only: true });
        }
        let mut sorted = annotations.prints.clone();
        heap_sort(&mut sorted, Ord::cmp);
        let mut bytes: Vec<u8, { limits::ANNOTATIONS * PRINT }> = Vec::new();
        let all = sorted.iter().map(|print| print.to_bits().to_le_bytes());
        bytes.extend(all.flatten());
        Ok(Self { prints: texts.intern(&bytes)?, digest_only: false })
    }

    pub(super) fn release(self, texts: &mut Interner) {
        texts.release(self.prints);
    }

    /// Whether every annotation of `other` is here with the same value; `None` if there were too
    /// many to tell them apart and the two are not simply equal.
    pub fn contains(self, texts: &Interner, other: Self) -> Option<bool> {
        if self == other {
            return Some(true);
        }
        if self.digest_only || other.digest_only {
            return None;
        }
        let here = |wanted: &[u8]| self.prints(texts).any(|print| print == wanted);
        Some(other.prints(texts).all(here))
    }

    /// What fills up the last piece is no fingerprint.
    fn prints(self, texts: &Interner) -> impl Iterator<Item = &[u8]> {
        let prints = texts.pieces_backwards(self.prints).flat_map(|piece| piece.chunks(PRINT));
        prints.filter(|print| *print != [0; PRINT])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Digest;
    use crate::text::Fingerprint;

    fn shared(pairs: &[&str]) -> SharedAnnotations {
        let mut shared = SharedAnnotations::default();
        for pair in pairs {
            if shared.prints.push(Fingerprint::of(pair)).is_err() {
                shared.overflowed = true;
            }
        }
        shared.digest = Digest::from_bits(pairs.len() as u128);
        shared
    }

    #[test]
    fn contains_wants_all_and_takes_more() {
        let mut texts = Interner::<[_; 40]>::new();
        let texts: &mut Interner = &mut texts;
        let mut intern = |pairs: &[&str]| Annotations::intern(texts, &shared(pairs)).unwrap();
        let three = intern(&["a=1", "b=2", "c=3"]);
        let two = intern(&["c=3", "a=1"]);
        let changed = intern(&["c=4"]);
        let many: std::vec::Vec<_> = (0..=limits::ANNOTATIONS).map(|_| "x=y").collect();
        let too_many = intern(&many);
        assert_eq!(three.contains(texts, two), Some(true));
        assert_eq!(two.contains(texts, three), Some(false));
        assert_eq!(three.contains(texts, changed), Some(false));
        assert_eq!(three.contains(texts, Annotations::EMPTY), Some(true));
        assert_eq!(too_many.contains(texts, too_many), Some(true));
        assert_eq!(too_many.contains(texts, two), None);
        assert_eq!(two.contains(texts, too_many), None);
        [three, two, changed, too_many].into_iter().for_each(|all| all.release(texts));
        assert_eq!(texts.used(), 0);
    }
}
