//! How much a server may ask of us without giving anything.
//!
//! Frames that carry nothing (settings, pings, frames about streams that are over, …) take little to send and
//! some work to read. There is no queue that they could fill, so what they cost is time and energy. Each
//! takes one from a budget, which is filled again by what is of use: data, and our own requests. A
//! server that empties it does nothing else, and is left (RFC 9113 §10.5).

use crate::error::{Error, Flood};

/// What a connection starts with, and the most that it can have.
const FULL: u16 = 256;
/// For a request that we send: the server will acknowledge, widen, perhaps reset.
pub(crate) const REQUEST: u16 = 16;
/// For a DATA frame with data. A watch without events has one a minute.
pub(crate) const DATA: u16 = 8;

/// For a DATA frame of ours of so many bytes: the server will widen stream and connection, some for every
/// few hundred bytes that they read.
pub(crate) fn sent(count: usize) -> u16 {
    4 + u16::try_from(count / 256).unwrap_or(FULL)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget(u16);

impl Budget {
    pub(crate) const ZERO: Self = Self(0);
    pub(crate) const FULL: Self = Self(FULL);

    pub(crate) fn earn(&mut self, count: u16) {
        self.0 = self.0.saturating_add(count).min(FULL);
    }

    pub(crate) fn spend(&mut self, on: Flood) -> Result<(), Error> {
        self.0 = self.0.checked_sub(1).ok_or(Error::Flood(on))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_and_is_filled_again() {
        let mut budget = Budget::FULL;
        for _ in 0..FULL {
            budget.spend(Flood::Ping).unwrap();
        }
        assert_eq!(budget.spend(Flood::Ping), Err(Error::Flood(Flood::Ping)));
        budget.earn(1);
        budget.spend(Flood::Settings).unwrap();
        budget.earn(u16::MAX);
        assert_eq!(budget.0, FULL);
    }
}
