//! Identities of objects and versions, in the form decisions compare them.

use core::fmt;

/// The uid of an object: a UUID, which Kubernetes writes as 36 characters and a cache keeps as 16 bytes.
///
/// Ordered as its text is.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Uid([u8; 16]);

/// Where the hyphens of a UUID are: before these bytes.
const HYPHENS: [usize; 4] = [4, 6, 8, 10];

impl Uid {
    /// The uid of nothing: all zero, which no server hands out.
    pub const NIL: Self = Self([0; 16]);

    /// The uid with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the uid.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Parses the 36 lower-case characters that Kubernetes writes. Nothing else is accepted, so
    /// that a uid prints as it was read.
    pub fn parse(text: &str) -> Option<Self> {
        let mut characters = text.bytes();
        let mut bytes = [0; 16];
        for (position, byte) in bytes.iter_mut().enumerate() {
            if HYPHENS.contains(&position) && characters.next() != Some(b'-') {
                return None;
            }
            *byte = hex_digit(characters.next()?)? << 4 | hex_digit(characters.next()?)?;
        }
        characters.next().is_none().then_some(Self(bytes))
    }
}

fn hex_digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b'-'; 36];
        let mut places = text.iter_mut();
        for (position, byte) in self.0.iter().enumerate() {
            if HYPHENS.contains(&position) {
                places.next();
            }
            for (digit, place) in [byte >> 4, byte & 0xf].into_iter().zip(&mut places) {
                *place = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
            }
        }
        f.write_str(core::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A resourceVersion. Kubernetes orders the versions of one resource as decimal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ResourceVersion(u64);

impl ResourceVersion {
    /// "Any version": what a first list asks for, older than every object's.
    pub const ANY: Self = Self(0);

    /// The version with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number of the version.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Parses the decimal number that Kubernetes writes, without sign or superfluous zeros.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text == "0" || text.starts_with(|first| matches!(first, '1'..='9'));
        if !plain {
            return None;
        }
        text.parse().ok().map(Self)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_uid_prints_as_it_was_read() {
        let text = "7f1e0a3c-9b2d-4c5e-8f60-0123456789ab";
        let uid = Uid::parse(text).map(|uid| uid.to_string());
        assert_eq!(uid.as_deref(), Some(text));
    }

    #[test]
    fn only_the_canonical_form_is_a_uid() {
        for text in [
            "",
            "7f1e0a3c-9b2d-4c5e-8f60-0123456789a",
            "7f1e0a3c-9b2d-4c5e-8f60-0123456789abc",
            "7F1E0A3C-9B2D-4C5E-8F60-0123456789AB",
            "7f1e0a3c9b2d4c5e8f600123456789ab",
            "7f1e0a3c-9b2d-4c5e-8f60-0123456789ag",
        ] {
            assert_eq!(Uid::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_resource_version_is_a_plain_decimal() {
        assert_eq!(ResourceVersion::parse("0"), Some(ResourceVersion::ANY));
        let largest = ResourceVersion::parse("18446744073709551615");
        assert_eq!(largest.map(ResourceVersion::number), Some(u64::MAX));
        for text in ["", "+1", "-1", "01", "1a", "18446744073709551616"] {
            assert_eq!(ResourceVersion::parse(text), None, "{text}");
        }
    }
}
