//! Mistakes planted on purpose, to show that the simulation with this driver inside finds such mistakes.
//!
//! Without the feature `planted-bugs`, `planted` is a constant `false` and nothing of this is in the code.
//! With it, a test selects one bug at a time; nothing that is shipped turns it on.

/// A mistake that somebody could have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A request whose connection broke is sent once more, whatever it is and whatever became of it.
    WriteRepeated = 1,
    /// What the manager cannot take in yet is thrown away.
    WaitingBytesDropped,
    /// Whoever waits is not told that a watch has brought something.
    EventsUntold,
    /// A body that is sent while it is made ends as soon as it has been made, whatever is still to be sent.
    BodyCutShort,
    /// A stream that is given up is not reset.
    StreamKept,
    /// What a receiver has taken makes no room for more.
    WindowKept,
}

impl Bug {
    /// Those that show over HTTP/1.1.
    pub const OF_HTTP1: [Self; 4] =
        [Self::WriteRepeated, Self::WaitingBytesDropped, Self::EventsUntold, Self::BodyCutShort];
    /// Those that show over HTTP/2.
    pub const OF_HTTP2: [Self; 6] = [
        Self::WriteRepeated,
        Self::WaitingBytesDropped,
        Self::EventsUntold,
        Self::BodyCutShort,
        Self::StreamKept,
        Self::WindowKept,
    ];
}

/// Whether the code is to be wrong in this way.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}

#[cfg(feature = "planted-bugs")]
pub(crate) use selection::planted;
#[cfg(feature = "planted-bugs")]
pub use selection::select;

#[cfg(feature = "planted-bugs")]
mod selection {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    /// The selected bug; 0 is none.
    static SELECTED: AtomicU8 = AtomicU8::new(0);

    /// From now on, the code of this process has this bug and no other.
    pub fn select(bug: Option<Bug>) {
        SELECTED.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
    }

    pub(crate) fn planted(bug: Bug) -> bool {
        SELECTED.load(Ordering::Relaxed) == bug as u8
    }
}
