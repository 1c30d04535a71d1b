//! Creating many objects carefully: 1, 2, 4, 8, … at once, until one fails.

/// A run of creations in batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowStart {
    /// Not yet in a batch.
    remaining: u16,
    /// Size of the batch at hand.
    batch: u16,
    /// Of that batch, not yet asked for.
    waiting: u16,
    /// Asked for and not yet answered.
    open: u16,
    failed: bool,
    succeeded: bool,
    stopped: bool,
}

impl SlowStart {
    /// A run that creates so many.
    pub const fn new(count: u16) -> Self {
        let first = if count > 0 { 1 } else { 0 };
        Self {
            remaining: count - first,
            batch: first,
            waiting: first,
            open: 0,
            failed: false,
            succeeded: false,
            stopped: false,
        }
    }

    /// Whether another creation may begin now.
    pub const fn can_begin(&self) -> bool {
        self.waiting > 0
    }

    /// Whether another creation may begin now; then it has begun.
    pub fn begin(&mut self) -> bool {
        let begins = self.waiting > 0;
        if begins {
            self.waiting -= 1;
            self.open += 1;
        }
        begins
    }

    /// A creation that has begun has ended. A batch with a failure in it is the last one.
    pub fn end(&mut self, success: bool) {
        self.open = self.open.saturating_sub(1);
        self.failed |= !success;
        self.succeeded |= success;
        if self.open == 0 && self.waiting == 0 && !self.failed && !self.stopped {
            self.batch = self.batch.saturating_mul(2).min(self.remaining);
            self.remaining -= self.batch;
            self.waiting = self.batch;
        }
    }

    /// What has not begun is not wanted any more.
    pub fn stop(&mut self) {
        self.remaining += self.waiting;
        self.waiting = 0;
        self.stopped = true;
    }

    /// Whether a first creation has gone well and none has failed.
    pub const fn goes_well(&self) -> bool {
        self.succeeded && !self.failed
    }

    /// Whether nothing is left to begin or to wait for.
    pub const fn is_over(&self) -> bool {
        self.open == 0 && self.waiting == 0
    }

    /// Creations that will never begin, because an earlier batch had a failure or because they
    /// are not wanted any more.
    pub const fn skipped(&self) -> u16 {
        if self.failed || self.stopped { self.remaining } else { 0 }
    }

    /// Creations that are still to begin after the last that began.
    pub const fn to_come(&self) -> u16 {
        self.remaining + self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_has_not_begun_can_be_stopped() {
        let mut start = SlowStart::new(10);
        assert!(start.begin());
        start.end(true);
        assert!(start.begin());
        start.stop();
        assert!(!start.begin() && !start.is_over());
        start.end(true);
        assert!(start.is_over());
        assert_eq!(start.skipped(), 8);
    }

    #[test]
    fn it_goes_well_from_the_first_success_to_the_first_failure() {
        for (ends, goes_well) in [
            ("", false),
            ("+", true),
            ("-", false),
            ("++", true),
            ("+-", false),
            ("+-+", false),
            ("+++", true),
        ] {
            let mut start = SlowStart::new(10);
            for end in ends.chars() {
                assert!(start.begin());
                start.end(end == '+');
            }
            assert_eq!(start.goes_well(), goes_well, "{ends}");
        }
    }

    /// Whether they are in a batch or not.
    #[test]
    fn all_but_those_that_have_begun_are_to_come() {
        let mut start = SlowStart::new(4);
        let mut to_come = Vec::from([start.to_come()]);
        while !start.is_over() {
            assert_eq!(start.can_begin(), start.begin());
            to_come.push(start.to_come());
            start.end(true);
            to_come.push(start.to_come());
        }
        assert_eq!(to_come, [4, 3, 3, 2, 2, 1, 1, 0, 0]);
        assert!(!start.can_begin());
    }

    /// The sizes of the batches when the creations numbered in `failing` fail.
    fn run(count: u16, failing: &[u16]) -> (Vec<u16>, u16) {
        let mut start = SlowStart::new(count);
        let (mut batches, mut number) = (Vec::new(), 0);
        while !start.is_over() {
            let mut batch = 0;
            while start.begin() {
                batch += 1;
            }
            batches.push(batch);
            for _ in 0..batch {
                number += 1;
                start.end(!failing.contains(&number));
            }
        }
        (batches, start.skipped())
    }

    #[test]
    fn batches_double_until_all_are_made() {
        assert_eq!(run(0, &[]), (Vec::new(), 0));
        assert_eq!(run(1, &[]), (Vec::from([1]), 0));
        assert_eq!(run(10, &[]), (Vec::from([1, 2, 4, 3]), 0));
        assert_eq!(run(20, &[]), (Vec::from([1, 2, 4, 8, 5]), 0));
        assert_eq!(run(500, &[]).0.iter().sum::<u16>(), 500);
    }

    #[test]
    fn a_batch_with_a_failure_is_finished_and_the_last() {
        assert_eq!(run(20, &[1]), (Vec::from([1]), 19));
        assert_eq!(run(20, &[2]), (Vec::from([1, 2]), 17));
        assert_eq!(run(20, &[4, 7]), (Vec::from([1, 2, 4]), 13));
        assert_eq!(run(3, &[3]), (Vec::from([1, 2]), 0));
    }
}
