//! Maps from string to string, as labels are, hashed while they stream.

use super::project::Fault;
use crate::json::{Fragment, Token};
use crate::text::{Fingerprint, FingerprintHasher, Label};

/// Reads one map after the other.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    hasher: Option<FingerprintHasher>,
    key: Fingerprint,
}

impl Pairs {
    pub(super) const START: Self = Self { hasher: None, key: Fingerprint::from_bits(0) };

    /// Takes the next token of a map; an entry, if it is complete with this. An entry with the
    /// value `null` does not count.
    pub(super) fn push(&mut self, token: Token<'_>) -> Result<Option<Label>, Fault> {
        match token {
            Token::Key(fragment) => {
                if let Some(key) = self.text(fragment) {
                    self.key = key;
                }
                Ok(None)
            }
            Token::String(fragment) => {
                let value = self.text(fragment);
                Ok(value.map(|value| Label { key: self.key, value }))
            }
            Token::ObjectStart | Token::ObjectEnd | Token::Null => Ok(None),
            Token::ArrayStart | Token::ArrayEnd | Token::Number(_) | Token::Bool(_) => {
                Err(Fault::WrongType)
            }
        }
    }

    /// Takes a part of a text; its fingerprint, if it is complete with this.
    pub(super) fn text(&mut self, fragment: Fragment<'_>) -> Option<Fingerprint> {
        if fragment.first {
            self.hasher = None;
        }
        let hasher = self.hasher.get_or_insert_default();
        hasher.push(fragment.bytes);
        fragment.last.then(|| hasher.finish())
    }
}
