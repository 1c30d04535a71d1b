//! RFC 3339 timestamps: how Kubernetes writes `metav1.Time` and `metav1.MicroTime`.

use super::Timestamp;
use super::timestamp::Civil;
use core::fmt;

impl Timestamp {
    /// Parses an RFC 3339 timestamp, with or without a fraction, in UTC or at an offset.
    ///
    /// Digits of the fraction beyond the microsecond are dropped. `None` for anything that is no
    /// timestamp, the 60th second of a leap second included, as Go has it.
    pub fn parse_rfc3339(text: &[u8]) -> Option<Self> {
        let mut input = Input(text);
        let year = input.digits(4)? as i32;
        input.byte(b'-')?;
        let month = input.digits(2)?;
        input.byte(b'-')?;
        let day = input.digits(2)?;
        input.one_of(b"Tt")?;
        let hour = input.digits(2)?;
        input.byte(b':')?;
        let minute = input.digits(2)?;
        input.byte(b':')?;
        let second = input.digits(2)?;
        let micros = input.fraction()?;
        let offset_minutes = input.offset()?;
        if !input.0.is_empty() {
            return None;
        }
        let local = Civil { year, month, day, hour, minute, second, micros }.to_timestamp()?;
        Some(Self::from_micros(local.as_micros() - offset_minutes * 60_000_000))
    }

    /// Prints as Kubernetes prints a `metav1.Time`: `2026-01-31T23:59:59Z`.
    pub fn rfc3339(self) -> Rfc3339 {
        Rfc3339 { time: self, micros: false }
    }

    /// Prints as Kubernetes prints a `metav1.MicroTime`: `2026-01-31T23:59:59.000042Z`.
    pub fn rfc3339_micros(self) -> Rfc3339 {
        Rfc3339 { time: self, micros: true }
    }
}

/// Prints a [`Timestamp`] in RFC 3339, in UTC.
#[derive(Clone, Copy, Debug)]
pub struct Rfc3339 {
    time: Timestamp,
    micros: bool,
}

impl Rfc3339 {
    /// The longest form, for years 0 to 9999.
    pub const MAX_LEN: usize = "2026-01-31T23:59:59.000042Z".len();
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second, micros } =
            Civil::from_timestamp(self.time);
        // Timestamps are in every status and event: digit by digit is much faster than `write!`.
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let mut places = text.iter_mut();
        let whole = [(4, year.unsigned_abs()), (2, month), (2, day), (2, hour), (2, minute)];
        for (width, number) in whole.into_iter().chain([(2, second), (6, micros)]) {
            put_digits(&mut places, width, number);
            places.next();
        }
        let text = core::str::from_utf8(&text).unwrap_or_default();
        match text.split_at_checked("0000-00-00T00:00:00".len()) {
            _ if !(0..=9999).contains(&year) => {
                write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
                if self.micros {
                    write!(f, ".{micros:06}")?;
                }
                f.write_str("Z")
            }
            Some((seconds, _)) if !self.micros => {
                f.write_str(seconds)?;
                f.write_str("Z")
            }
            _ => f.write_str(text),
        }
    }
}

fn put_digits<'t>(places: &mut impl Iterator<Item = &'t mut u8>, width: u32, number: u32) {
    for (power, place) in (0..width).rev().zip(places) {
        *place = b'0' + (number / 10_u32.pow(power) % 10) as u8;
    }
}

/// What is left to parse.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl Input<'_> {
    /// Exactly `count` decimal digits.
    pub(super) fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let mut number = 0;
        for byte in digits {
            number = number * 10 + digit(*byte)?;
        }
        self.0 = rest;
        Some(number)
    }

    pub(super) fn byte(&mut self, expected: u8) -> Option<()> {
        self.one_of(&[expected]).map(|_| ())
    }

    fn one_of(&mut self, expected: &[u8]) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        expected.contains(byte).then_some(*byte)
    }

    /// The text `expected`, byte for byte.
    pub(super) fn text(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// Nothing, or a dot and at least one digit; in microseconds.
    fn fraction(&mut self) -> Option<u32> {
        let Some(rest) = self.0.strip_prefix(b".") else { return Some(0) };
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        let first_six = digits.iter().chain(core::iter::repeat(&b'0')).take(6);
        first_six.map(|byte| digit(*byte)).try_fold(0, |number, digit| Some(number * 10 + digit?))
    }

    /// `Z`, or hours and minutes east of UTC; in minutes.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.digits(2)?;
        self.byte(b':')?;
        let minutes = self.digits(2)?;
        (hours < 24 && minutes < 60).then_some(sign * i64::from(hours * 60 + minutes))
    }
}

fn digit(byte: u8) -> Option<u32> {
    byte.is_ascii_digit().then(|| u32::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    fn micros(text: &str) -> Option<i64> {
        Timestamp::parse_rfc3339(text.as_bytes()).map(Timestamp::as_micros)
    }

    #[test]
    fn reads_seconds_fractions_and_offsets() {
        assert_eq!(micros("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(micros("1970-01-01T00:00:00.000001Z"), Some(1));
        assert_eq!(micros("1970-01-01T00:00:00.5Z"), Some(500_000));
        assert_eq!(micros("1970-01-01T00:00:00.123456789Z"), Some(123_456));
        assert_eq!(micros("2001-09-09T01:46:40Z"), Some(1_000_000_000_000_000));
        assert_eq!(micros("2001-09-09T03:16:40+01:30"), Some(1_000_000_000_000_000));
        assert_eq!(micros("2001-09-08T18:46:40-07:00"), Some(1_000_000_000_000_000));
        assert_eq!(micros("1969-12-31T23:59:59.999999Z"), Some(-1));
        assert_eq!(micros("0001-01-01T00:00:00Z"), Some(-62_135_596_800_000_000));
        assert_eq!(micros("2001-09-09t01:46:40z"), Some(1_000_000_000_000_000));
    }

    #[test]
    fn refuses_what_is_no_timestamp() {
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T23:59:59",
            "2026-01-31 23:59:59Z",
            "2026-01-31T23:59:59.Z",
            "2026-01-31T23:59:59Z ",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T23:60:00Z",
            "2026-01-31T23:59:60Z",
            "2026-01-31T23:59:59+24:00",
            "2026-01-31T23:59:59+0100",
            "26-01-31T23:59:59Z",
            "+026-01-31T23:59:59Z",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn prints_seconds_and_microseconds() {
        let time = Timestamp::from_micros(1_000_000_000_000_042);
        assert_eq!(time.rfc3339().to_string(), "2001-09-09T01:46:40Z");
        assert_eq!(time.rfc3339_micros().to_string(), "2001-09-09T01:46:40.000042Z");
        assert_eq!(time.rfc3339_micros().to_string().len(), Rfc3339::MAX_LEN);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(micros in -62_167_219_200_000_000_i64..=253_402_300_799_999_999) {
            let time = Timestamp::from_micros(micros);
            let text = time.rfc3339_micros().to_string();
            prop_assert_eq!(Timestamp::parse_rfc3339(text.as_bytes()), Some(time));
            let text = time.rfc3339().to_string();
            let whole = Timestamp::from_secs(time.as_secs());
            prop_assert_eq!(Timestamp::parse_rfc3339(text.as_bytes()), Some(whole));
        }
    }
}
