//! Texts that have to be looked at as a whole.

use super::Fragment;
use heapless::Vec;

/// Puts a text together from its fragments, as far as it fits; does nothing to one that comes whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collector<const N: usize> {
    bytes: Vec<u8, N>,
    cut: bool,
}

/// A text that has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collected<'a> {
    /// The text, or its first bytes. Cut off between two characters.
    pub(crate) bytes: &'a [u8],
    /// Something was cut off.
    pub(crate) cut: bool,
}

impl<const N: usize> Collector<N> {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), cut: false }
    }

    /// Takes the next fragment; the text, if this was its last one.
    #[inline]
    pub(crate) fn push<'a>(&'a mut self, fragment: Fragment<'a>) -> Option<Collected<'a>> {
        match fragment.as_whole() {
            Some(bytes) if bytes.len() <= N => Some(Collected { bytes, cut: false }),
            _ => self.collect(fragment),
        }
    }

    fn collect<'a>(&'a mut self, fragment: Fragment<'a>) -> Option<Collected<'a>> {
        if fragment.first {
            self.bytes.clear();
            self.cut = false;
        }
        if !self.cut {
            let room = N - self.bytes.len();
            let fits = fragment.bytes.get(..room.min(fragment.bytes.len())).unwrap_or_default();
            self.cut = fits.len() < fragment.bytes.len();
            // It fits: it was cut to the room there is.
            let _ = self.bytes.extend_from_slice(fits);
            if self.cut {
                let whole_characters = complete_characters(&self.bytes);
                self.bytes.truncate(whole_characters);
            }
        }
        fragment.last.then_some(Collected { bytes: &self.bytes, cut: self.cut })
    }
}

/// The length of `text` without the bytes of a character that is cut at its end.
fn complete_characters(text: &[u8]) -> usize {
    match core::str::from_utf8(text) {
        Ok(_) => text.len(),
        Err(error) => error.valid_up_to(),
    }
}

impl<'a> Collected<'a> {
    /// The text. The tokenizer has checked its UTF-8, so nothing is lost.
    pub(crate) fn text(self) -> &'a str {
        core::str::from_utf8(self.bytes).unwrap_or_default()
    }

    /// The text, unless something was cut off.
    pub(crate) fn whole(self) -> Option<&'a [u8]> {
        if self.cut { None } else { Some(self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    fn collect(text: &str, chunk: usize) -> (String, bool) {
        let mut collector = Collector::<8>::new();
        let count = text.len().div_ceil(chunk);
        for (position, bytes) in text.as_bytes().chunks(chunk).enumerate() {
            let fragment = Fragment { bytes, first: position == 0, last: position + 1 == count };
            if let Some(collected) = collector.push(fragment) {
                return (collected.text().into(), collected.cut);
            }
        }
        panic!("no last fragment");
    }

    #[test]
    fn any_split_gives_the_same_text_cut_between_characters() {
        for (text, kept, cut) in [
            ("a", "a", false),
            ("12345678", "12345678", false),
            ("123456789", "12345678", true),
            ("123456é", "123456é", false),
            ("1234567é", "1234567", true),
            ("12345😀x", "12345", true),
            ("😀😀😀", "😀😀", true),
        ] {
            for chunk in 1..=text.len() {
                assert_eq!(collect(text, chunk), (kept.into(), cut), "{text} by {chunk}");
            }
        }
    }
}
