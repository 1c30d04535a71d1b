//! Two-byte references between the elements of a fixed table.

use core::fmt;
use core::num::NonZeroU16;

/// The place of an element in a table of at most [`Slot::MOST`] elements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Slot(NonZeroU16);

/// A reference to an element, or to nothing. All zero bits mean nothing, so that a table of
/// links can live in `.bss`.
pub type Link = Option<Slot>;

impl Slot {
    /// The most elements that slots can tell apart.
    pub const MOST: usize = u16::MAX as usize;

    /// The slot of the first element.
    pub const FIRST: Self = Self(NonZeroU16::MIN);

    /// The slot of the element at `index`, if slots reach that far.
    pub const fn from_index(index: usize) -> Option<Self> {
        if index >= Self::MOST {
            return None;
        }
        match NonZeroU16::new(index as u16 + 1) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The index of the element in its table.
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.index())
    }
}

/// The bucket of a hash in a table of `buckets` buckets, without a division.
pub(crate) fn bucket(hash: u32, buckets: usize) -> usize {
    ((u64::from(hash) * buckets as u64) >> 32) as usize
}

const _: () = assert!(size_of::<Link>() == 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_number_a_table_from_zero_to_the_most() {
        for index in [0, 1, Slot::MOST - 1] {
            assert_eq!(Slot::from_index(index).map(Slot::index), Some(index));
        }
        assert_eq!(Slot::from_index(Slot::MOST), None);
    }

    #[test]
    fn every_hash_has_a_bucket() {
        for buckets in [1, 2, 3, 1000, Slot::MOST] {
            assert_eq!(bucket(0, buckets), 0);
            assert_eq!(bucket(u32::MAX, buckets), buckets - 1);
        }
    }
}
