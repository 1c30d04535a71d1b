//! Numbers and Kubernetes' quantities, compared by value without rounding or big integers.

/// An exact number in its one canonical form: ±m · 2ᵃ · 5ᵇ, where m has neither factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    mantissa: u64,
    twos: i32,
    fives: i32,
}

impl Decimal {
    /// No other number has these powers: those of two and five are never that far apart.
    const ZERO: Self = Self { negative: false, mantissa: 0, twos: i32::MIN, fives: 0 };

    /// The value of a JSON number; `None` if its digits are more than 64 bits hold.
    pub(super) fn parse_number(text: &[u8]) -> Option<Self> {
        let (unscaled, suffix) = Unscaled::parse(text)?;
        let exponent = if suffix.is_empty() { 0 } else { parse_exponent(suffix)? };
        unscaled.scaled(exponent, 0)
    }

    /// The value of a quantity; `None` if it is none, or its digits are more than 64 bits hold.
    pub(super) fn parse_quantity(text: &[u8]) -> Option<Self> {
        let (unscaled, suffix) = Unscaled::parse(text)?;
        let (tens, twos) = match suffix {
            b"n" => (-9, 0),
            b"u" => (-6, 0),
            b"m" => (-3, 0),
            b"" => (0, 0),
            b"k" => (3, 0),
            b"M" => (6, 0),
            b"G" => (9, 0),
            b"T" => (12, 0),
            b"P" => (15, 0),
            b"E" => (18, 0),
            b"Ki" => (0, 10),
            b"Mi" => (0, 20),
            b"Gi" => (0, 30),
            b"Ti" => (0, 40),
            b"Pi" => (0, 50),
            b"Ei" => (0, 60),
            exponent => (parse_exponent(exponent)?, 0),
        };
        unscaled.scaled(tens, twos)
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Equal numbers have equal bytes, different ones different bytes.
    ///
    /// A mantissa without a factor of two is odd, so its last bit is free for the sign.
    pub(super) fn to_bytes(self) -> [u8; 16] {
        let mantissa = if self.negative { self.mantissa & !1 } else { self.mantissa };
        let powers =
            u64::from(self.twos.cast_unsigned()) << 32 | u64::from(self.fives.cast_unsigned());
        (u128::from(mantissa) << 64 | u128::from(powers)).to_le_bytes()
    }
}

/// The digits of a number before its exponent or suffix: ±digits · 10^tens.
struct Unscaled {
    negative: bool,
    digits: u64,
    tens: i32,
}

impl Unscaled {
    /// Digits with or without a sign and a point; also what follows them.
    fn parse(text: &[u8]) -> Option<(Self, &[u8])> {
        let (negative, mut rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let mut number = Self { negative, digits: 0, tens: 0 };
        let mut has_digits = false;
        let mut in_fraction = false;
        // Zeros are applied only once another digit follows, so that trailing ones cost nothing.
        let mut zeros = 0;
        while let [byte, tail @ ..] = rest {
            match byte {
                b'0'..=b'9' => {
                    has_digits = true;
                    zeros += 1;
                    if *byte != b'0' {
                        let shift =
                            if number.digits == 0 { 1 } else { 10_u64.checked_pow(zeros)? };
                        number.digits = number.digits.checked_mul(shift)?;
                        number.digits = number.digits.checked_add(u64::from(byte - b'0'))?;
                        zeros = 0;
                    }
                    number.tens -= i32::from(in_fraction);
                }
                b'.' if !in_fraction => in_fraction = true,
                _ => break,
            }
            rest = tail;
        }
        number.tens = number.tens.checked_add_unsigned(zeros)?;
        has_digits.then_some((number, rest))
    }

    /// The number times 10^tens · 2^twos.
    fn scaled(self, tens: i32, twos: i32) -> Option<Decimal> {
        if self.digits == 0 {
            return Some(Decimal::ZERO);
        }
        let tens = self.tens.checked_add(tens)?;
        let mut decimal = Decimal {
            negative: self.negative,
            mantissa: self.digits >> self.digits.trailing_zeros(),
            twos: tens.checked_add(twos)?.checked_add_unsigned(self.digits.trailing_zeros())?,
            fives: tens,
        };
        while decimal.mantissa.is_multiple_of(5) {
            decimal.mantissa /= 5;
            decimal.fives = decimal.fives.checked_add(1)?;
        }
        Some(decimal)
    }
}

/// `e3`, `E+3`, `e-3`
fn parse_exponent(text: &[u8]) -> Option<i32> {
    let [b'e' | b'E', digits @ ..] = text else { return None };
    core::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;

    fn number(text: &str) -> Option<Decimal> {
        Decimal::parse_number(text.as_bytes())
    }

    fn quantity(text: &str) -> Option<Decimal> {
        Decimal::parse_quantity(text.as_bytes())
    }

    #[test]
    fn spellings_of_one_quantity_are_equal() {
        for class in [
            &["1", "1000m", "1.0", "+1", "1e0", "0.001k", "1000000u", "1000000000n"][..],
            &["1Ki", "1024", "1.024k", "1024000m", "1.0240e3", "0.0009765625Mi"],
            &["1.5Gi", "1536Mi", "1610612736"],
            &["0", "0m", "-0", "0.000", "0Ei"],
            &["500m", "0.5", ".5", "5e-1", "500E-3"],
            &["1E", "1e18", "1000P"],
            &["-1", "-1000m"],
            &["100000000000000000000000", "1e23", "100000E"],
        ] {
            for text in class {
                assert!(quantity(text).is_some(), "{text}");
                assert_eq!(quantity(text), quantity(class[0]), "{text} and {}", class[0]);
            }
        }
    }

    #[test]
    fn different_quantities_differ() {
        let all = ["0", "1", "-1", "1m", "1k", "1Ki", "2", "5", "10", "1M", "1Mi", "1n", "1.0001"];
        for (i, one) in all.iter().enumerate() {
            for other in &all[i + 1..] {
                assert_ne!(quantity(one), quantity(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn what_is_no_quantity_has_no_value() {
        for text in ["", "-", ".", "m", "1x", "1 ", "1mm", "1e", "1e1.5", "1.2.3", "0x1", "1ki"] {
            assert_eq!(quantity(text), None, "{text}");
        }
    }

    #[test]
    fn the_sign_is_part_of_the_bytes() {
        let bytes = |text| number(text).map(Decimal::to_bytes);
        let all = ["0", "1", "-1", "3", "-3", "5", "-5", "2", "-2"].map(bytes);
        for (i, one) in all.iter().enumerate() {
            assert!(one.is_some() && !all[i + 1..].contains(one), "{i}");
        }
        assert_eq!(bytes("-0"), bytes("0"));
    }

    proptest! {
        #[test]
        fn a_number_equals_itself_however_it_is_scaled(
            digits in 1_u64..1_000_000_000_000,
            places in 0_usize..8,
            zeros in 0_usize..8,
        ) {
            let plain = number(&format!("{digits}"));
            let point = number(&format!("{digits}.{}", "0".repeat(zeros + 1)));
            let up = number(&format!("{digits}{}e-{places}", "0".repeat(places)));
            let down = number(&format!("0.{}{digits}e{}", "0".repeat(zeros),
                zeros + format!("{digits}").len()));
            prop_assert!(plain.is_some());
            prop_assert_eq!(plain, point);
            prop_assert_eq!(plain, up);
            prop_assert_eq!(plain, down);
            prop_assert_ne!(plain, number(&format!("{}", digits + 1)));
            prop_assert_ne!(plain, number(&format!("-{digits}")));
        }
    }
}
