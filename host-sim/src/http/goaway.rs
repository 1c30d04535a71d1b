//! GOAWAY now and then, as kube-apiserver's `--goaway-chance` has it.
//!
//! With several API servers it spreads clients, which would else stay where they once connected. Here
//! it is for whoever wants to see a client follow GOAWAY.

use std::sync::{Mutex, PoisonError};

use http::Version;

use crate::random::Random;

/// Decides by lot which requests end the connection that they came over.
#[derive(Debug)]
pub(super) struct GoAway {
    /// From 0, never, to 1, always.
    chance: f64,
    random: Mutex<Random>,
}

impl GoAway {
    pub(super) fn new(chance: f64) -> Self {
        Self { chance, random: Mutex::new(Random::from_entropy()) }
    }

    /// Whether the client of this request has to go on over another connection. Only HTTP/2 can tell
    /// it without harm to what is under way.
    pub(super) fn strikes(&self, version: Version) -> bool {
        const STEPS: u64 = 1 << 32;
        if self.chance <= 0.0 || version != Version::HTTP_2 {
            return false;
        }
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        (random.below(STEPS) as f64) < self.chance * STEPS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_as_often_as_it_should_and_over_http_2_only() {
        let strikes = |chance, version| {
            let goaway = GoAway::new(chance);
            (0..10_000).filter(|_| goaway.strikes(version)).count()
        };
        assert_eq!(strikes(0.0, Version::HTTP_2), 0);
        assert_eq!(strikes(1.0, Version::HTTP_2), 10_000);
        assert_eq!(strikes(1.0, Version::HTTP_11), 0);
        // 100 are expected; beyond these bounds lies less than one of 10²⁰ runs.
        assert!((20..220).contains(&strikes(0.01, Version::HTTP_2)));
    }
}
