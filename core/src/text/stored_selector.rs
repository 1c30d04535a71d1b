//! The selector of a cached object.

use super::label_set::{decode, encode};
use super::{
    Expression, Fingerprint, Interner, InvalidSelector, Label, LabelSet, Labels, Operator,
    Selector, Text, TextFull,
};

/// An interned selector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StoredSelector {
    /// The labels it wants, or labels among which they are.
    match_labels: LabelSet,
    /// Which of them it wants, one bit each; 0 is all.
    only: u8,
    expressions: Text,
    state: State,
}

/// All zero is "the object has no selector".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum State {
    #[default]
    Absent,
    Valid,
    KeyMissing,
    UnknownOperator,
    ValuesMissing,
    ValuesForbidden,
}

/// Why a selector could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StoreSelectorError {
    /// It has more requirements than one object may have.
    TooLarge,
    /// The table of texts is full.
    Full,
}

impl From<TextFull> for StoreSelectorError {
    fn from(TextFull: TextFull) -> Self {
        Self::Full
    }
}

impl StoredSelector {
    /// The selector of an object that has none.
    pub const ABSENT: Self = Self {
        match_labels: LabelSet::EMPTY,
        only: 0,
        expressions: Text::EMPTY,
        state: State::Absent,
    };

    /// Interns a selector. One that cannot be parsed is stored as that.
    pub fn intern(texts: &mut Interner, selector: &Selector) -> Result<Self, StoreSelectorError> {
        Self::intern_within(texts, selector, LabelSet::EMPTY)
    }

    /// As [`intern`](Self::intern). What it wants of these labels, as a workload's selector does of those
    /// in its pod template, is not interned again.
    pub fn intern_within(
        texts: &mut Interner,
        selector: &Selector,
        labels: LabelSet,
    ) -> Result<Self, StoreSelectorError> {
        let state = match selector.validate() {
            Ok(()) if !selector.is_present() => return Ok(Self::default()),
            Ok(()) => State::Valid,
            Err(InvalidSelector::TooLarge) => return Err(StoreSelectorError::TooLarge),
            Err(reason) => return Ok(Self { state: State::of(reason), ..Self::default() }),
        };
        let wanted = selector.match_labels().as_slice();
        let wanted = wanted.map_err(|_| StoreSelectorError::TooLarge)?;
        let (match_labels, only) = match which(texts, labels, wanted) {
            Some(only) => (labels.retain(texts), only),
            None => (LabelSet::intern(texts, wanted)?, 0),
        };
        match texts.intern_pieces(selector.expressions().flat_map(pieces)) {
            Ok(expressions) => Ok(Self { match_labels, only, expressions, state }),
            Err(full) => {
                match_labels.release(texts);
                Err(full.into())
            }
        }
    }

    /// Gives the interned parts back.
    pub fn release(self, texts: &mut Interner) {
        self.match_labels.release(texts);
        texts.release(self.expressions);
    }

    /// Why the selector cannot be used, if so.
    pub const fn validate(self) -> Result<(), InvalidSelector> {
        match self.state {
            State::Absent | State::Valid => Ok(()),
            State::KeyMissing => Err(InvalidSelector::KeyMissing),
            State::UnknownOperator => Err(InvalidSelector::UnknownOperator),
            State::ValuesMissing => Err(InvalidSelector::ValuesMissing),
            State::ValuesForbidden => Err(InvalidSelector::ValuesForbidden),
        }
    }

    /// Whether it is the selector `{}`, on which no workload controller acts.
    pub fn is_empty(self) -> bool {
        matches!(self.state, State::Valid)
            && self.match_labels.is_empty()
            && self.expressions.is_empty()
    }

    /// Whether the selector selects an object with these labels, as Kubernetes' API defines it:
    /// an empty selector selects everything, an absent or unusable one nothing.
    pub fn matches(self, texts: &Interner, labels: LabelSet) -> bool {
        matches!(self.state, State::Valid)
            && (labels == self.match_labels || self.wants(texts, |key| labels.value(texts, key)))
            && self.expressions_match(texts, |key| labels.value(texts, key))
    }

