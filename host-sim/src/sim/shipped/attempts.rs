//! Which requests are the same one, sent again.
//!
//! Each attempt to send a request carries a token of its own. A client tells when a request has been
//! answered, or has failed: two attempts without that between them are of one request.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::LazyLock;

use picokube_driver::{Error, Method, Observer};

/// So many attempts have tokens that differ; no two of them that are so far apart are of one request.
const TOKENS: u64 = 1 << 14;

/// All tokens, as headers: a connection borrows the one that it sends.
static HEADERS: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..TOKENS).map(|n| format!("{PREFIX}{n}")).collect());

const PREFIX: &str = "Bearer attempt-";

/// The attempts of all clients.
#[derive(Clone, Default)]
pub(super) struct Attempts(Rc<RefCell<Known>>);

#[derive(Default)]
struct Known {
    begun: u64,
    /// The first attempt of the request that an attempt is of.
    firsts: BTreeMap<u64, u64>,
    /// First attempts of requests that have arrived.
    arrived: BTreeSet<u64>,
}

impl Attempts {
    /// The attempt that a token is of.
    pub(super) fn of_token(header: &str) -> Option<u64> {
        header.strip_prefix(PREFIX)?.parse().ok().filter(|number| *number < TOKENS)
    }

    /// Looks after a client.
    pub(super) fn observer(&self) -> Observed {
        Observed { attempts: self.clone(), first: Cell::new(None) }
    }

    /// An attempt has arrived: whether another one of the same request has arrived before.
    pub(super) fn arrives(&self, attempt: u64) -> bool {
        let mut known = self.0.borrow_mut();
        let first = known.firsts.get(&attempt).copied().unwrap_or(attempt);
        !known.arrived.insert(first)
    }

    fn begin(&self, first: Option<u64>) -> u64 {
        let mut known = self.0.borrow_mut();
        let number = known.begun % TOKENS;
        known.begun += 1;
        known.arrived.remove(&number);
        known.firsts.insert(number, first.unwrap_or(number));
        number
    }
}

/// Looks after one client.
pub(super) struct Observed {
    attempts: Attempts,
    /// The first attempt of the request that is under way.
    first: Cell<Option<u64>>,
}

impl<'a> Observer<'a> for Observed {
    fn authorization(&self) -> Option<&'a str> {
        let number = self.attempts.begin(self.first.get());
        self.first.set(self.first.get().or(Some(number)));
        HEADERS.get(number as usize).map(String::as_str)
    }

    fn answered(&self, _: Method, _: Result<u16, Error>) {
        self.first.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_one_request_are_told_from_those_of_two() {
        let attempts = Attempts::default();
        let client = attempts.observer();
        let attempt = || client.authorization().and_then(Attempts::of_token).expect("a token");
        let (first, again) = (attempt(), attempt());
        client.answered(Method::POST, Err(Error::Reset));
        let other = attempt();
        assert!(!attempts.arrives(again) && !attempts.arrives(other));
        assert!(attempts.arrives(first), "however late it comes");
        assert_eq!(Attempts::of_token("Bearer somebody"), None);
    }
}
