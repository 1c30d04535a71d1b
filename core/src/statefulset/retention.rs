//! Whom the PersistentVolumeClaims of a StatefulSet belong to: its retention policy, as owner references.

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
pub enum Verdict {
    /// Nothing.
    Right,
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
    let set = policy.deletes_with_set && !(policy.deletes_with_pod && is_condemned);
    let pod = policy.deletes_with_pod && is_condemned;
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
    /// Whether nothing is to be written.
    pub const fn is_right(self) -> bool {
        matches!(self, Self::Right | Self::Leave { .. } | Self::Conflict { remove: false })
    }

    /// Whether `ConflictingController` is told where the claims of the pod are seen to.
    pub const fn conflicts(self) -> bool {
        matches!(self, Self::Leave { conflicts: true } | Self::Conflict { .. })
    }
}
