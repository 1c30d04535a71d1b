//! The grammar of numbers, byte by byte, and the range of those that a float can hold.

use crate::json::ErrorReason;

/// Where in a number the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Minus,
    Zero,
    Integer,
    Dot,
    Fraction,
    E,
    ExponentSign,
    Exponent,
}

/// A number that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    place: Place,
    exponent_is_negative: bool,
    /// How many significant digits `lead` has, at most [`LEAD`].
    lead_digits: u8,
    /// The first significant digits.
    lead: u64,
    /// Where the point is, counted in digits from before the first significant one.
    point: i32,
    exponent: i32,
}

/// Significant digits that are looked at to judge the range.
const LEAD: u8 = 17;
/// The largest float is 0.17976931348623157…·10³⁰⁹; what rounds to it is still in range.
const MAX_POINT: i32 = 309;
const MAX_LEAD: u64 = 17_976_931_348_623_158;

impl Number {
    pub(super) const START: Self = Self {
        place: Place::Start,
        exponent_is_negative: false,
        lead_digits: 0,
        lead: 0,
        point: 0,
        exponent: 0,
    };

    /// How many bytes at the start of `bytes` belong to the number.
    pub(super) fn run(&mut self, bytes: &[u8]) -> Result<usize, (usize, ErrorReason)> {
        for (length, byte) in bytes.iter().enumerate() {
            if !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') {
                return Ok(length);
            }
            self.accept(*byte).map_err(|reason| (length, reason))?;
        }
        Ok(bytes.len())
    }

    fn accept(&mut self, byte: u8) -> Result<(), ErrorReason> {
        self.place = match (self.place, byte) {
            (Place::Start, b'-') => Place::Minus,
            (Place::Start | Place::Minus, b'0') => Place::Zero,
            (Place::Start | Place::Minus | Place::Integer, b'0'..=b'9') => {
                self.digit(byte);
                self.point = self.point.saturating_add(1);
                Place::Integer
            }
            (Place::Zero | Place::Integer, b'.') => Place::Dot,
            (Place::Dot | Place::Fraction, b'0'..=b'9') => {
                self.digit(byte);
                if self.lead_digits == 0 {
                    self.point = self.point.saturating_sub(1);
                }
                Place::Fraction
            }
            (Place::Zero | Place::Integer | Place::Fraction, b'e' | b'E') => Place::E,
            (Place::E, b'+') => Place::ExponentSign,
            (Place::E, b'-') => {
                self.exponent_is_negative = true;
                Place::ExponentSign
            }
            (Place::E | Place::ExponentSign | Place::Exponent, b'0'..=b'9') => {
                let digit = i32::from(byte - b'0');
                self.exponent = self.exponent.saturating_mul(10).saturating_add(digit);
                Place::Exponent
            }
            _ => return Err(ErrorReason::InvalidNumber),
        };
        Ok(())
    }

    fn digit(&mut self, byte: u8) {
        let leading_zero = self.lead_digits == 0 && byte == b'0';
        if !leading_zero && self.lead_digits < LEAD {
            self.lead = self.lead * 10 + u64::from(byte - b'0');
            self.lead_digits += 1;
        }
    }

    /// The verdict when the text of the number is over.
    pub(super) fn finish(self) -> Result<(), ErrorReason> {
        match self.place {
            Place::Zero | Place::Integer | Place::Fraction => {}
            Place::Exponent => {}
            _ => return Err(ErrorReason::InvalidNumber),
        }
        let exponent = if self.exponent_is_negative { -self.exponent } else { self.exponent };
        let point = self.point.saturating_add(exponent);
        if self.lead == 0 || point < MAX_POINT {
            return Ok(());
        }
        let mut lead = self.lead;
        for _ in self.lead_digits..LEAD {
            lead *= 10;
        }
        if point > MAX_POINT || lead > MAX_LEAD {
            Err(ErrorReason::NumberOutOfRange)
        } else {
            Ok(())
        }
    }
}

/// What follows a number that is nothing but a few digits, as most are, unless it is cut or wrong.
#[inline]
pub(super) fn after_count(input: &[u8]) -> Option<&[u8]> {
    let digits = input.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (count, after) = input.split_at_checked(digits)?;
    match (count, after) {
        ([b'0', _, ..], _) => None,
        ([_, ..], [b',' | b'}' | b']', ..]) if digits <= LEAD.into() => Some(after),
        _ => None,
    }
}
