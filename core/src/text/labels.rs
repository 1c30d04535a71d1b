//! The labels of one object while it passes through: fingerprints of keys and values.

use core::fmt;

use heapless::Vec;

use super::Fingerprint;
use crate::limits;

/// One label: fingerprints of its key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Label {
    /// The key, with its prefix if it has one.
    pub key: Fingerprint,
    /// The value; the empty text is a value like any other.
    pub value: Fingerprint,
}

/// The object has more labels than [`limits::LABELS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TooManyLabels;

impl fmt::Display for TooManyLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} labels", limits::LABELS)
    }
}

/// A map from label keys to values, in order of the key's fingerprint, each key once.
///
/// The order makes equal maps equal sequences, whatever order the server sent them in.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    labels: Vec<Label, { limits::LABELS }>,
    overflowed: bool,
}

impl Labels {
    /// No labels.
    pub const fn new() -> Self {
        Self { labels: Vec::new(), overflowed: false }
    }

    /// Forgets all labels, for the next object.
    pub fn clear(&mut self) {
        self.labels.clear();
        self.overflowed = false;
    }

    /// Sets a label. As in any JSON map, the last value of a repeated key counts.
    ///
    /// Beyond [`limits::LABELS`] the map is no longer complete and [`as_slice`](Self::as_slice)
    /// says so: a wrong set of labels must never be matched against a selector.
    pub fn insert(&mut self, key: Fingerprint, value: Fingerprint) {
        match self.labels.binary_search_by_key(&key, |label| label.key) {
            Ok(found) => {
                if let Some(label) = self.labels.get_mut(found) {
                    label.value = value;
                }
            }
            Err(place) => {
                if self.labels.insert(place, Label { key, value }).is_err() {
                    self.overflowed = true;
                }
            }
        }
    }

    /// Sets a label given as text.
    pub fn insert_text(&mut self, key: &str, value: &str) {
        self.insert(Fingerprint::of(key), Fingerprint::of(value));
    }

    /// All labels in order, or the news that they did not fit.
    pub fn as_slice(&self) -> Result<&[Label], TooManyLabels> {
        if self.overflowed { Err(TooManyLabels) } else { Ok(&self.labels) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::HashMap, format};

    #[test]
    fn order_of_insertion_does_not_matter_and_the_last_value_wins() {
        let mut one = Labels::new();
        let mut other = Labels::new();
        for (key, value) in [("a", "1"), ("b", "2"), ("c", "3")] {
            one.insert_text(key, value);
        }
        for (key, value) in [("c", "3"), ("b", "overwritten"), ("a", "1"), ("b", "2")] {
            other.insert_text(key, value);
        }
        assert_eq!(one.as_slice(), other.as_slice());
    }

    #[test]
    fn holds_the_limit_and_tells_when_one_more_came() {
        for count in [limits::LABELS - 1, limits::LABELS, limits::LABELS + 1] {
            let mut labels = Labels::new();
            let expected: HashMap<_, _> = (0..count)
                .map(|i| (Fingerprint::of(&format!("k{i}")), Fingerprint::of(&format!("v{i}"))))
                .collect();
            expected.iter().for_each(|(key, value)| labels.insert(*key, *value));
            match labels.as_slice() {
                Ok(all) => {
                    assert!(count <= limits::LABELS);
                    let held: HashMap<_, _> = all.iter().map(|l| (l.key, l.value)).collect();
                    assert_eq!(held, expected);
                }
                Err(TooManyLabels) => assert_eq!(count, limits::LABELS + 1),
            }
            labels.clear();
            assert_eq!(labels.as_slice(), Ok(&[][..]));
        }
    }
}
