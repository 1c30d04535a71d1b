//! Mistakes planted on purpose, to show that the simulation finds such mistakes.
//!
//! Without the feature `planted-bugs`, `planted` is a constant `false` and nothing of this is
//! in the code. With it, a test selects one bug at a time; nothing that is shipped turns it on.

/// A mistake that somebody could have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A ReplicaSet decides again before its cache has seen what it has created.
    NoExpectations = 1,
    /// An orphan is adopted without a look at the live owner, which may be gone or another one.
    AdoptsWithoutLook,
    /// An orphan is adopted although its labels are not those that are selected.
    AdoptsUnselected,
    /// What is no longer selected keeps its owner.
    NeverReleases,
    /// Pods and ReplicaSets are created without an owner, which is added later.
    OwnerAddedLater,
    /// A rollout has one pod more than the surge allows.
    SurgeOffByOne,
    /// A rollout takes one available pod more than may be missing.
    UnavailableOffByOne,
    /// A conflict counts as success.
    ConflictSwallowed,
    /// Pods are deleted by the number in the last status, which may tell of some that have gone.
    StaleDelete,
    /// A ReplicaSet that could not do its work is not looked at again, not even when a watch that
    /// was broken is back.
    RetryForgotten,
    /// A Deployment that recreates is not woken when the last old pod has gone.
    WakeForgotten,
    /// What vanished while nobody watched stays in the cache after a list.
    GhostsStay,
    /// A watch whose version is too old begins anew without a list.
    ListSkipped,
    /// Nobody waits for the lists before acting.
    ActsBeforeSync,
    /// Recreating begins while old pods are still there.
    RecreateImpatient,
    /// A ReplicaSet's status is written although it is the same.
    StatusAlwaysWritten,
    /// A ReplicaSet's status does not tell which generation it is of.
    GenerationNotObserved,
    /// Nobody looks again when `minReadySeconds` have passed.
    AvailabilityForgotten,
    /// A new ReplicaSet gets the revision of the one before.
    RevisionReused,
    /// Old ReplicaSets are kept for ever.
    HistoryKept,
    /// An event that the server refuses is sent again, for ever.
    EventsForEver,
    /// A StatefulSet's pod gets another spelling of its ordinal, so that there can be two of one.
    OrdinalPadded,
    /// A StatefulSet's pod is deleted at once: its successor comes while its containers run.
    PodsKilled,
    /// With OrderedReady, pods come without waiting for those below.
    OrderIgnored,
    /// With OrderedReady, pods come without waiting for `minReadySeconds` of those below.
    MinReadyIgnored,
    /// Of the pods of a StatefulSet that are too many, the lowest goes first.
    ScaledDownFromBelow,
    /// An update reaches one pod below the partition.
    PartitionOffByOne,
    /// A pod below the partition is made of the update revision.
    PartitionForgotten,
    /// An update takes the next pod before the last one is back.
    UpdateImpatient,
    /// A new revision of a StatefulSet gets the number of the one before.
    SetRevisionReused,
    /// A revision that pods are of counts as history.
    LiveRevisionDeleted,
    /// The history of a StatefulSet is kept for ever.
    SetHistoryKept,
    /// Claims go with their StatefulSet, whatever the policy.
    ClaimsGivenToSet,
    /// Claims go with a pod that is one too many, whatever the policy.
    ClaimsGivenToPod,
    /// A StatefulSet adopts every pod that it selects, whatever its name.
    AnyNameAdopted,
    /// The status of a StatefulSet is written when its generation or a revision changes, not when a
    /// count does.
    CountsForgotten,
    /// Nobody looks again at a StatefulSet when `minReadySeconds` have passed.
    SetAvailabilityForgotten,
    /// Who does not lead writes nevertheless.
    StandbyWrites,
    /// A leader that cannot renew its lease goes on writing.
    LeaseNeverEnds,
    /// A leader writes until it gives up, and not until its deadline, which is earlier.
    WritesUntilGivenUp,
    /// A Lease is taken although its holder's time is not over.
    LeaseTakenEarly,
    /// A leader that sees somebody else hold the Lease goes on until its own deadline.
    LossUnnoticed,
    /// A request that is under way is not given up when the lease ends.
    WriteOutlivesLease,
}

impl Bug {
    /// Those that show whatever the cluster, but for [those of elections](Self::OF_ELECTIONS).
    pub const ALL: [Self; 37] = [
        Self::NoExpectations,
        Self::AdoptsWithoutLook,
        Self::AdoptsUnselected,
        Self::NeverReleases,
        Self::OwnerAddedLater,
        Self::SurgeOffByOne,
        Self::UnavailableOffByOne,
        Self::ConflictSwallowed,
        Self::StaleDelete,
        Self::RetryForgotten,
        Self::WakeForgotten,
        Self::GhostsStay,
        Self::ListSkipped,
        Self::ActsBeforeSync,
        Self::RecreateImpatient,
        Self::StatusAlwaysWritten,
        Self::GenerationNotObserved,
        Self::AvailabilityForgotten,
        Self::RevisionReused,
        Self::HistoryKept,
        Self::EventsForEver,
        Self::OrdinalPadded,
        Self::PodsKilled,
        Self::OrderIgnored,
        Self::MinReadyIgnored,
        Self::ScaledDownFromBelow,
        Self::PartitionOffByOne,
        Self::PartitionForgotten,
        Self::UpdateImpatient,
        Self::SetRevisionReused,
        Self::LiveRevisionDeleted,
        Self::SetHistoryKept,
        Self::ClaimsGivenToSet,
        Self::ClaimsGivenToPod,
        Self::AnyNameAdopted,
        Self::CountsForgotten,
        Self::SetAvailabilityForgotten,
    ];

    /// Those that only show when several managers take part in an election.
    pub const OF_ELECTIONS: [Self; 6] = [
        Self::StandbyWrites,
        Self::LeaseNeverEnds,
        Self::WritesUntilGivenUp,
        Self::LeaseTakenEarly,
        Self::LossUnnoticed,
        Self::WriteOutlivesLease,
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
