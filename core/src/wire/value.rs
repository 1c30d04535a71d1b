//! Kept values in their types.

use super::project::{Fault, Value};
use crate::time::Timestamp;
use core::str::FromStr;
use heapless::String;

impl<'a> Value<'a> {
    /// A string, whole.
    pub fn text(self) -> Result<&'a str, Fault> {
        match self {
            Self::Text { text, cut: false } => Ok(text),
            Self::Text { cut: true, .. } => Err(Fault::TooLong),
            Self::Number(_) | Self::Bool(_) => Err(Fault::WrongType),
        }
    }

    /// A string that has to fit.
    pub fn fit<const N: usize>(self, target: &mut String<N>) -> Result<(), Fault> {
        let text = self.text()?;
        target.clear();
        target.push_str(text).map_err(|_| Fault::TooLong)
    }

    /// A string as far as it fits, cut between two characters.
    pub fn cut<const N: usize>(self, target: &mut String<N>) -> Result<(), Fault> {
        let Self::Text { text, .. } = self else { return Err(Fault::WrongType) };
        target.clear();
        text.chars().try_for_each(|character| target.push(character)).ok();
        Ok(())
    }

    /// A whole number.
    pub fn int<T: FromStr>(self) -> Result<T, Fault> {
        match self {
            Self::Number(text) => text.parse().map_err(|_| Fault::Malformed),
            Self::Text { .. } | Self::Bool(_) => Err(Fault::WrongType),
        }
    }

    /// A boolean.
    pub fn bool(self) -> Result<bool, Fault> {
        match self {
            Self::Bool(value) => Ok(value),
            Self::Text { .. } | Self::Number(_) => Err(Fault::WrongType),
        }
    }

    /// A timestamp.
    pub fn time(self) -> Result<Timestamp, Fault> {
        Timestamp::parse_rfc3339(self.text()?.as_bytes()).ok_or(Fault::Malformed)
    }
}
