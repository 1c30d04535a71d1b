//! The bytes of strings: finding their end fast, and checking their UTF-8.

use crate::json::ErrorReason;

/// A machine word: eight bytes at once on a PC, four on a microcontroller.
type Word = usize;
const WORD: usize = size_of::<Word>();

const ONES: Word = Word::MAX / 0xff;
const HIGHS: Word = ONES << 7;

/// How many bytes at the start of `bytes` are plain: ASCII, no quote, backslash or control character.
#[inline]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let rest = after_plain_words(bytes);
    bytes.len() - rest.len() + rest.iter().take_while(|byte| is_plain(**byte)).count()
}

/// `bytes` from the first that is not plain, or from where less than a word is left to look at.
#[inline]
fn after_plain_words(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some((chunk, tail)) = rest.split_first_chunk::<WORD>() {
        let special = special_bytes(Word::from_le_bytes(*chunk));
        if special != 0 {
            return rest.get(special.trailing_zeros() as usize / 8..).unwrap_or_default();
        }
        rest = tail;
    }
    rest
}

/// What follows a plain string that ends in `bytes`, which begin after its first quote. `None` for
/// one that goes on, and for one that may only do so, since less than a word is left to look at.
#[inline]
pub(super) fn after_string(bytes: &[u8]) -> Option<&[u8]> {
    match after_plain_words(bytes) {
        [b'"', after @ ..] => Some(after),
        _ => None,
    }
}

/// The same for one that may have simple escapes in it, and may end with the last bytes.
#[inline]
pub(super) fn after_simple_string(bytes: &[u8]) -> Option<&[u8]> {
    match after_simple_text(bytes) {
        [b'"', after @ ..] => Some(after),
        _ => None,
    }
}

/// `bytes` from the first that is neither plain nor of a simple escape.
#[cold]
#[inline(never)]
pub(super) fn after_simple_text(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    loop {
        rest = match after_plain_words(rest) {
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', after @ ..] => after,
            [byte, after @ ..] if is_plain(*byte) => after,
            rest => return rest,
        };
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7f) && byte != b'"' && byte != b'\\'
}

/// The high bit of each byte that is not plain. Above the lowest such byte there may be false
/// alarms (a borrow runs upwards), which do not matter to who looks for the lowest.
///
/// In an ASCII byte, subtracting sets the high bit exactly if the byte was smaller; other bytes
/// have it anyway. With their second bit turned round, control characters and the quote are what is
/// smaller than 21 in hexadecimal.
#[inline]
const fn special_bytes(word: Word) -> Word {
    let control_or_quote = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = HIGHS.wrapping_sub(word ^ (ONES * b'\\' as Word));
    (control_or_quote | backslash | word) & HIGHS
}

/// Where in a UTF-8 sequence a string is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Utf8 {
    /// Bytes that the character still needs.
    missing: u8,
    /// By how much the range of the next of them is narrower at its ends than 80 to BF: that is so
    /// after some first bytes, which rules out overlong forms, surrogates and code points beyond
    /// U+10FFFF.
    low_cut: u8,
    high_cut: u8,
}

impl Utf8 {
    /// Between two characters.
    pub(super) const BOUNDARY: Self = Self { missing: 0, low_cut: 0, high_cut: 0 };

    /// Whether it is between two characters.
    pub(super) fn is_boundary(self) -> bool {
        self.missing == 0
    }

    /// How many bytes at the start of `bytes` belong to the string: up to a quote, a backslash or
    /// the end of `bytes`. On failure, also how many bytes before it were good.
    #[inline]
    pub(super) fn string_run(&mut self, bytes: &[u8]) -> Result<usize, (usize, ErrorReason)> {
        let mut run = 0;
        let mut rest = bytes;
        loop {
            if self.missing == 0 {
                let plain = plain_run(rest);
                run += plain;
                rest = rest.get(plain..).unwrap_or_default();
            }
            let Some((&byte, tail)) = rest.split_first() else { return Ok(run) };
            if self.missing == 0 && matches!(byte, b'"' | b'\\') {
                return Ok(run);
            }
            self.accept(byte).map_err(|reason| (run, reason))?;
            run += 1;
            rest = tail;
        }
    }

    fn accept(&mut self, byte: u8) -> Result<(), ErrorReason> {
        if self.missing > 0 {
            if !(0x80 + self.low_cut..=0xbf - self.high_cut).contains(&byte) {
                return Err(ErrorReason::InvalidUtf8);
            }
            *self = Self { missing: self.missing - 1, ..Self::BOUNDARY };
            return Ok(());
        }
        let (missing, low_cut, high_cut) = match byte {
            0x00..=0x1f => return Err(ErrorReason::ControlCharacter),
            0x20..=0x7f => (0, 0, 0),
            0xc2..=0xdf => (1, 0, 0),
            0xe0 => (2, 0xa0 - 0x80, 0),
            0xe1..=0xec | 0xee | 0xef => (2, 0, 0),
            0xed => (2, 0, 0xbf - 0x9f),
            0xf0 => (3, 0x90 - 0x80, 0),
            0xf1..=0xf3 => (3, 0, 0),
            0xf4 => (3, 0, 0xbf - 0x8f),
            _ => return Err(ErrorReason::InvalidUtf8),
        };
        *self = Self { missing, low_cut, high_cut };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn the_first_special_byte_is_found_at_every_place() {
        for length in 0..40 {
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut text = vec![b'a'; length];
                    text[place] = byte;
                    let expected = if is_plain(byte) { length } else { place };
                    assert_eq!(plain_run(&text), expected, "{byte:#x} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn a_special_byte_hides_no_earlier_one() {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                let text = [b'a', first, second, b'a', b'a', b'a', b'a', b'a', b'a'];
                let expected = text.iter().take_while(|byte| is_plain(**byte)).count();
                assert_eq!(plain_run(&text), expected, "{first:#x} {second:#x}");
            }
        }
    }

    /// All sequences of up to three bytes, and those of four that begin with one of four.
    #[test]
    fn utf8_is_judged_as_the_standard_library_does() {
        let judge = |bytes: &[u8]| {
            let mut utf8 = Utf8::BOUNDARY;
            utf8.string_run(bytes) == Ok(bytes.len()) && utf8.missing == 0
        };
        for first in 0x80..=0xff_u8 {
            for second in 0x80..=0xff_u8 {
                let two = [first, second];
                assert_eq!(judge(&two), std::str::from_utf8(&two).is_ok(), "{two:x?}");
                for third in 0x7f..=0xff_u8 {
                    let three = [first, second, third];
                    assert_eq!(judge(&three), std::str::from_utf8(&three).is_ok(), "{three:x?}");
                }
                if first >= 0xf0 {
                    for last in [[0x80, 0x80], [0xbf, 0xbf], [0x80, 0xc0], [0x7f, 0x80]] {
                        let four = [first, second, last[0], last[1]];
                        assert_eq!(judge(&four), std::str::from_utf8(&four).is_ok(), "{four:x?}");
                    }
                }
            }
        }
    }
}
