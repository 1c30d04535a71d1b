//! Text in little memory: names are interned, labels and selectors are fingerprinted.
//!
//! While an object streams in, the projection feeds label keys and values to a
//! [`FingerprintHasher`] fragment by fragment and collects [`Labels`] and a [`Selector`]. What
//! stays in the cache are handles to interned copies: a [`Name`], a [`LabelSet`], a
//! [`StoredSelector`].

mod fingerprint;
mod interner;
mod label_set;
mod labels;
mod name;
mod selector;
mod stored_selector;

pub use fingerprint::{Fingerprint, FingerprintHasher};
pub use interner::{Cell, Interner, Text, TextFull};
pub use label_set::LabelSet;
pub use labels::{Label, Labels, TooManyLabels};
pub use name::{Name, NameDisplay};
pub use selector::{Expression, InvalidSelector, Operator, Selector};
pub use stored_selector::{StoreSelectorError, StoredSelector};

const _: () = assert!(size_of::<Cell>() == 24);
const _: () = assert!(size_of::<Name>() == 10);

/// Appends as much of a text as fits, in whole characters.
pub(crate) fn push_cut<const N: usize>(out: &mut heapless::String<N>, text: &str) {
    for character in text.chars() {
        if out.push(character).is_err() {
            return;
        }
    }
}
