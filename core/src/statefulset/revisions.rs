//! Which ControllerRevisions a StatefulSet works with, and which are history.

use crate::link::Slot;
use crate::planted::{Bug, planted};
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

/// The revision that the template asks for. Of equally old ones, that comes first which does in `revisions`.
pub fn update_revision(revisions: impl Iterator<Item = Revision> + Clone) -> UpdateRevision {
    let newest = revisions.clone().max_by_key(Revision::age);
    let step = if planted(Bug::SetRevisionReused) { 0 } else { 1 };
    let next = newest.map_or(1, |newest| newest.revision.saturating_add(step));
    // The newest of all is also the newest of those that are equal, if it is equal.
    match revisions.filter(|one| one.is_equal).max_by_key(Revision::age) {
        None => UpdateRevision::Create { revision: next },
        Some(equal) if Some(equal) == newest => UpdateRevision::Use(equal.slot),
        Some(equal) => UpdateRevision::Bump { slot: equal.slot, revision: next },
    }
}

/// The revision that the pods come from; `None` means the update revision.
pub fn current_revision(mut revisions: impl Iterator<Item = Revision>) -> Option<Slot> {
    revisions.find(|revision| revision.is_named).map(|revision| revision.slot)
}

/// The oldest revision of the history, if that has more than `limit`. A negative limit keeps all.
pub fn next_surplus(revisions: impl Iterator<Item = Revision> + Clone, limit: i32) -> Option<Slot> {
    let history = revisions.filter(|revision| !revision.is_live);
    let limit = usize::try_from(limit).ok().filter(|_| !planted(Bug::SetHistoryKept))?;
    let oldest = history.clone().min_by_key(Revision::age)?;
    (history.count() > limit).then_some(oldest.slot)
}

/// What revisions are sorted by: their number, and when they were created.
pub type Age = (i64, Seconds);

impl Revision {
    /// Of equals, `max_by_key` takes the last, `min_by_key` the first.
    pub(super) const fn age(&self) -> Age {
        (self.revision, self.created)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use std::vec::Vec;

    /// In the order of names: revision, created, equal.
    fn revisions(rows: &[(i64, i64, bool)]) -> Vec<Revision> {
        let rows = rows.iter().enumerate();
        rows.map(|(at, &(revision, created, is_equal))| Revision {
            slot: slot(at),
            revision,
            created: Seconds::new(Some(Timestamp::from_secs(created))),
            is_equal,
            is_named: false,
            is_live: false,
        })
        .collect()
    }

    fn slot(at: usize) -> Slot {
        Slot::from_index(at).unwrap()
    }

    /// Upstream's getSetRevisions and Rollback.
    #[test]
    fn the_update_revision_is_found_bumped_or_created() {
        use UpdateRevision::{Bump, Create, Use};
        for (rows, expected) in [
            (&[][..], Create { revision: 1 }),
            (&[(1, 5, true)], Use(slot(0))),
            (&[(1, 5, false)], Create { revision: 2 }),
            (&[(1, 5, true), (2, 6, false)], Bump { slot: slot(0), revision: 3 }),
            (&[(3, 6, false), (1, 5, true)], Bump { slot: slot(1), revision: 4 }),
            (&[(1, 5, true), (2, 6, true)], Use(slot(1))),
            (&[(1, 5, true), (2, 6, true), (3, 7, false)], Bump { slot: slot(1), revision: 4 }),
            // The same number: the younger one is the newest, then the one whose name comes last.
            (&[(2, 6, true), (2, 5, false)], Use(slot(0))),
            (&[(2, 5, true), (2, 5, false)], Bump { slot: slot(0), revision: 3 }),
            (&[(2, 5, false), (2, 5, true)], Use(slot(1))),
            (&[(2, 5, true), (2, 5, true)], Use(slot(1))),
            (&[(i64::MAX, 5, false)], Create { revision: i64::MAX }),
        ] {
            assert_eq!(update_revision(revisions(rows).iter().copied()), expected, "{rows:?}");
        }
    }

    #[test]
    fn the_current_revision_is_the_one_in_the_status() {
        let mut revisions = revisions(&[(1, 5, false), (2, 6, true)]);
        assert_eq!(current_revision(revisions.iter().copied()), None);
        revisions[0].is_named = true;
        assert_eq!(current_revision(revisions.iter().copied()), Some(slot(0)));
    }

    /// Upstream's LimitsHistory.
    #[test]
    fn the_oldest_of_the_history_go_first() {
        let rows = [(5, 1, true), (2, 9, false), (1, 9, false), (2, 8, false)];
        for (limit, live, expected) in [
            (10, &[0][..], &[][..]),
            (3, &[0], &[]),
            (2, &[0], &[2]),
            (1, &[0], &[2, 3]),
            (0, &[0], &[2, 3, 1]),
            (0, &[0, 2], &[3, 1]),
            (0, &[0, 1, 2, 3], &[]),
            (-1, &[], &[]),
        ] {
            let mut revisions = revisions(&rows);
            revisions.iter_mut().for_each(|one| one.is_live = live.contains(&one.slot.index()));
            let mut gone = Vec::new();
            while let Some(surplus) = next_surplus(revisions.iter().copied(), limit) {
                revisions.retain(|revision| revision.slot != surplus);
                gone.push(surplus.index());
            }
            assert_eq!(gone, expected, "{limit} {live:?}");
        }
        assert_eq!(next_surplus([].into_iter(), 0), None);
    }

    #[test]
    fn of_equals_the_one_whose_name_comes_first_goes_first() {
        assert_eq!(
            next_surplus(revisions(&[(1, 5, false), (1, 5, false)]).into_iter(), 1),
            Some(slot(0))
        );
    }
}
