//! Waiting after a failure, longer with every failure in a row.

use embassy_time::{Duration, Instant, Timer};
use picokube_core::backoff::{Backoff, Policy};
use picokube_core::random::Random;

/// How long to wait before the next attempt.
pub(crate) struct Pause {
    backoff: Backoff,
    until: Option<Instant>,
    random: Random,
}

impl Pause {
    /// None so far. `seed` sets the jitter.
    pub(crate) fn new(policy: Policy, seed: u32) -> Self {
        Self { backoff: Backoff::new(policy), until: None, random: Random::new(seed) }
    }

    /// Waits until it is over, if there is one.
    pub(crate) async fn over(&mut self) {
        if let Some(time) = self.until.take() {
            Timer::at(time).await;
        }
    }

    /// What was tried has worked.
    pub(crate) fn succeeded(&mut self) {
        self.backoff.reset();
    }

    /// What was tried has failed.
    pub(crate) fn failed(&mut self) {
        let now = Instant::now();
        let core = picokube_core::time::Instant::from_micros(now.as_micros());
        let delay = self.backoff.next(core, self.random.draw());
        self.until = Some(now + Duration::from_micros(delay.as_micros()));
    }
}
