//! Whom the PersistentVolumeClaims of a StatefulSet belong to: its retention policy, as owner references.

use crate::planted::{Bug, planted};

/// `spec.persistentVolumeClaimRetentionPolicy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// `whenDeleted` is `Delete`: claims go with the set.
    pub deletes_with_set: bool,
    /// `whenScaled` is `Delete`: claims go with a pod that is condemned.
    pub deletes_with_pod: bool,
}

/// An owner reference of a claim, to the set or to the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Reference {
    /// There is none.
    #[default]
    Absent,
    /// It is to it, with `controller: true`.
    Ours,
    /// It is to it, without `controller: true`.
    NotController,
    /// Kind and name are right, but the uid is another's.
    Stale,
}

/// The owner references of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// To the StatefulSet.
    pub set: Reference,
    /// To the pod.
    pub pod: Reference,
    /// Somebody else is its controller.
    pub has_other_controller: bool,
}

/// What is to be done about the owner references of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// Nothing.
    Right = 1,
    /// Nothing: it belongs to a set or a pod that was.
    Leave {
        /// `ConflictingController` is told where the claims of the pod are seen to.
        conflicts: bool,
    },
    /// The claim is somebody else's: `ConflictingController` is told where the claims of the pod are seen to.
    Conflict {
        /// Our references have to go.
        remove: bool,
    },
    /// Our references are replaced.
    Write {
        /// By one to the set.
        set: bool,
        /// By one to the pod.
        pod: bool,
    },
}

/// What the policy says about a claim.
pub fn retain(policy: Policy, owners: Owners, is_condemned: bool) -> Verdict {
    let is_policy = policy.deletes_with_set || policy.deletes_with_pod;
    let either = |reference| owners.set == reference || owners.pod == reference;
    let with_set = policy.deletes_with_set || planted(Bug::ClaimsGivenToSet);
    let with_pod = policy.deletes_with_pod || planted(Bug::ClaimsGivenToPod);
    let set = with_set && !(with_pod && is_condemned);
    let pod = with_pod && is_condemned;
    let [has_set, has_pod] = [owners.set, owners.pod].map(|owner| owner != Reference::Absent);
    if either(Reference::Stale) {
        Verdict::Leave { conflicts: is_policy }
    } else if is_policy && owners.has_other_controller {
        Verdict::Conflict { remove: has_set || has_pod }
    } else if either(Reference::NotController) || (has_set, has_pod) != (set, pod) {
        Verdict::Write { set, pod }
    } else {
        Verdict::Right
    }
}

/// Whether a claim keeps its pod from being created: it is about to go with one of the same name that was.
/// There is no pod yet, so that any reference to one of its name is to another.
pub fn is_stale(policy: Policy, owners: Owners) -> bool {
    policy.deletes_with_pod && owners.pod != Reference::Absent
}

impl Verdict {
    /// The claim goes when somebody else does, who may be gone already.
    pub const fn gives_away(self) -> bool {
        matches!(self, Self::Write { set: true, .. } | Self::Write { pod: true, .. })
    }

    /// Whether nothing is to be written.
    pub const fn is_right(self) -> bool {
        matches!(self, Self::Right | Self::Leave { .. } | Self::Conflict { remove: false })
    }

    /// Whether `ConflictingController` is told where the claims of the pod are seen to.
    pub const fn conflicts(self) -> bool {
        matches!(self, Self::Leave { conflicts: true } | Self::Conflict { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::Reference::{Absent, NotController, Ours, Stale};
    use super::*;

    const RETAIN: Policy = Policy { deletes_with_set: false, deletes_with_pod: false };
    const WITH_SET: Policy = Policy { deletes_with_set: true, deletes_with_pod: false };
    const WITH_POD: Policy = Policy { deletes_with_set: false, deletes_with_pod: true };
    const WITH_BOTH: Policy = Policy { deletes_with_set: true, deletes_with_pod: true };
    const POLICIES: [Policy; 4] = [RETAIN, WITH_SET, WITH_POD, WITH_BOTH];
    const REFERENCES: [Reference; 4] = [Absent, Ours, NotController, Stale];

    fn owners(set: Reference, pod: Reference) -> Owners {
        Owners { set, pod, has_other_controller: false }
    }

    /// Upstream's IsClaimOwnerUpToDate and UpdateClaimOwnerRefForSetAndPod.
    #[test]
    fn a_claim_belongs_to_whom_the_policy_says() {
        for (policy, is_condemned, set, pod) in [
            (RETAIN, false, false, false),
            (RETAIN, true, false, false),
            (WITH_SET, false, true, false),
            (WITH_SET, true, true, false),
            (WITH_POD, false, false, false),
            (WITH_POD, true, false, true),
            (WITH_BOTH, false, true, false),
            (WITH_BOTH, true, false, true),
        ] {
            let reference = |is| if is { Ours } else { Absent };
            for (has_set, has_pod) in [(false, false), (false, true), (true, false), (true, true)] {
                let owners = owners(reference(has_set), reference(has_pod));
                let expected = match (has_set, has_pod) == (set, pod) {
                    true => Verdict::Right,
                    false => Verdict::Write { set, pod },
                };
                assert_eq!(retain(policy, owners, is_condemned), expected, "{policy:?} {owners:?}");
                // What was written is right.
                let written = super::tests::owners(reference(set), reference(pod));
                assert_eq!(retain(policy, written, is_condemned), Verdict::Right);
            }
        }
    }

    /// Upstream's ClaimOwnerUpToDateEdgeCases, HasUnexpectedController and HasNonController.
    #[test]
    fn every_odd_case() {
        for policy in POLICIES {
            for (set, pod) in
                REFERENCES.map(|set| REFERENCES.map(|pod| (set, pod))).into_iter().flatten()
            {
                for (is_other, is_condemned) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let owners = Owners { set, pod, has_other_controller: is_other };
                    let verdict = retain(policy, owners, is_condemned);
                    let is_retain = policy == RETAIN;
                    if set == Stale || pod == Stale {
                        assert_eq!(verdict, Verdict::Leave { conflicts: !is_retain });
                        assert!(verdict.is_right());
                    } else if is_other && !is_retain {
                        let remove = set != Absent || pod != Absent;
                        assert_eq!(verdict, Verdict::Conflict { remove });
                        assert!(verdict.conflicts() && verdict.is_right() != remove);
                    } else if set == NotController || pod == NotController {
                        assert!(matches!(verdict, Verdict::Write { .. }));
                    }
                    assert_eq!(
                        verdict.conflicts(),
                        !is_retain && (is_other || set == Stale || pod == Stale)
                    );
                }
            }
        }
    }

    /// Upstream's PodClaimIsStale.
    #[test]
    fn a_claim_is_stale_while_it_goes_with_a_pod_that_was() {
        for policy in POLICIES {
            for set in REFERENCES {
                assert!(!is_stale(policy, owners(set, Absent)));
                assert_eq!(is_stale(policy, owners(set, Stale)), policy.deletes_with_pod);
            }
        }
    }
}
