//! The labels of a cached object: an interned sequence of fingerprints.
//!
//! The labels that tell objects of one workload apart come last in the sequence, so that their sets share
//! everything before: `pod-template-hash` of the ReplicaSets of a Deployment, and what the pods and revisions
//! of a StatefulSet have, with what most of them differ in at the very end.

use super::interner::Piece;
use super::{Fingerprint, Interner, Label, Text, TextFull};

/// The fingerprints of the keys that come last, in this order; a test compares them.
const LAST: &[Fingerprint] = &[
    // pod-template-hash
    Fingerprint::from_bits(0xdae9_9225_aa9a_9aaa),
    // controller.kubernetes.io/hash
    #[cfg(feature = "statefulset")]
    Fingerprint::from_bits(0x5e8e_ee30_81ce_2b91),
    // controller-revision-hash
    #[cfg(feature = "statefulset")]
    Fingerprint::from_bits(0x8fa3_e80c_3863_69e7),
    // apps.kubernetes.io/pod-index
    #[cfg(feature = "statefulset")]
    Fingerprint::from_bits(0xf924_73a1_7d16_6d7e),
    // statefulset.kubernetes.io/pod-name
    #[cfg(feature = "statefulset")]
    Fingerprint::from_bits(0x8595_60e2_727d_7af3),
];

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
        let first = labels.iter().filter(|label| !LAST.contains(&label.key));
        let last = LAST.iter().filter_map(|key| labels.iter().find(|label| label.key == *key));
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
        texts.pieces_backwards(self.0).map(decode)
    }
}

/// Two fingerprints as one piece of an interned sequence.
pub(super) fn encode(label: Label) -> Piece {
    let both = u128::from(label.key.to_bits()) | u128::from(label.value.to_bits()) << 64;
    both.to_le_bytes()
}

pub(super) fn decode(piece: &Piece) -> Label {
    let both = u128::from_le_bytes(*piece);
    Label {
        key: Fingerprint::from_bits(both as u64),
        value: Fingerprint::from_bits((both >> 64) as u64),
    }
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
    fn the_labels_that_come_last_are_known() {
        let keys = [
            "pod-template-hash",
            #[cfg(feature = "statefulset")]
            "controller.kubernetes.io/hash",
            #[cfg(feature = "statefulset")]
            "controller-revision-hash",
            #[cfg(feature = "statefulset")]
            "apps.kubernetes.io/pod-index",
            #[cfg(feature = "statefulset")]
            "statefulset.kubernetes.io/pod-name",
        ];
        assert_eq!(LAST, keys.map(Fingerprint::of));
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

    #[cfg(feature = "statefulset")]
    #[test]
    fn pods_and_revisions_of_a_stateful_set_share_all_but_what_tells_them_apart() {
        let mut texts = Interner::<[_; 30]>::new();
        let texts: &mut Interner = &mut texts;
        let common = [("app", "db"), ("tier", "back"), ("track", "stable"), ("zone", "a")];
        let mut sets = std::vec![intern(texts, &common)];
        for (hash, pods) in [("db-7865cc96f7", ["0", "1"]), ("db-5c4b8f6d9", ["2", "3"])] {
            let mut own = common.to_vec();
            let used = texts.used();
            own.push(("controller.kubernetes.io/hash", hash));
            sets.push(intern(texts, &own));
            assert_eq!(texts.used(), used + 1, "a revision");
            own.pop();
            own.push(("controller-revision-hash", hash));
            for (more, index) in [3, 2].into_iter().zip(pods) {
                let used = texts.used();
                own.push(("statefulset.kubernetes.io/pod-name", index));
                own.push(("apps.kubernetes.io/pod-index", index));
                sets.push(intern(texts, &own));
                own.truncate(common.len() + 1);
                assert_eq!(texts.used(), used + more, "pod {index}");
            }
        }
        sets.into_iter().for_each(|set| set.release(texts));
        assert_eq!(texts.used(), 0);
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
