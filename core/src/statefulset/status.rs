//! The status of a StatefulSet.

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
        self.counts.current = (self.counts.current - 1).max(0);
    }

    /// Whether anything is to be written at all.
    pub fn is_needed(&self) -> bool {
        let Counts { observed_generation, .. } = self.counts;
        let written = Counts { observed_generation, ..self.written };
        observed_generation > self.written.observed_generation
            || self.revisions_differ
            || self.counts != written
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
