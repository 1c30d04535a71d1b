//! Waking whoever waits for something to have happened.

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::task::Poll;

use embassy_sync::waitqueue::MultiWakerRegistration;

/// How many can wait without being woken for nothing.
const WAITING: usize = 8;

/// Rung when something has happened; whoever waits looks what it was.
pub(crate) struct Bell {
    rung: Cell<u32>,
    waiting: RefCell<MultiWakerRegistration<WAITING>>,
}

impl Bell {
    pub(crate) const fn new() -> Self {
        Self { rung: Cell::new(0), waiting: RefCell::new(MultiWakerRegistration::new()) }
    }

    pub(crate) fn ring(&self) {
        self.rung.set(self.rung.get().wrapping_add(1));
        self.waiting.borrow_mut().wake();
    }

    /// How often the bell has rung. To be read before looking at what might have happened.
    pub(crate) fn rung(&self) -> u32 {
        self.rung.get()
    }

    /// Waits until the bell has rung since it had rung `before` times.
    pub(crate) async fn wait(&self, before: u32) {
        poll_fn(|context| {
            if self.rung.get() != before {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().register(context.waker());
            Poll::Pending
        })
        .await;
    }
}
