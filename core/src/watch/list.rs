//! The list half of the reflector.

use crate::limits;
use crate::time::Instant;
use crate::wire::{ResourceVersion, Status, StatusReason};

use super::request::length_in_url;
use super::{Malformed, More, Next, Phase, Seen, Source, Watch};

/// Where a list stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// The version that was asked for.
    pub(super) at: At,
    /// Whether it is asked for in pages.
    pub(super) paged: bool,
    /// Complete pages so far.
    pub(super) pages: u16,
    /// The version of the first page, which is the list's.
    version: Option<ResourceVersion>,
}

/// How fresh a list has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// `resourceVersion=0`: whatever is at hand.
    Any,
    /// `resourceVersion=N`: at least that.
    NotOlderThan(ResourceVersion),
    /// No `resourceVersion`: a consistent read.
    Latest,
}

/// Refusals with a rule of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListRefusal {
    /// The version or page is too old.
    Expired,
    /// The server does not know that version yet.
    TooLarge,
    /// 429
    TooMany,
    Other,
}

impl ListRefusal {
    pub(super) fn of(code: u16, status: Option<&Status>) -> Self {
        let reason = status.map(|status| status.reason).unwrap_or_default();
        match (code, reason) {
            (_, StatusReason::Expired | StatusReason::Gone) | (410, _) => Self::Expired,
            (_, StatusReason::Timeout) | (504, _)
                if status.is_some_and(|status| status.resource_version_too_large) =>
            {
                Self::TooLarge
            }
            (_, StatusReason::TooManyRequests) | (429, _) => Self::TooMany,
            _ => Self::Other,
        }
    }
}

impl Progress {
    pub(super) const NONE: Self = Self { at: At::Any, paged: true, pages: 0, version: None };
}

impl Watch {
    /// Chooses the version and paging of a list that begins.
    pub(super) fn begin_list(&mut self) {
        let at = match self.version {
            _ if self.version_unavailable => At::Latest,
            None => At::Any,
            Some(ResourceVersion::ANY) => At::Any,
            Some(version) => At::NotOlderThan(version.max(self.touched)),
        };
        // With a version and no limit, a server can answer from its watch cache.
        let paged = self.always_page || !matches!(at, At::NotOlderThan(_));
        self.restart_list(at, paged);
    }

    pub(super) fn list_bytes(
        &mut self,
        now: Instant,
        random: u32,
        bytes: &[u8],
        source: &mut dyn Source,
    ) -> usize {
        self.stay_open(now);
        let touched = &mut self.touched;
        let decoded = source.push(bytes, &mut |seen| {
            if let Seen::Listed(version) = seen {
                *touched = version.max(*touched);
            }
        });
        decoded.unwrap_or_else(|Malformed| {
            self.abandon();
            self.fail(now, random);
            bytes.len()
        })
    }

    pub(super) fn list_ended(&mut self, now: Instant, random: u32, source: &mut dyn Source) {
        let Ok(end) = source.end_page() else {
            return self.fail(now, random);
        };
        if self.list.pages == 0 {
            self.list.version = end.version;
        }
        self.continue_token.clear();
        let kept = match end.more {
            More::None => return self.list_complete(now, random, source),
            More::Token(token) => {
                length_in_url(token) <= limits::CONTINUE
                    && self.continue_token.push_str(token).is_ok()
            }
            More::Unreadable => false,
        };
        if self.list.pages == 0 && self.list.at == At::Any {
            self.always_page = true;
        }
        if !kept {
            return self.list_whole(now);
        }
        self.list.pages = self.list.pages.saturating_add(1);
        self.phase = Phase::Due { next: Next::Page, at: now };
    }

    /// The server refuses this version, as too old or too new.
    pub(super) fn list_refused(&mut self, now: Instant, random: u32) {
        if self.list.pages > 0 {
            return self.list_whole(now);
        }
        if self.list.at == At::Latest {
            return self.fail(now, random);
        }
        self.version_unavailable = true;
        self.restart_list(At::Latest, true);
        self.phase = Phase::Due { next: Next::Page, at: now };
    }

    fn list_complete(&mut self, now: Instant, random: u32, source: &mut dyn Source) {
        let Some(version) = self.list.version else {
            return self.fail(now, random);
        };
        if version < self.version.unwrap_or_default().max(self.touched) {
            return self.rewind(now, random, source);
        }
        source.replace(version);
        self.version = Some(version);
        self.touched = ResourceVersion::ANY;
        self.version_unavailable = false;
        self.relist_wanted = false;
        self.listed_at = Some(now);
        self.counts.lists = self.counts.lists.wrapping_add(1);
        if !core::mem::replace(&mut self.synced, true) {
            self.resync_at = self.resync.map(|every| now + every);
        }
        self.phase = Phase::Due { next: Next::Watch, at: now };
    }

    /// The list is older than what the server told before: it was restored from a backup, or a
    /// first list broke off and the next one came from a cache that is late. Servers that take turns and
    /// do not agree would make that happen again and again: the next list takes its time.
    fn rewind(&mut self, now: Instant, random: u32, source: &mut dyn Source) {
        source.rewind();
        self.version = None;
        self.touched = ResourceVersion::ANY;
        self.version_unavailable = true;
        self.counts.rewinds = self.counts.rewinds.wrapping_add(1);
        let at = now + self.backoff.next(now, random);
        self.phase = Phase::Due { next: Next::List, at };
    }

    /// Pages do not work out: the whole list at once, at the version first asked for.
    fn list_whole(&mut self, now: Instant) {
        self.restart_list(self.list.at, false);
        self.phase = Phase::Due { next: Next::Page, at: now };
    }

    fn restart_list(&mut self, at: At, paged: bool) {
        self.list = Progress { at, paged, pages: 0, version: None };
        self.continue_token.clear();
    }
}
