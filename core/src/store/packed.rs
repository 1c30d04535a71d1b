//! Values in the form a record keeps them: no padding, the same on every target.

use crate::text::Fingerprint;
use crate::time::Timestamp;
use crate::wire::{self, IntAnnotation, IntOrPercent};

/// 64 bits that need no more than four-byte alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Packed64([u32; 2]);

impl Packed64 {
    pub(super) const fn new(number: u64) -> Self {
        Self([number as u32, (number >> 32) as u32])
    }

    pub(super) const fn get(self) -> u64 {
        let Self([low, high]) = self;
        low as u64 | (high as u64) << 32
    }
}

/// 128 bits that need no more than four-byte alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Packed128([Packed64; 2]);

impl Packed128 {
    pub(super) const fn new(number: u128) -> Self {
        Self([Packed64::new(number as u64), Packed64::new((number >> 64) as u64)])
    }

    pub(super) const fn get(self) -> u128 {
        let Self([low, high]) = self;
        low.get() as u128 | (high.get() as u128) << 64
    }
}

/// A generation. It counts changes of one object, so that 32 bits are plenty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(u32);

impl Generation {
    pub(super) const ZERO: Self = Self(0);

    pub(super) fn new(generation: i64) -> Self {
        Self(generation.clamp(0, i64::from(u32::MAX)) as u32)
    }

    pub(super) const fn get(self) -> i64 {
        self.0 as i64
    }
}

/// A time of an API object: these have whole seconds. All zero means that there is none.
///
/// Reaches from 1970 to 2106; earlier and later times are cut off at the ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(u32);

impl Seconds {
    /// No time.
    pub const NONE: Self = Self(0);

    /// Packs a time.
    pub fn new(time: Option<Timestamp>) -> Self {
        match time {
            Some(time) => Self(time.as_secs().clamp(1, i64::from(u32::MAX)) as u32),
            None => Self(0),
        }
    }

    /// The time, if there is one.
    pub const fn get(self) -> Option<Timestamp> {
        match self.0 {
            0 => None,
            secs => Some(Timestamp::from_secs(secs as i64)),
        }
    }
}

/// A condition of a cached object. Its reason is only compared, so a fingerprint stands for it;
/// its message is not kept, because no decision asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    pub(super) reason: Packed64,
    /// When it was last confirmed.
    pub last_update: Seconds,
    /// When its status last changed.
    pub last_transition: Seconds,
    pub(super) status: Status,
}

/// All zero is "there is no such condition".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Status {
    #[default]
    Absent,
    Unknown,
    True,
    False,
}

impl Condition {
    /// No such condition.
    pub const ABSENT: Self = Self {
        reason: Packed64::new(0),
        last_update: Seconds::NONE,
        last_transition: Seconds::NONE,
        status: Status::Absent,
    };

    /// Packs a condition, or the absence of one.
    pub fn new<const M: usize>(condition: Option<&wire::Condition<M>>) -> Self {
        let Some(condition) = condition else { return Self::default() };
        Self {
            reason: print(&condition.reason),
            last_update: Seconds::new(condition.last_update),
            last_transition: Seconds::new(condition.last_transition),
            status: match condition.status {
                wire::ConditionStatus::Unknown => Status::Unknown,
                wire::ConditionStatus::True => Status::True,
                wire::ConditionStatus::False => Status::False,
            },
        }
    }

    /// The condition with these parts.
    pub const fn of(
        status: wire::ConditionStatus,
        reason: Fingerprint,
        last_update: Seconds,
        last_transition: Seconds,
    ) -> Self {
        let status = match status {
            wire::ConditionStatus::Unknown => Status::Unknown,
            wire::ConditionStatus::True => Status::True,
            wire::ConditionStatus::False => Status::False,
        };
        Self { reason: Packed64::new(reason.to_bits()), last_update, last_transition, status }
    }

    /// Its status; `None` if the object has no such condition.
    pub const fn status(&self) -> Option<wire::ConditionStatus> {
        match self.status {
            Status::Absent => None,
            Status::Unknown => Some(wire::ConditionStatus::Unknown),
            Status::True => Some(wire::ConditionStatus::True),
            Status::False => Some(wire::ConditionStatus::False),
        }
    }

    /// The fingerprint of its reason.
    pub const fn reason(&self) -> Fingerprint {
        Fingerprint::from_bits(self.reason.get())
    }
}

/// An annotation with a whole number, of a cached object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    pub(super) number: Packed64,
    pub(super) state: AnnotationState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnnotationState {
    Absent,
    Invalid,
    Valid,
}

impl Annotation {
    /// The object does not have the annotation.
    pub const ABSENT: Self = Self { number: Packed64::new(0), state: AnnotationState::Absent };

    /// Packs an annotation.
    pub const fn new(annotation: IntAnnotation) -> Self {
        let (number, state) = match annotation {
            IntAnnotation::Absent => (0, AnnotationState::Absent),
            IntAnnotation::Invalid => (0, AnnotationState::Invalid),
            IntAnnotation::Value(number) => (number, AnnotationState::Valid),
        };
        Self { number: Packed64::new(number as u64), state }
    }

    /// The annotation.
    pub const fn get(self) -> IntAnnotation {
        match self.state {
            AnnotationState::Absent => IntAnnotation::Absent,
            AnnotationState::Invalid => IntAnnotation::Invalid,
            AnnotationState::Valid => IntAnnotation::Value(self.number.get() as i64),
        }
    }
}

/// A number of pods or a share of them, of a cached object; all zero bits mean neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    number: i32,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Absent,
    Pods,
    Percent,
}

impl Share {
    /// The field is not set.
    pub const ABSENT: Self = Self { number: 0, unit: Unit::Absent };

    /// Packs a share.
    pub const fn new(share: Option<IntOrPercent>) -> Self {
        match share {
            None => Self::ABSENT,
            Some(IntOrPercent::Int(number)) => Self { number, unit: Unit::Pods },
            Some(IntOrPercent::Percent(number)) => Self { number, unit: Unit::Percent },
        }
    }

    /// The share.
    pub const fn get(self) -> Option<IntOrPercent> {
        match self.unit {
            Unit::Absent => None,
            Unit::Pods => Some(IntOrPercent::Int(self.number)),
            Unit::Percent => Some(IntOrPercent::Percent(self.number)),
        }
    }
}

fn print(text: &str) -> Packed64 {
    Packed64::new(Fingerprint::of(text).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX] {
            assert_eq!(Packed64::new(number).get(), number);
        }
    }

    #[test]
    fn times_come_back_or_stop_at_the_ends() {
        assert_eq!(Seconds::new(None).get(), None);
        for (secs, kept) in [
            (-5, 1),
            (0, 1),
            (1, 1),
            (1_700_000_000, 1_700_000_000),
            (i64::from(u32::MAX), i64::from(u32::MAX)),
            (i64::from(u32::MAX) + 1, i64::from(u32::MAX)),
        ] {
            let packed = Seconds::new(Some(Timestamp::from_secs(secs)));
            assert_eq!(packed.get(), Some(Timestamp::from_secs(kept)), "{secs}");
        }
    }
}
