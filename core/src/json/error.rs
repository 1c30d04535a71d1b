//! Why a text is no JSON.

use core::fmt;

/// Where and why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Error {
    /// How many bytes of the stream came before the one at fault.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: ErrorReason,
}

/// What is wrong with a text that is no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ErrorReason {
    /// A value was expected.
    ExpectedValue,
    /// The name of a member was expected.
    ExpectedKey,
    /// A colon was expected after the name of a member.
    ExpectedColon,
    /// A comma or the end of the array or object was expected.
    ExpectedCommaOrEnd,
    /// Something other than `true`, `false` or `null`.
    InvalidLiteral,
    /// A number that breaks the grammar.
    InvalidNumber,
    /// A number beyond what a 64-bit float can hold.
    NumberOutOfRange,
    /// A control character in a string that is not escaped.
    ControlCharacter,
    /// An escape that does not exist, or `\u` without four hexadecimal digits.
    InvalidEscape,
    /// Half of a UTF-16 surrogate pair.
    LoneSurrogate,
    /// Bytes in a string that are no UTF-8.
    InvalidUtf8,
    /// More nested arrays and objects than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep,
    /// Something follows the end of the document.
    TrailingData,
    /// The text ends before the document does.
    UnexpectedEnd,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid JSON at byte {}: {}", self.offset, self.reason)
    }
}

impl fmt::Display for ErrorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExpectedValue => "expected a value",
            Self::ExpectedKey => "expected the name of a member",
            Self::ExpectedColon => "expected `:`",
            Self::ExpectedCommaOrEnd => "expected `,` or the end of the array or object",
            Self::InvalidLiteral => "expected `true`, `false` or `null`",
            Self::InvalidNumber => "invalid number",
            Self::NumberOutOfRange => "number out of range",
            Self::ControlCharacter => "control character in a string",
            Self::InvalidEscape => "invalid escape in a string",
            Self::LoneSurrogate => "half of a surrogate pair in a string",
            Self::InvalidUtf8 => "invalid UTF-8 in a string",
            Self::TooDeep => "nested too deeply",
            Self::TrailingData => "unexpected data after the document",
            Self::UnexpectedEnd => "unexpected end",
        })
    }
}

impl core::error::Error for Error {}
