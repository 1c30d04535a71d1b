//! Conditions of a status.

use super::project::{Fault, Value};
use super::table::{Field, FieldTable, Rule};
use crate::limits;
use crate::time::Timestamp;
use heapless::String;

/// One condition of a Deployment or ReplicaSet, with so many bytes of its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition<const MESSAGE: usize = { limits::MESSAGE }> {
    /// Whether it holds.
    pub status: ConditionStatus,
    /// A word for machines.
    pub reason: String<{ limits::REASON }>,
    /// A sentence for people, cut off.
    pub message: String<MESSAGE>,
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

pub(super) static CONDITION: FieldTable = FieldTable::new(&[
    ("type", Rule::Keep(Field::ConditionType)),
    ("status", Rule::Keep(Field::ConditionStatus)),
    ("reason", Rule::Keep(Field::ConditionReason)),
    ("message", Rule::Keep(Field::ConditionMessage)),
    ("lastUpdateTime", Rule::Keep(Field::ConditionLastUpdate)),
    ("lastTransitionTime", Rule::Keep(Field::ConditionLastTransition)),
]);

/// The types of condition that the controllers set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionType {
    Other,
    Available,
    Progressing,
    ReplicaFailure,
}

/// The condition that is being read.
#[derive(Clone, Debug)]
pub(super) struct ConditionDraft<const MESSAGE: usize> {
    pub(super) kind: ConditionType,
    pub(super) condition: Condition<MESSAGE>,
}

impl<const MESSAGE: usize> ConditionDraft<MESSAGE> {
    pub(super) const START: Self = Self {
        kind: ConditionType::Other,
        condition: Condition {
            status: ConditionStatus::Unknown,
            reason: String::new(),
            message: String::new(),
            last_update: None,
            last_transition: None,
        },
    };

    pub(super) fn clear(&mut self) {
        self.kind = ConditionType::Other;
        self.condition.status = ConditionStatus::Unknown;
        self.condition.reason.clear();
        self.condition.message.clear();
        self.condition.last_update = None;
        self.condition.last_transition = None;
    }

    pub(super) fn keep(&mut self, field: Field, value: Value<'_>) -> Result<(), Fault> {
        let condition = &mut self.condition;
        match field {
            Field::ConditionType => {
                self.kind = match value.text()? {
                    "Available" => ConditionType::Available,
                    "Progressing" => ConditionType::Progressing,
                    "ReplicaFailure" => ConditionType::ReplicaFailure,
                    _ => ConditionType::Other,
                }
            }
            Field::ConditionStatus => condition.status = ConditionStatus::parse(value.text()?),
            Field::ConditionReason => value.cut(&mut condition.reason)?,
            Field::ConditionMessage => value.cut(&mut condition.message)?,
            Field::ConditionLastUpdate => condition.last_update = Some(value.time()?),
            Field::ConditionLastTransition => condition.last_transition = Some(value.time()?),
            _ => {}
        }
        Ok(())
    }
}