    /// As [`matches`](Self::matches), but an empty selector selects nothing: the rule by which
    /// the ReplicaSet and Deployment controllers look for the owner of an orphan. They also
    /// leave an orphan without labels alone.
    pub fn matches_orphan(self, texts: &Interner, labels: LabelSet) -> bool {
        !labels.is_empty() && !self.is_empty() && self.matches(texts, labels)
    }

    /// As [`matches_orphan`](Self::matches_orphan), for an object that is not stored. When it has
    /// too many labels to know, it may match.
    pub fn may_match(self, texts: &Interner, labels: &Labels) -> bool {
        if !matches!(self.state, State::Valid) || self.is_empty() {
            return false;
        }
        let Ok(labels) = labels.as_slice() else { return true };
        let value = |key| labels.iter().find(|label| label.key == key).map(|label| label.value);
        !labels.is_empty() && self.wants(texts, value) && self.expressions_match(texts, value)
    }

    /// Whether the labels it wants are there.
    fn wants(
        self,
        texts: &Interner,
        value_of: impl Fn(Fingerprint) -> Option<Fingerprint>,
    ) -> bool {
        let is_wanted = |at: usize| self.only == 0 || self.only >> at & 1 != 0;
        let labels = self.match_labels.iter(texts).enumerate();
        let mut wanted = labels.filter(|(at, _)| is_wanted(*at));
        wanted.all(|(_, label)| value_of(label.key) == Some(label.value))
    }

    fn expressions_match(
        self,
        texts: &Interner,
        value_of: impl Fn(Fingerprint) -> Option<Fingerprint>,
    ) -> bool {
        let mut pieces = texts.pieces_backwards(self.expressions).map(decode).peekable();
        while let Some(Label { key, value: tag }) = pieces.next() {
            let value = value_of(key);
            let mut listed = false;
            while let Some(candidate) = pieces.next_if(|piece| piece.value == VALUE) {
                listed |= value == Some(candidate.key);
            }
            let satisfied = match operator_of(tag) {
                Some(Operator::In) => listed,
                Some(Operator::NotIn) => !listed,
                Some(Operator::Exists) => value.is_some(),
                Some(Operator::DoesNotExist) => value.is_none(),
                None => false,
            };
            if !satisfied {
                return false;
            }
        }
        true
    }
}

/// Which of these labels are the wanted ones, one bit each, if all of those are among them.
fn which(texts: &Interner, labels: LabelSet, wanted: &[Label]) -> Option<u8> {
    let mut only = 0;
    for (at, label) in labels.iter(texts).enumerate() {
        let bit = 1_u8.checked_shl(at as u32).filter(|_| at < 8)?;
        only |= if wanted.contains(&label) { bit } else { 0 };
    }
    (only != 0 && only.count_ones() as usize == wanted.len()).then_some(only)
}

impl State {
    const fn of(reason: InvalidSelector) -> Self {
        match reason {
            InvalidSelector::KeyMissing => Self::KeyMissing,
            InvalidSelector::UnknownOperator => Self::UnknownOperator,
            InvalidSelector::ValuesMissing => Self::ValuesMissing,
            InvalidSelector::ValuesForbidden | InvalidSelector::TooLarge => Self::ValuesForbidden,
        }
    }
}

/// An expression is interned as its values, each (value, [`VALUE`]), followed by (key, tag of the
/// operator): read backwards, the operator comes first and its values follow.
const VALUE: Fingerprint = Fingerprint::from_bits(0);

fn pieces(expression: Expression<'_>) -> impl Iterator<Item = super::interner::Piece> {
    let head = Label { key: expression.key, value: tag_of(expression.operator) };
    let values = expression.values.iter().map(|&value| Label { key: value, value: VALUE });
    values.chain(core::iter::once(head)).map(encode)
}

const fn tag_of(operator: Operator) -> Fingerprint {
    Fingerprint::from_bits(match operator {
        Operator::In => 1,
        Operator::NotIn => 2,
        Operator::Exists => 3,
        Operator::DoesNotExist => 4,
    })
}

const fn operator_of(tag: Fingerprint) -> Option<Operator> {
    match tag.to_bits() {
        1 => Some(Operator::In),
        2 => Some(Operator::NotIn),
        3 => Some(Operator::Exists),
        4 => Some(Operator::DoesNotExist),
        _ => None,
    }
}
