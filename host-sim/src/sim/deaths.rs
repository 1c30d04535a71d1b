//! What a controller leaves behind if it dies at one of its requests.
//!
//! It boots with nothing, so that only two things matter of what it has done: what the server has
//! by then, and which of its writes are still on their way. Points that leave the same behind lead
//! to the same. Events do not count: no controller reads them.

use std::collections::{BTreeMap, BTreeSet};

/// What is left behind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    /// How often what controllers read had changed.
    changes: u64,
    /// The writes that will still arrive, by their number.
    under_way: BTreeSet<u64>,
}

/// What the first controller would have left behind at each of its requests, had it died there.
#[derive(Clone, Debug, Default)]
pub struct Deaths {
    changes: u64,
    under_way: BTreeSet<u64>,
    before: BTreeMap<u64, Leftover>,
    after: BTreeMap<u64, Leftover>,
}

impl Deaths {
    /// Had it died before its n-th request.
    pub fn before_request(&self, number: u64) -> Option<&Leftover> {
        self.before.get(&number)
    }

    /// Had it died when its n-th request had been carried out.
    pub fn after_request(&self, number: u64) -> Option<&Leftover> {
        self.after.get(&number)
    }

    /// A request is about to be sent.
    pub(super) fn before(&mut self, number: u64) {
        self.before.insert(number, self.leftover());
    }

    /// What controllers read has changed so often.
    pub(super) fn changed(&mut self, changes: usize) {
        self.changes += changes as u64;
    }

    /// A write is on its way.
    pub(super) fn under_way(&mut self, number: u64) {
        self.under_way.insert(number);
    }

    /// A request has been carried out.
    pub(super) fn after(&mut self, number: u64) {
        self.under_way.remove(&number);
        self.after.insert(number, self.leftover());
    }

    fn leftover(&self) -> Leftover {
        Leftover { changes: self.changes, under_way: self.under_way.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_between_two_writes_leaves_the_same_behind() {
        let mut deaths = Deaths::default();
        deaths.before(1);
        deaths.under_way(1);
        deaths.before(2);
        deaths.after(2);
        deaths.changed(1);
        deaths.after(1);
        deaths.before(3);
        assert_ne!(deaths.before_request(1), deaths.before_request(2));
        assert_eq!(deaths.before_request(2), deaths.after_request(2));
        assert_eq!(deaths.after_request(1), deaths.before_request(3));
        assert_eq!(deaths.after_request(3), None);
    }
}
