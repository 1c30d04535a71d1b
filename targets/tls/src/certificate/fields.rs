//! Fields of a certificate (RFC 5280, 4.1) that webpki does not show: key usage, names, the end.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::der::{self, Der};

const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 29, 17];
const KEY_USAGE: &[u8] = &[0x55, 29, 15];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 29, 19];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 29, 37];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];
const ANY_USAGE: &[u8] = &[0x55, 29, 37, 0];
const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const RSA_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];

/// What a key may be used for, unless nothing is said (RFC 5280, 4.2.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    DigitalSignature = 0,
    KeyCertSign = 5,
}

/// Sorts of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum KeyKind {
    /// On the curve P-256.
    P256,
    /// RSA.
    Rsa,
    /// Another one.
    Other,
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    Dns(&'a [u8]),
    Address(IpAddr),
}

/// A certificate whose outer form has been read.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    not_before: u64,
    not_after: u64,
    public_key: Der<'a>,
    extensions: Der<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(certificate: &'a [u8]) -> Option<Self> {
        let mut outer = Der::new(certificate);
        let mut inner = outer.sequence()?.sequence()?;
        // Version 3, without which there are no extensions.
        inner.expect(0xa0)?;
        inner.expect(der::INTEGER)?;
        inner.sequence()?; // how it is signed
        inner.sequence()?; // by whom
        let mut validity = inner.sequence()?;
        // webpki judges it. What began before 1970 has begun.
        let not_before = time(validity.next()?).unwrap_or_default();
        let not_after = time(validity.next()?)?;
        inner.sequence()?; // for whom
        let public_key = inner.sequence()?;
        // Identifiers that nobody uses.
        inner.optional(0x81);
        inner.optional(0x82);
        let extensions = match inner.optional(0xa3) {
            Some(explicit) => Der::new(explicit).sequence()?,
            None => Der::new(&[]),
        };
        outer.is_empty().then_some(Self { not_before, not_after, public_key, extensions })
    }

    /// When it begins, in seconds since 1970.
    pub(super) fn not_before(&self) -> u64 {
        self.not_before
    }

    /// When it is over, in seconds since 1970.
    pub(crate) fn not_after(&self) -> u64 {
        self.not_after
    }

    /// The key itself: of a key on a curve, the point.
    pub(crate) fn public_key(&self) -> Option<&'a [u8]> {
        let mut info = self.public_key;
        info.sequence()?;
        match info.expect(der::BIT_STRING)? {
            [0, key @ ..] => Some(key),
            _ => None,
        }
    }

    /// What sort of key it has.
    pub(super) fn key_kind(&self) -> KeyKind {
        let mut info = self.public_key;
        let Some(mut algorithm) = info.sequence() else { return KeyKind::Other };
        match algorithm.expect(der::OID) {
            Some(EC_KEY) if algorithm.expect(der::OID) == Some(P256) => KeyKind::P256,
            Some(RSA_KEY) => KeyKind::Rsa,
            _ => KeyKind::Other,
        }
    }

    /// Whether it says that it is that of an authority (RFC 5280, 4.2.1.9).
    pub(super) fn is_authority(&self) -> bool {
        let Some(value) = self.extension(BASIC_CONSTRAINTS) else { return false };
        Der::new(value).sequence().and_then(|mut value| value.expect(0x01)) == Some(&[0xff])
    }

    /// Whether it is good for clients, or does not say for whom (RFC 5280, 4.2.1.12).
    pub(super) fn is_for_clients(&self) -> bool {
        let Some(value) = self.extension(EXTENDED_KEY_USAGE) else { return true };
        let mut purposes = Der::new(value).sequence().unwrap_or(Der::new(&[]));
        core::iter::from_fn(move || purposes.expect(der::OID))
            .any(|purpose| matches!(purpose, CLIENT_AUTH | ANY_USAGE))
    }

    /// Whether its key may be used so: if it says for what, that has to be among it.
    pub(super) fn allows(&self, usage: Usage) -> bool {
        let Some(value) = self.extension(KEY_USAGE) else { return true };
        let mut value = Der::new(value);
        // Bits from the top of the first byte on; how many are left over at the end is said before.
        match value.expect(der::BIT_STRING) {
            Some([unused, first, rest @ ..]) if *unused < 8 && value.is_empty() => {
                let mask = if rest.is_empty() { 0xffu8 << unused } else { 0xff };
                first & mask & (0x80 >> usage as u8) != 0
            }
            _ => false,
        }
    }

    /// Its subject alternative names, as far as they are names or addresses.
    pub(super) fn names(&self) -> impl Iterator<Item = Name<'a>> {
        let value = self.extension(SUBJECT_ALTERNATIVE_NAME).unwrap_or_default();
        let mut names = Der::new(value).sequence().unwrap_or(Der::new(&[]));
        core::iter::from_fn(move || names.next()).filter_map(|(tag, content)| match tag {
            0x82 => Some(Name::Dns(content)),
            0x87 => {
                let four = <[u8; 4]>::try_from(content).map(|bytes| Ipv4Addr::from(bytes).into());
                let sixteen =
                    <[u8; 16]>::try_from(content).map(|bytes| Ipv6Addr::from(bytes).into());
                four.or(sixteen).ok().map(Name::Address)
            }
            _ => None,
        })
    }

    fn extension(&self, wanted: &[u8]) -> Option<&'a [u8]> {
        let mut extensions = self.extensions;
        while let Some(mut extension) = extensions.sequence() {
            let is_wanted = extension.expect(der::OID)? == wanted;
            // Whether it is critical.
            extension.optional(0x01);
            let value = extension.expect(der::OCTET_STRING)?;
            if is_wanted {
                return Some(value);
            }
        }
        None
    }
}

