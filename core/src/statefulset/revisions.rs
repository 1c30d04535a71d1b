//! Which ControllerRevisions a StatefulSet works with, and which are history.

use crate::link::Slot;
use crate::store::Seconds;

/// The facts about one ControllerRevision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Where it is cached.
    pub slot: Slot,
    /// `revision`
    pub revision: i64,
    /// When it was created.
    pub created: Seconds,
    /// Its data is what the StatefulSet's template gives.
    pub is_equal: bool,
    /// `status.currentRevision` names it.
    pub is_named: bool,
    /// It is the current or the update revision, or a pod is of it.
    pub is_live: bool,
}

/// How the update revision comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateRevision {
    /// It is there.
    Use(Slot),
    /// It is there, from before: it becomes the newest again.
    Bump {
        /// The revision.
        slot: Slot,
        /// Its new number.
        revision: i64,
    },
    /// It is to be created.
    Create {
        /// Its number.
        revision: i64,
    },
}

/// The revision that the template asks for. `revisions` are in the order of their names.
pub fn update_revision(revisions: &[Revision]) -> UpdateRevision {
    let newest = revisions.iter().max_by_key(|revision| revision.age());
    let next = newest.map_or(1, |newest| newest.revision.saturating_add(1));
    // The newest of all is also the newest of those that are equal, if it is equal.
    match revisions.iter().filter(|one| one.is_equal).max_by_key(|revision| revision.age()) {
        None => UpdateRevision::Create { revision: next },
        Some(equal) if Some(equal) == newest => UpdateRevision::Use(equal.slot),
        Some(equal) => UpdateRevision::Bump { slot: equal.slot, revision: next },
    }
}

/// The revision that the pods come from; `None` means the update revision.
pub fn current_revision(revisions: &[Revision]) -> Option<Slot> {
    revisions.iter().find(|revision| revision.is_named).map(|revision| revision.slot)
}

/// The oldest revision of the history, if that has more than `limit`. A negative limit keeps all. `revisions`
/// are in the order of their names.
pub fn next_surplus(revisions: &[Revision], limit: i32) -> Option<Slot> {
    let history = || revisions.iter().filter(|revision| !revision.is_live);
    let limit = usize::try_from(limit).ok()?;
    let oldest = history().min_by_key(|revision| revision.age())?;
    (history().count() > limit).then_some(oldest.slot)
}

impl Revision {
    /// Of equals, the order of names decides: `max_by_key` takes the last of them, `min_by_key` the first.
    const fn age(&self) -> (i64, Seconds) {
        (self.revision, self.created)
    }
}
