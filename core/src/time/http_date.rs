//! The `Date` header of HTTP (RFC 9110, IMF-fixdate), the one source of wall time.

use super::Timestamp;
use super::rfc3339::Input;
use super::timestamp::Civil;

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
const WEEKDAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];

impl Timestamp {
    /// Parses the value of a `Date` header: `Sun, 06 Nov 1994 08:49:37 GMT`.
    ///
    /// The two obsolete forms, which no server may generate since 1999, are refused. So is a
    /// weekday that is not the date's: such a clock is not to be trusted.
    pub fn parse_http_date(text: &[u8]) -> Option<Self> {
        let mut input = Input(text);
        let weekday = input.name(&WEEKDAYS)?;
        input.text(b", ")?;
        let day = input.digits(2)?;
        input.byte(b' ')?;
        let month = input.name(&MONTHS)? + 1;
        input.byte(b' ')?;
        let year = input.digits(4)? as i32;
        input.byte(b' ')?;
        let hour = input.digits(2)?;
        input.byte(b':')?;
        let minute = input.digits(2)?;
        input.byte(b':')?;
        let second = input.digits(2)?;
        input.text(b" GMT")?;
        let time = Civil { year, month, day, hour, minute, second, micros: 0 }.to_timestamp()?;
        let days = time.as_secs().div_euclid(86_400);
        let right_weekday = (days + EPOCH_WEEKDAY).rem_euclid(7) == i64::from(weekday);
        (input.0.is_empty() && right_weekday).then_some(time)
    }
}

/// 1970-01-01 was a Thursday.
const EPOCH_WEEKDAY: i64 = 3;

impl Input<'_> {
    /// One of the three-letter `names`, by its position.
    fn name(&mut self, names: &[&[u8]]) -> Option<u32> {
        let (name, rest) = self.0.split_at_checked(3)?;
        self.0 = rest;
        names.iter().position(|candidate| *candidate == name).map(|position| position as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(text: &str) -> Option<i64> {
        Timestamp::parse_http_date(text.as_bytes()).map(Timestamp::as_secs)
    }

    #[test]
    fn reads_the_form_servers_send() {
        assert_eq!(secs("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(secs("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(secs("Tue, 29 Feb 2028 12:00:00 GMT"), Some(1_835_438_400));
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(secs(text), None, "{text}");
        }
    }
}
