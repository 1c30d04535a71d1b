//! Text in little memory: names are interned, labels and selectors are fingerprinted.
//!
//! While an object streams in, the projection feeds label keys and values to a
//! [`FingerprintHasher`] fragment by fragment and collects [`Labels`] and a [`Selector`]. What
//! stays in the cache is a handle to an interned copy.

mod fingerprint;
mod labels;
mod selector;

pub use fingerprint::{Fingerprint, FingerprintHasher};
pub use labels::{Label, Labels, TooManyLabels};
pub use selector::{Expression, InvalidSelector, Operator, Selector};
