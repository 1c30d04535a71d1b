//! Durations as Go writes them: `15s`, `1m30s`, `500ms`.

use core::fmt;
use core::str::FromStr;

use super::Duration;

/// A text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidDuration;

impl fmt::Display for InvalidDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration is written like 15s, 1m30s or 500ms")
    }
}

impl core::error::Error for InvalidDuration {}

impl FromStr for Duration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let mut micros = 0_u64;
        let mut rest = text;
        loop {
            let (part, after) = part(rest).ok_or(InvalidDuration)?;
            micros = micros.checked_add(part).ok_or(InvalidDuration)?;
            rest = after;
            if rest.is_empty() {
                return Ok(Self::from_micros(micros));
            }
        }
    }
}

/// One number with its unit, in microseconds, and what follows.
fn part(text: &str) -> Option<(u64, &str)> {
    let (number, rest) = split(text, |c| c.is_ascii_digit() || c == '.');
    let (unit, rest) = split(rest, |c| !c.is_ascii_digit() && c != '.');
    let unit = match unit {
        "h" => 3_600_000_000,
        "m" => 60_000_000,
        "s" => 1_000_000,
        "ms" => 1_000,
        "us" | "µs" => 1,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut micros = whole.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.chars() {
        // What is less than a microsecond is left out.
        place /= 10;
        micros = micros.checked_add(u64::from(digit.to_digit(10)?) * place)?;
    }
    Some((micros, rest))
}

/// What consists of such characters, and what follows.
fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, micros) in [
            ("15s", Some(15_000_000)),
            ("1m30s", Some(90_000_000)),
            ("1h0m0.5s", Some(3_600_500_000)),
            ("500ms", Some(500_000)),
            (".5s", Some(500_000)),
            ("2.s", Some(2_000_000)),
            ("1.0000019s", Some(1_000_001)),
            ("7us", Some(7)),
            ("7µs", Some(7)),
            ("0s", Some(0)),
            ("", None),
            ("15", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("fast", None),
            ("-1s", None),
            ("15x", None),
            ("15s ", None),
            ("18446744073709551616us", None),
            ("99999999999999999h", None),
            ("18446744073709551615us1us", None),
        ] {
            assert_eq!(
                text.parse(),
                micros.map(Duration::from_micros).ok_or(InvalidDuration),
                "{text}"
            );
        }
    }
}
