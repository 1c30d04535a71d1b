//! Waking whoever waits for something to have happened.

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::Poll;

use embassy_sync::waitqueue::MultiWakerRegistration;
use picokube_core::kind::Kind;

/// How many can wait without being woken for nothing: a watch of each kind, requests, and those who look on.
/// With more, they would wake each other for ever.
pub const WAITING: usize = Kind::COUNT + 8;

/// Told when something has happened; whoever waits looks what it was.
pub(crate) struct Notify {
    notified: Cell<u32>,
    waiting: RefCell<MultiWakerRegistration<WAITING>>,
}

impl Notify {
    pub(crate) const fn new() -> Self {
        Self { notified: Cell::new(0), waiting: RefCell::new(MultiWakerRegistration::new()) }
    }

    pub(crate) fn notify(&self) {
        self.notified.set(self.notified.get().wrapping_add(1));
        self.waiting.borrow_mut().wake();
    }

    /// How often there was something to tell. To be read before looking at what might have happened.
    pub(crate) fn notified(&self) -> u32 {
        self.notified.get()
    }

    /// Waits until there is something to tell since there was `before` times.
    pub(crate) async fn wait(&self, before: u32) {
        poll_fn(|context| {
            if self.notified.get() != before {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().register(context.waker());
            Poll::Pending
        })
        .await;
    }
}
