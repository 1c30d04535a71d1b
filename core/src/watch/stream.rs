//! The watch half of the reflector.

use crate::planted::{Bug, planted};
use crate::time::{Duration, Instant};
use crate::wire::ResourceVersion;

use super::list::ListRefusal;
use super::{GRACE, Next, Phase, SHORTEST_WATCH, Seen, Source, Watch};

/// Where a watch stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// The time-out the server was asked for, in seconds.
    pub(super) timeout: u16,
    /// When the server must have ended it.
    pub(super) limit: Instant,
    started: Instant,
    delivered: bool,
    /// The watch began at no particular version: the first ADDED events are not in order.
    unordered: bool,
}

/// The shortest time-out to ask for, in seconds; the longest is twice that.
const TIMEOUT: u16 = 300;

impl Progress {
    pub(super) const NONE: Self = Self {
        timeout: TIMEOUT,
        limit: Instant::ZERO,
        started: Instant::ZERO,
        delivered: false,
        unordered: false,
    };
}

/// How a watch ended from within.
enum Ending {
    TooMany,
    Error,
}

impl Watch {
    pub(super) fn begin_watch(&mut self, now: Instant, random: u32) {
        // Uniform in [300, 600]; the different time-outs keep watches from ending together.
        let extra = (u64::from(random) * u64::from(TIMEOUT + 1)) >> 32;
        let timeout = TIMEOUT + extra as u16;
        self.stream = Progress {
            timeout,
            limit: now + Duration::from_secs(u64::from(timeout)) + GRACE,
            started: now,
            delivered: false,
            unordered: self.version.unwrap_or_default() == ResourceVersion::ANY,
        };
        self.counts.watches = self.counts.watches.wrapping_add(1);
    }

    pub(super) fn stream_bytes(
        &mut self,
        now: Instant,
        random: u32,
        bytes: &[u8],
        source: &mut dyn Source,
    ) -> usize {
        self.stay_open(now);
        let mut ending = None;
        let decoded = source.push(bytes, &mut |seen| {
            if ending.is_none() {
                ending = self.seen(seen);
            }
        });
        match (ending, decoded) {
            (Some(Ending::TooMany), _) => {
                self.abandon();
                self.retry_watch(now, random);
            }
            (Some(Ending::Error), _) => {
                self.abandon();
                self.fail(now, random);
            }
            (None, Err(_)) => {
                self.abandon();
                self.stream_ended(now, random);
            }
            (None, Ok(taken)) => {
                self.stay_open(now);
                return taken;
            }
        }
        bytes.len()
    }

    /// The stream is over, by the server's time-out or a broken connection: a new watch takes
    /// over where it ended.
    pub(super) fn stream_ended(&mut self, now: Instant, random: u32) {
        let short = now.since(self.stream.started) < SHORTEST_WATCH;
        if short && !self.stream.delivered {
            return self.fail(now, random);
        }
        self.phase = Phase::Due { next: Next::Watch, at: now };
    }

    /// Nobody listens, or too many do: the same watch again, later.
    pub(super) fn retry_watch(&mut self, now: Instant, random: u32) {
        self.counts.errors = self.counts.errors.wrapping_add(1);
        self.retries = 0;
        let at = now + self.backoff.next(now, random);
        self.phase = Phase::Due { next: Next::Watch, at };
    }

    fn seen(&mut self, seen: Seen<'_>) -> Option<Ending> {
        let version = match seen {
            Seen::Foreign | Seen::Listed(_) => return None,
            Seen::Error(status) => {
                return Some(match ListRefusal::of(status.code, Some(status)) {
                    ListRefusal::TooMany => Ending::TooMany,
                    ListRefusal::Expired if planted(Bug::ListSkipped) => {
                        self.version = Some(ResourceVersion::ANY);
                        Ending::TooMany
                    }
                    _ => Ending::Error,
                });
            }
            Seen::Added(version) => {
                self.stream.delivered = true;
                if self.stream.unordered {
                    return None;
                }
                version
            }
            Seen::Changed(version) => version,
            Seen::Bookmark(version) => {
                self.bookmarks_seen = true;
                version
            }
        };
        self.stream.delivered = true;
        self.stream.unordered = false;
        self.version = Some(version);
        None
    }
}
