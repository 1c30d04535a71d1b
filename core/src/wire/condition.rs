//! Conditions of a status.

use crate::limits;
use crate::time::Timestamp;
use heapless::String;

/// One condition of a Deployment or ReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Whether it holds.
    pub status: ConditionStatus,
    /// A word for machines.
    pub reason: String<{ limits::REASON }>,
    /// A sentence for people, cut off at [`limits::MESSAGE`] bytes.
    pub message: String<{ limits::MESSAGE }>,
    /// When it was last confirmed. ReplicaSets do not have it.
    pub last_update: Option<Timestamp>,
    /// When its status last changed.
    pub last_transition: Option<Timestamp>,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ConditionStatus {
    /// `Unknown`, and whatever is neither `True` nor `False`.
    #[default]
    Unknown,
    /// `True`
    True,
    /// `False`
    False,
}

impl ConditionStatus {
    /// The status of this name.
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }

    /// The name of the status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::True => "True",
            Self::False => "False",
        }
    }
}
