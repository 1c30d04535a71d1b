//! The end that is asked for: Ctrl-C, or the signal with which service managers end a process.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From when there is one, a signal ends the process in good order and not at once. So there is one before
/// anybody is told that something runs.
pub(super) struct Interruption {
    interrupt: Signal,
    terminate: Signal,
}

impl Interruption {
    pub(super) fn expect() -> Result<Self> {
        let signal = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits until it comes; it may have come already.
    pub(super) async fn comes(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
