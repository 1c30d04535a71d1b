//! Trouble on request, for tests of what is to happen then. No part of what is flashed.

use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;

static STARTED: AtomicBool = AtomicBool::new(false);
static STALLED: AtomicBool = AtomicBool::new(false);

/// Whether the controllers have started.
pub fn has_started() -> bool {
    STARTED.load(Ordering::Relaxed)
}

/// The controllers have started.
pub(crate) fn note_start() {
    STARTED.store(true, Ordering::Relaxed);
}

/// From now on, no request gets any further, wherever it is. All else goes on.
pub fn stall() {
    STALLED.store(true, Ordering::Relaxed);
}

/// Does `work` until it is to stall.
pub(crate) async fn unless_stalled<T>(mut work: Pin<&mut impl Future<Output = T>>) -> T {
    poll_fn(|context| match STALLED.load(Ordering::Relaxed) {
        true => Poll::Pending,
        false => work.as_mut().poll(context),
    })
    .await
}
