//! What the cache keeps of a condition.

use crate::wire::{self, ConditionStatus};

use super::packed::Seconds;

/// A condition of a cached object. Its message is not kept, because no decision asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// When it was last confirmed.
    pub last_update: Seconds,
    /// When its status last changed.
    pub last_transition: Seconds,
    /// Why it is as it is; `None` if a reason of somebody else's.
    pub reason: Option<ConditionReason>,
    pub(super) state: ConditionState,
}

/// The status of a condition. All zero is "there is no such condition".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConditionState {
    #[default]
    Absent,
    Unknown,
    True,
    False,
}

impl Condition {
    /// No such condition.
    pub const ABSENT: Self = Self {
        last_update: Seconds::NONE,
        last_transition: Seconds::NONE,
        reason: None,
        state: ConditionState::Absent,
    };

    /// Packs a condition, or the absence of one.
    pub fn new<const M: usize>(condition: Option<&wire::Condition<M>>) -> Self {
        let Some(condition) = condition else { return Self::ABSENT };
        Self::of(
            condition.status,
            ConditionReason::parse(&condition.reason),
            Seconds::new(condition.last_update),
            Seconds::new(condition.last_transition),
        )
    }

    /// The condition with these parts.
    pub const fn of(
        status: ConditionStatus,
        reason: Option<ConditionReason>,
        last_update: Seconds,
        last_transition: Seconds,
    ) -> Self {
        let state = match status {
            ConditionStatus::Unknown => ConditionState::Unknown,
            ConditionStatus::True => ConditionState::True,
            ConditionStatus::False => ConditionState::False,
        };
        Self { last_update, last_transition, reason, state }
    }

    /// Its status; `None` if the object has no such condition.
    pub const fn status(&self) -> Option<ConditionStatus> {
        match self.state {
            ConditionState::Absent => None,
            ConditionState::Unknown => Some(ConditionStatus::Unknown),
            ConditionState::True => Some(ConditionStatus::True),
            ConditionState::False => Some(ConditionStatus::False),
        }
    }

    /// Whether it is there for this reason.
    pub fn is_because(&self, reason: ConditionReason) -> bool {
        self.status().is_some() && self.reason == Some(reason)
    }
}

macro_rules! reasons {
    ($first:ident $first_doc:literal $($reason:ident $doc:literal)*) => {
        /// Why a condition is as it is: the reasons that controllers here give.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum ConditionReason {
            #[doc = $first_doc]
            $first = 1,
            $(#[doc = $doc] $reason,)*
        }

        impl ConditionReason {
            /// All of them.
            pub const ALL: &[Self] = &[Self::$first, $(Self::$reason,)*];

            /// As the API writes it.
            pub const fn text(self) -> &'static str {
                match self {
                    Self::$first => stringify!($first),
                    $(Self::$reason => stringify!($reason),)*
                }
            }
        }
    };
}
reasons! {
    MinimumReplicasAvailable "`Available`, when it is true."
    MinimumReplicasUnavailable "`Available`, when it is false."
    NewReplicaSetAvailable "`Progressing`, when the rollout is complete."
    ReplicaSetUpdated "`Progressing`, while the rollout moves."
    ProgressDeadlineExceeded "`Progressing`, when nothing has moved for too long."
    DeploymentPaused "`Progressing` of a paused Deployment."
    DeploymentResumed "`Progressing` of a Deployment that is no longer paused."
    FoundNewReplicaSet "`Progressing`, when the new ReplicaSet was there already."
    NewReplicaSetCreated "`Progressing`, when the new ReplicaSet was created."
    ReplicaSetCreateError "`Progressing`, when the new ReplicaSet cannot be created."
    FailedCreate "`ReplicaFailure`, when pods cannot be created."
    FailedDelete "`ReplicaFailure`, when pods cannot be deleted."
}

impl ConditionReason {
    /// The reason of this text, if it is one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.text() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_back_unless_they_are_somebody_elses() {
        for reason in ConditionReason::ALL {
            assert_eq!(ConditionReason::parse(reason.text()), Some(*reason));
        }
        assert_eq!(ConditionReason::parse("Whatever"), None);
        assert_eq!(ConditionReason::parse(""), None);
    }

    #[test]
    fn a_condition_takes_twelve_bytes() {
        assert_eq!(size_of::<Condition>(), 12);
    }
}
