//! What an answer means for the sync that waits for it.

use crate::planted::{Bug, planted};
use crate::request::Failure;
use crate::wire::{Meta, Status, StatusReason, Uid};

/// An answer, or what came instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply<'r> {
    pub(crate) verdict: Verdict,
    /// Why, for people.
    pub(crate) message: &'r str,
    /// The object that came back.
    pub(crate) meta: Option<&'r Meta>,
}

/// How a request fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was done.
    Done,
    NotFound,
    Conflict,
    AlreadyExists,
    Invalid,
    NamespaceTerminating,
    /// Any other refusal.
    Refused,
    Failed(Failure),
}

impl Reply<'_> {
    pub(crate) fn is_done(&self) -> bool {
        self.verdict == Verdict::Done
    }

    /// Whether the object of this uid came back, and is not being deleted.
    pub(crate) fn shows_alive(&self, uid: Uid) -> bool {
        let is_alive = |meta: &Meta| meta.uid == uid && meta.deletion.is_none();
        self.is_done() && self.meta.is_some_and(is_alive)
    }
}

impl Verdict {
    pub(crate) fn of(code: u16, status: Option<&Status>) -> Self {
        let reason = status.map_or(StatusReason::Unknown, |status| status.reason);
        match code {
            200..=299 => Self::Done,
            409 if planted(Bug::ConflictSwallowed) => Self::Done,
            _ if status.is_some_and(|status| status.namespace_terminating) => {
                Self::NamespaceTerminating
            }
            404 => Self::NotFound,
            409 if reason == StatusReason::AlreadyExists => Self::AlreadyExists,
            409 => Self::Conflict,
            422 => Self::Invalid,
            _ => Self::Refused,
        }
    }
}
