//! The labels of a cached object: an interned sequence of fingerprints.
//!
//! The label `pod-template-hash` comes last in the sequence. It is the only one that differs
//! between the ReplicaSets of a Deployment, so that their sets share everything before it.

use super::interner::PIECE;
use super::{Fingerprint, Interner, Label, Text, TextFull};

/// The fingerprint of `pod-template-hash`; a test compares it.
const POD_TEMPLATE_HASH: Fingerprint = Fingerprint::from_bits(0xdae9_9225_aa9a_9aaa);

/// Interned labels. Equal maps have equal handles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LabelSet(Text);

impl LabelSet {
    /// No labels at all.
    pub const EMPTY: Self = Self(Text::EMPTY);

    /// Interns labels that are in order and without repetition, as
    /// [`Labels::as_slice`](super::Labels::as_slice) gives them.
    pub fn intern(texts: &mut Interner, labels: &[Label]) -> Result<Self, TextFull> {
        let is_hash = |label: &&Label| label.key == POD_TEMPLATE_HASH;
        let first = labels.iter().filter(|label| !is_hash(label));
        let last = labels.iter().filter(is_hash);
        texts.intern_pieces(first.chain(last).map(|label| encode(*label))).map(Self)
    }

    /// Another handle to the same labels.
    pub fn retain(self, texts: &mut Interner) -> Self {
        texts.retain(self.0);
        self
    }

    /// Gives the handle back.
    pub fn release(self, texts: &mut Interner) {
        texts.release(self.0);
    }

    /// Whether there is no label.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The value of the label with this key.
    pub fn value(self, texts: &Interner, key: Fingerprint) -> Option<Fingerprint> {
        self.iter(texts).find(|label| label.key == key).map(|label| label.value)
    }

    /// Whether every label of `other` is here with the same value.
    pub fn contains(self, texts: &Interner, other: Self) -> bool {
        self == other
            || other.iter(texts).all(|label| self.value(texts, label.key) == Some(label.value))
    }

    /// All labels, in no order that means anything.
    pub fn iter(self, texts: &Interner) -> impl Iterator<Item = Label> + '_ {
        texts.pieces_backwards(self.0).filter_map(decode)
    }
}

/// Two fingerprints as one piece of an interned sequence.
pub(super) fn encode(label: Label) -> [u8; PIECE] {
    let both = u128::from(label.key.to_bits()) | u128::from(label.value.to_bits()) << 64;
    both.to_le_bytes()
}

pub(super) fn decode(piece: &[u8]) -> Option<Label> {
    let both = u128::from_le_bytes(piece.try_into().ok()?);
    Some(Label {
        key: Fingerprint::from_bits(both as u64),
        value: Fingerprint::from_bits((both >> 64) as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Labels;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let mut labels = Labels::new();
        pairs.iter().for_each(|(key, value)| labels.insert_text(key, value));
        labels
    }

    fn intern(texts: &mut Interner, pairs: &[(&str, &str)]) -> LabelSet {
        LabelSet::intern(texts, labels(pairs).as_slice().unwrap()).unwrap()
    }

    #[test]
    fn the_hash_label_is_known() {
        assert_eq!(POD_TEMPLATE_HASH, Fingerprint::of("pod-template-hash"));
    }

    #[test]
    fn replica_sets_of_a_deployment_share_all_but_the_hash() {
        let mut texts = Interner::<[_; 20]>::new();
        let texts: &mut Interner = &mut texts;
        let common = [("app", "web"), ("tier", "front"), ("track", "stable"), ("zone", "a")];
        intern(texts, &common);
        assert_eq!(texts.used(), 4);
        for hash in ["7d4b9c6f5d", "5f8b6c", "66b6c48dd5"] {
            let used = texts.used();
            let mut own = common.to_vec();
            own.push(("pod-template-hash", hash));
            intern(texts, &own);
            assert_eq!(texts.used(), used + 1);
        }
    }

    #[test]
    fn contains_compares_values_too() {
        let mut texts = Interner::<[_; 20]>::new();
        let texts: &mut Interner = &mut texts;
        let all = intern(texts, &[("a", "1"), ("b", "2"), ("c", "3")]);
        let some = intern(texts, &[("a", "1"), ("c", "3")]);
        let other = intern(texts, &[("a", "1"), ("c", "4")]);
        let more = intern(texts, &[("a", "1"), ("d", "1")]);
        assert!(all.contains(texts, all) && all.contains(texts, some));
        assert!(!all.contains(texts, other) && !all.contains(texts, more));
        assert!(!some.contains(texts, all) && all.contains(texts, LabelSet::EMPTY));
        assert!(!LabelSet::EMPTY.contains(texts, some));
        for set in [all, some, other, more] {
            set.release(texts);
        }
        assert_eq!(texts.used(), 0);
    }
}