/// RFC 5280, 4.1.2.5: to the second, in Greenwich; two digits of the year up to 2049, four from then on.
fn time((tag, text): (u8, &[u8])) -> Option<u64> {
    let [digits @ .., b'Z'] = text else { return None };
    let mut pairs = digits.chunks(2).map(|pair| match *pair {
        [tens @ b'0'..=b'9', units @ b'0'..=b'9'] => {
            Some(u64::from(tens - b'0') * 10 + u64::from(units - b'0'))
        }
        _ => None,
    });
    let mut pair = move || pairs.next().flatten();
    let year = match (tag, digits.len()) {
        (der::UTC_TIME, 12) => {
            let year = pair()?;
            if year >= 50 { 1900 + year } else { 2000 + year }
        }
        (der::GENERALIZED_TIME, 14) => pair()? * 100 + pair()?,
        _ => return None,
    };
    let (month, day, hour, minute, second) = (pair()?, pair()?, pair()?, pair()?, pair()?);
    let is_possible =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    if !is_possible || second > 60 || year < 1970 {
        return None;
    }
    // Years begin in March, so that a leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_of_years = year * 365 + year / 4 - year / 100 + year / 400;
    // From 1 March 0 on; the constant is 1 January 1970.
    let days = (days_of_years + (153 * month + 2) / 5 + day - 1).checked_sub(719_468)?;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        for (tag, text, seconds) in [
            (der::UTC_TIME, "700101000000Z", 0),
            (der::UTC_TIME, "000229120000Z", 951_825_600),
            (der::UTC_TIME, "491231235959Z", 2_524_607_999),
            (der::GENERALIZED_TIME, "20500101000000Z", 2_524_608_000),
            (der::GENERALIZED_TIME, "21000301000000Z", 4_107_542_400),
            (der::GENERALIZED_TIME, "99991231235959Z", 253_402_300_799),
        ] {
            assert_eq!(time((tag, text.as_bytes())), Some(seconds), "{text}");
        }
        for wrong in [
            "",
            "Z",
            "700101000000",
            "7001010000Z",
            "701301000000Z",
            "70010100000aZ",
            "500101000000Z",
        ] {
            assert_eq!(time((der::UTC_TIME, wrong.as_bytes())), None, "{wrong}");
        }
    }
}
