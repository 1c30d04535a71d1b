//! Running a [`Manager`]: one client per watched kind, a few for requests.
//!
//! Whoever has an executor makes a [`Runtime`] and runs, each as a task or joined into one,
//! [`Runtime::watch`] for every [`Kind`](picokube_core::kind::Kind), [`Runtime::serve`] as often
//! as requests may be under way at once, and [`Runtime::make_bodies`] at least once. All of them
//! share the manager and wake each other; none of them ever ends.

mod body_buffer;
mod document;
mod serve;
mod splice;
mod watch;

use core::cell::{Cell, RefCell};

use embassy_futures::select::{Either, select};
use embassy_futures::yield_now;
use embassy_time::{Instant, Timer};
use picokube_core::manager::Manager;
use picokube_core::time::{Instant as CoreInstant, Timestamp};

use crate::Insecure;
use crate::notify::Notify;
use crate::planted::{Bug, planted};

pub use body_buffer::{BodyBuffer, BodyBuffers};
pub use serve::Lane;

/// A manager and those who carry out its wishes.
pub struct Runtime<'m> {
    manager: RefCell<Manager<'m>>,
    notify: Notify,
    /// Counts what requests do.
    steps: Cell<u32>,
    trouble: Cell<Option<Trouble>>,
    in_flight: Cell<InFlight>,
}

/// Requests that were sent, or are being sent, and not answered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// How many there are.
    pub now: u8,
    /// How many there have been at once.
    pub most: u8,
}

/// Why the server is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Trouble {
    /// It cannot be reached.
    Unreachable,
    /// It could not be reached securely.
    Insecure(Insecure),
    /// It does not let us watch, and says why by an HTTP status: 401 is about the token, 403 about
    /// permissions.
    Refused(u16),
}

impl<'m> Runtime<'m> {
    /// A runtime of `manager`.
    pub fn new(manager: Manager<'m>) -> Self {
        Self {
            manager: RefCell::new(manager),
            notify: Notify::new(),
            steps: Cell::new(0),
            trouble: Cell::new(None),
            in_flight: Cell::default(),
        }
    }

    /// Looks at the manager, for health and metrics.
    pub fn inspect<T>(&self, look: impl FnOnce(&Manager<'m>) -> T) -> T {
        look(&self.manager.borrow())
    }

    /// Waits until `condition` holds, looking whenever something has happened.
    pub async fn until(&self, mut condition: impl FnMut(&Manager<'m>) -> bool) {
        loop {
            let before = self.notify.notified();
            if condition(&self.manager.borrow()) {
                return;
            }
            self.notify.wait(before).await;
        }
    }

    /// Writes nothing any more, and gives leadership back if this manager has it, before an orderly end. That
    /// takes no longer than the renew deadline.
    pub async fn release_leadership(&self) {
        self.with(|manager, now| manager.release_leadership(now));
        self.notify.notify();
        self.until(|manager| manager.has_released()).await;
    }

    /// See [`Manager::is_leader_healthy`].
    pub fn is_leader_healthy(&self) -> bool {
        self.manager.borrow().is_leader_healthy(now())
    }

    /// How many steps requests have taken, and whether something should happen now.
    ///
    /// When the first stands still while the second holds, for longer than any request may take,
    /// whoever should act hangs: time for a watchdog. What watches bring does not count, since they
    /// go on when requests do not.
    pub fn pulse(&self) -> (u32, bool) {
        let manager = self.manager.borrow();
        let due = manager.has_work() || manager.poll_at().is_some_and(|at| at <= now());
        (self.steps.get(), due)
    }

    /// Why the server was of no use to the watch that tried last. Changes when something happens.
    pub fn trouble(&self) -> Option<Trouble> {
        self.trouble.get()
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> InFlight {
        self.in_flight.get()
    }

    fn step(&self) {
        self.steps.set(self.steps.get().wrapping_add(1));
    }

    /// The server's time, once it has told.
    pub fn wall_time(&self) -> Option<Timestamp> {
        self.manager.borrow().wall_time(now())
    }

    /// Has the manager tell about the Node of this name, by an event in `namespace`, that a certificate ends
    /// at `at`.
    pub fn tell_certificate_ends(
        &self,
        node: &str,
        namespace: &str,
        which: &'static str,
        at: Timestamp,
    ) {
        self.with(|manager, now| manager.tell_certificate_ends(now, node, namespace, which, at));
        self.notify.notify();
    }

    /// Acts on the manager now.
    fn with<T>(&self, act: impl FnOnce(&mut Manager<'m>, CoreInstant) -> T) -> T {
        act(&mut self.manager.borrow_mut(), now())
    }

    /// Waits until the manager may want something that it did not want when it had been told
    /// `before` times, which is the case at `at` at the latest.
    fn until_something_happens(
        &self,
        before: u32,
        at: Option<CoreInstant>,
    ) -> impl Future<Output = Either<(), ()>> {
        let at = at.map(|at| Instant::from_micros(at.as_micros()));
        // A time that has passed is somebody else's business, who will ring when done.
        let at = at.filter(|at| *at > Instant::now()).unwrap_or(Instant::MAX);
        select(self.notify.wait(before), Timer::at(at))
    }

    /// Hands bytes of a body to the manager, which may be in the midst of another one: then this waits,
    /// and with it the server. `take` returns how many it took.
    async fn hand_over(
        &self,
        mut bytes: &[u8],
        take: impl Fn(&mut Manager<'m>, CoreInstant, &[u8]) -> usize,
    ) {
        loop {
            let before = self.notify.notified();
            let taken = self.with(|manager, now| take(manager, now, bytes));
            bytes = bytes.get(taken..).unwrap_or_default();
            if taken > 0 && !planted(Bug::EventsUntold) {
                self.notify.notify();
            }
            match bytes {
                [] => return,
                _ if taken == 0 && planted(Bug::WaitingBytesDropped) => return,
                // The others come first, now that they can.
                _ if taken > 0 => yield_now().await,
                _ => {
                    let at = self.manager.borrow().decoder_free_at().unwrap_or_else(now);
                    let free = Timer::at(Instant::from_micros(at.as_micros()));
                    select(self.notify.wait(before), free).await;
                }
            }
        }
    }
}

fn now() -> CoreInstant {
    CoreInstant::from_micros(Instant::now().as_micros())
}
