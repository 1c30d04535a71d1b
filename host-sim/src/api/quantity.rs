//! Resource quantities (`100m`, `2Gi`, `1e3`): parsing, exact comparison and the canonical form.

use std::cmp::Ordering;
use std::fmt;

/// The most decimal digits kept; larger numbers are refused, as nothing real needs them.
const MAX_DIGITS: usize = 30;

/// What upstream says about text that is no quantity.
pub const MALFORMED: &str = "quantities must match the regular expression \
    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// An exact decimal number with the notation it was written in.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The value in units of 10⁻⁹, rounded up like upstream.
    nanos: i128,
    notation: Notation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// `m`, `k`, `M`…
    Decimal,
    /// `Ki`, `Mi`…
    Binary,
    /// `1e3`
    Exponent,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, notation: Notation::Decimal };

    /// A whole number.
    pub const fn whole(value: i64) -> Self {
        Self { nanos: value as i128 * NANO, notation: Notation::Decimal }
    }

    /// Reads a quantity; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let number_end =
            unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0
            || whole.len() + fraction.len() > MAX_DIGITS
            || fraction.contains('.')
        {
            return None;
        }
        let digits = whole.bytes().chain(fraction.bytes());
        let digits = digits.fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        let (notation, factor) = parse_suffix(suffix)?;
        let exponent = factor.ten - fraction.len() as i32 + 9;
        let scaled = digits.checked_mul(1i128 << factor.two).filter(|_| factor.two < 70)?;
        let nanos = if exponent >= 0 {
            scaled.checked_mul(10i128.checked_pow(exponent as u32)?)?
        } else {
            // Smaller than a billionth: rounded away from zero.
            let divisor = 10i128.checked_pow(exponent.unsigned_abs())?;
            scaled / divisor + i128::from(scaled % divisor != 0)
        };
        Some(Self { nanos: if negative { -nanos } else { nanos }, notation })
    }

    /// Whether it is less than nothing.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether it is a whole number.
    pub const fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// The value rounded up to a whole number.
    pub fn ceil(self) -> i64 {
        let whole = self.nanos.div_euclid(NANO) + i128::from(self.nanos.rem_euclid(NANO) != 0);
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// Rounded away from zero to thousandths, as resource lists are.
    pub fn round_up_to_milli(self) -> Self {
        let unit = NANO / 1000;
        let rest = self.nanos % unit;
        let away = if rest == 0 { 0 } else { rest.signum() * unit };
        Self { nanos: self.nanos - rest + away, ..self }
    }

    /// The sum, keeping this one's notation unless it is zero.
    pub fn plus(self, other: Self) -> Self {
        let notation = if self.nanos == 0 { other.notation } else { self.notation };
        Self { nanos: self.nanos.saturating_add(other.nanos), notation }
    }

    /// The difference.
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self { nanos: -other.nanos, ..other })
    }
}

const NANO: i128 = 1_000_000_000;

struct Factor {
    two: u32,
    ten: i32,
}

fn parse_suffix(suffix: &str) -> Option<(Notation, Factor)> {
    let decimal = |ten| Some((Notation::Decimal, Factor { two: 0, ten }));
    let binary = |two| Some((Notation::Binary, Factor { two, ten: 0 }));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let ten: i32 = digits.parse().ok().filter(|e: &i32| (-27..=27).contains(e))?;
            Some((Notation::Exponent, Factor { two: 0, ten }))
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, the largest suffix that keeps the value exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let small = self.nanos.abs() < 1024 * NANO;
        if self.notation == Notation::Binary && !small && self.is_whole() {
            let mut value = self.nanos / NANO;
            let mut step = 0;
            while value % 1024 == 0 && step < 6 {
                value /= 1024;
                step += 1;
            }
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(step).unwrap_or(&"");
            return write!(f, "{value}{suffix}");
        }
        let (mut value, mut exponent) = (self.nanos, -9);
        while value != 0 && value % 1000 == 0 && exponent < 18 {
            value /= 1000;
            exponent += 3;
        }
        if value == 0 {
            return f.write_str("0");
        }
        if self.notation == Notation::Exponent {
            return match exponent {
                0 => write!(f, "{value}"),
                _ => write!(f, "{value}e{exponent}"),
            };
        }
        let suffix = match exponent {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            18 => "E",
            _ => "",
        };
        write!(f, "{value}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn canonical_forms_are_upstreams() {
        let cases = [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("1000k", "1M"),
            ("512", "512"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("0", "0"),
            ("-2000m", "-2"),
            ("+3", "3"),
            (".5", "500m"),
            ("5.", "5"),
            ("100M", "100M"),
        ];
        for (given, canonical) in cases {
            assert_eq!(Quantity::parse(given).unwrap().to_string(), canonical, "{given}");
        }
    }

    #[test]
    fn malformed_text_is_no_quantity() {
        for text in ["", "-", "a", "1x", "1.2.3", "1 Gi", "Gi", "1e", "1KI", "--1", "1e400"] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn quantities_compare_by_value() {
        let q = |text| Quantity::parse(text).unwrap();
        assert_eq!(q("1"), q("1000m"));
        assert_eq!(q("1Gi"), q("1073741824"));
        assert!(q("1G") < q("1Gi"));
        assert_eq!(q("1100m").ceil(), 2);
        assert_eq!(q("0.1m").round_up_to_milli().to_string(), "1m");
    }

    proptest! {
        #[test]
        fn canonical_text_has_the_same_value(
            number in -1_000_000_000_000i64..1_000_000_000_000,
            suffix in prop::sample::select(vec!["n", "u", "m", "", "k", "M", "Ki", "Mi", "e3", "e-3"]),
        ) {
            let quantity = Quantity::parse(&format!("{number}{suffix}")).unwrap();
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Some(quantity));
        }

        #[test]
        fn any_text_is_taken_without_panic(text in "\\PC*") {
            let _ = Quantity::parse(&text).map(|q| q.to_string());
        }
    }
}
