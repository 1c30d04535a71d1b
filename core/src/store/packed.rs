//! Values in the form a record keeps them: no padding, the same on every target.

use crate::time::Timestamp;
use crate::wire::{IntAnnotation, IntOrPercent};

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

/// A number of pods in a status, in three bytes: there is not room for as many as that in any cache, and
/// their sums fit as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count24([u8; 3]);

impl Count24 {
    /// None.
    pub const ZERO: Self = Self([0; 3]);

    /// Packs a number, or what is nearest to it.
    pub fn new(number: i32) -> Self {
        let [low, middle, high, _] = number.clamp(0, 0xff_ffff).to_le_bytes();
        Self([low, middle, high])
    }

    /// The number.
    pub const fn get(self) -> i32 {
        let Self([low, middle, high]) = self;
        i32::from_le_bytes([low, middle, high, 0])
    }
}

/// What an annotation with a whole number is, beside the number.
pub(super) const fn pack_annotation(annotation: IntAnnotation) -> (Packed64, u8) {
    match annotation {
        IntAnnotation::Absent => (Packed64::new(0), 0),
        IntAnnotation::Invalid => (Packed64::new(0), 1),
        IntAnnotation::Value(number) => (Packed64::new(number as u64), 2),
    }
}

/// The annotation again, of its number and two bits.
pub(super) const fn unpack_annotation(number: Packed64, state: u8) -> IntAnnotation {
    match state & 3 {
        0 => IntAnnotation::Absent,
        1 => IntAnnotation::Invalid,
        _ => IntAnnotation::Value(number.get() as i64),
    }
}

/// A number of pods or a share of them, and the flags that tell which.
pub(super) fn share(share: Option<IntOrPercent>, is_there: u16, is_percent: u16) -> (i32, u16) {
    match share {
        None => (0, 0),
        Some(IntOrPercent::Int(number)) => (number, is_there),
        Some(IntOrPercent::Percent(number)) => (number, is_there | is_percent),
    }
}

/// The number or share again.
pub(super) const fn int_or_percent(number: i32, is_percent: bool) -> IntOrPercent {
    if is_percent { IntOrPercent::Percent(number) } else { IntOrPercent::Int(number) }
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
    fn counts_come_back_or_stop_at_the_ends() {
        for (number, kept) in [(-1, 0), (0, 0), (65_536, 65_536), (i32::MAX, 0xff_ffff)] {
            assert_eq!(Count24::new(number).get(), kept);
        }
    }

    #[test]
    fn annotations_come_back() {
        for annotation in [
            IntAnnotation::Absent,
            IntAnnotation::Invalid,
            IntAnnotation::Value(0),
            IntAnnotation::Value(i64::MIN),
            IntAnnotation::Value(i64::MAX),
        ] {
            let (number, state) = pack_annotation(annotation);
            assert_eq!(unpack_annotation(number, state), annotation);
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
