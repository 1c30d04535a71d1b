//! A watchdog that is fed only while the manager makes progress.

use core::cell::Cell;

use embassy_time::{Duration, Instant, Timer};
use picokube_driver::Patience;
use picokube_driver::runtime::Runtime;

use crate::crash::{self, Cause};

/// The board's watchdog. It resets the board when it is not fed for longer than 5 seconds, and
/// well below a minute.
pub trait Watchdog {
    /// All is well for now.
    fn feed(&mut self);
}

/// How often it is fed.
const FEED_EVERY: Duration = Duration::from_secs(2);
/// Longer than any request may take: from the wish to connect to the end of its answer.
const STUCK: Duration = Duration::from_secs(180);
const _: () = {
    let Patience { connect, response, answer: Some(answer), .. } = Patience::REQUESTS else {
        panic!("requests have a bound")
    };
    assert!(connect.as_secs() + response.as_secs() + answer.as_secs() < STUCK.as_secs());
};

/// Feeds the watchdog for ever, as long as what should happen does happen; otherwise keeps that as
/// the reason and resets the device. Before there is a manager, the executor's turning is all that
/// counts.
pub(crate) async fn watch_over(
    mut watchdog: impl Watchdog,
    runtime: &Cell<Option<&'static Runtime<'static>>>,
) -> ! {
    let mut last = Progress { steps: 0, at: Instant::now() };
    loop {
        if !runtime.get().is_none_or(|runtime| last.is_well(runtime)) {
            defmt::error!("no request has made progress for {=u64} s", STUCK.as_secs());
            crash::reset(Cause::Stall, 0, 0, "");
        }
        watchdog.feed();
        Timer::after(FEED_EVERY).await;
    }
}

/// When something last happened that should.
struct Progress {
    steps: u32,
    at: Instant,
}

impl Progress {
    fn is_well(&mut self, runtime: &Runtime<'_>) -> bool {
        let (steps, due) = runtime.pulse();
        if steps != self.steps || !due {
            *self = Self { steps, at: Instant::now() };
        }
        self.at.elapsed() < STUCK
    }
}
