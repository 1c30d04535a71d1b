//! The status of a StatefulSet.

use crate::planted::{Bug, planted};

use super::view::{Counts, Facts, PodFacts, UpdateStrategy, View};

/// What is written to `/status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusWrite {
    /// All numbers.
    pub counts: Counts,
    /// All pods are of the update revision and Ready: it becomes `currentRevision` too.
    pub is_complete: bool,
    /// The numbers that were written last.
    written: Counts,
    /// A name of a revision changes.
    revisions_differ: bool,
}

impl StatusWrite {
    /// Nothing to write.
    pub const EMPTY: Self = Self {
        counts: Facts::EMPTY.status,
        is_complete: false,
        written: Facts::EMPTY.status,
        revisions_differ: false,
    };

    /// The status that tells of the pods as they are before the sync.
    pub(super) fn of(view: &View<'_>) -> Self {
        let set = &view.set;
        let mut counts = count(view);
        let is_complete = is_complete(set, &counts);
        if is_complete {
            counts.current = counts.updated;
        }
        Self {
            counts,
            is_complete,
            written: set.status,
            revisions_differ: set.revisions_differ || (is_complete && !set.same_revision),
        }
    }

    /// A step that lowers `currentReplicas` has succeeded.
    ///
    /// Kubernetes goes below nothing for pods that are of neither revision; the API server refuses that.
    pub fn lower_current(&mut self) {
        if !self.is_complete {
            self.counts.current = (self.counts.current - 1).max(0);
        }
    }

    /// Whether anything is to be written at all.
    pub fn is_needed(&self) -> bool {
        let Counts { observed_generation, .. } = self.counts;
        let written = Counts { observed_generation, ..self.written };
        observed_generation > self.written.observed_generation
            || self.revisions_differ
            || (self.counts != written && !planted(Bug::CountsForgotten))
    }
}

/// A pod that is of both revisions counts in both.
fn count(view: &View<'_>) -> Counts {
    let count = |is: fn(&PodFacts) -> bool| view.pods.iter().filter(|pod| is(pod)).count() as i32;
    Counts {
        observed_generation: view.set.generation,
        replicas: count(PodFacts::is_created),
        ready: count(PodFacts::is_ready),
        available: count(PodFacts::is_ready_and_available),
        current: count(|pod| pod.is_created() && !pod.is_terminating() && pod.is_current()),
        updated: count(|pod| pod.is_created() && !pod.is_terminating() && pod.is_updated()),
    }
}

/// Behaviour of Kubernetes 1.34: with `OnDelete`, an update is never complete.
fn is_complete(set: &Facts, counts: &Counts) -> bool {
    matches!(set.strategy, UpdateStrategy::RollingUpdate { .. })
        && [counts.updated, counts.ready, counts.replicas] == [set.replicas; 3]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ClaimTable, ordered, plan};
    use super::*;

    fn status(set: Facts, words: &str) -> StatusWrite {
        plan(set, words, ClaimTable::default()).status
    }

    /// Upstream's StatusUpdate and minReadySeconds family.
    #[test]
    fn pods_count_by_what_they_are() {
        for (words, replicas, ready, available, current, updated) in [
            ("", 0, 0, 0, 0, 0),
            ("c", 1, 1, 1, 1, 0),
            ("u", 1, 1, 1, 0, 1),
            ("cu", 1, 1, 1, 1, 1),
            ("n", 1, 1, 1, 0, 0),
            ("ur", 1, 1, 0, 0, 1),
            ("up", 1, 0, 0, 0, 1),
            ("ue", 1, 0, 0, 0, 1),
            ("ut", 1, 1, 1, 0, 0),
            ("u0", 0, 0, 0, 0, 0),
            ("c c ut u u", 5, 5, 5, 2, 2),
        ] {
            let counts = status(Facts { replicas: 9, ..ordered(9) }, words).counts;
            let expected =
                Counts { observed_generation: 1, replicas, ready, available, current, updated };
            assert_eq!(counts, expected, "{words}");
        }
    }

    /// Upstream's CompleteUpdate, as of Kubernetes 1.34.
    #[test]
    fn an_update_is_complete_when_all_pods_are_ready_and_updated() {
        let on_delete = Facts { strategy: UpdateStrategy::OnDelete, ..ordered(2) };
        for (set, words, is_complete, current) in [
            (ordered(2), "u u", true, 2),
            (ordered(2), "u ur", true, 2),
            (ordered(2), "u ub", false, 0),
            (ordered(2), "u c", false, 1),
            (ordered(2), "u", false, 0),
            (ordered(2), "u u u", false, 0),
            (ordered(2), "u ut", false, 0),
            (ordered(0), "", true, 0),
            (on_delete, "u u", false, 0),
            (Facts { deleting: true, ..ordered(2) }, "u u", true, 2),
        ] {
            let status = status(set, words);
            assert_eq!(
                (status.is_complete, status.counts.current),
                (is_complete, current),
                "{words}"
            );
        }
    }

    #[test]
    fn the_same_status_is_not_written_again() {
        let counts = status(ordered(3), "u ur c").counts;
        let written = Facts { status: counts, ..ordered(3) };
        assert!(!status(written, "u ur c").is_needed());
        assert!(status(Facts { generation: 2, ..written }, "u ur c").is_needed());
        assert!(!status(Facts { generation: 0, ..written }, "u ur c").is_needed());
        assert!(status(Facts { revisions_differ: true, ..written }, "u ur c").is_needed());
        for words in ["u u c", "u ur u", "u ur", "u ub c", "u ur n", "u ur cu"] {
            assert!(status(written, words).is_needed(), "{words}");
        }
        // All is told but that the update revision is the current one from now on.
        let all = Facts { status: status(ordered(1), "u").counts, ..ordered(1) };
        assert!(status(all, "u").is_needed());
        assert!(!status(Facts { same_revision: true, ..all }, "cu").is_needed());
    }

    #[test]
    fn deleting_an_outdated_pod_lowers_the_current_replicas() {
        let mut status = status(ordered(2), "n c");
        assert_eq!(status.counts.current, 1);
        status.lower_current();
        status.lower_current();
        assert_eq!(status.counts.current, 0);
    }

    #[test]
    fn nothing_is_written_of_nothing() {
        assert!(!StatusWrite::EMPTY.is_needed());
    }
}
