//! The guard of own writes: a cache that is older than what the controller itself wrote must not
//! lead to a decision.
//!
//! Per owner, the highest version the controller wrote of each kind it writes. A sync may begin
//! when the informers have seen those versions; then the record is dropped. Deletions return no
//! usable version and are covered by [expectations](crate::expect).

use core::fmt;

use crate::link::Slot;
use crate::wire::{ResourceVersion, Uid};

/// What an owner's controller writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Written {
    /// Objects that the owner controls.
    Children,
    /// The owner itself, mostly its status.
    Owner,
}

/// The writes of one owner. [`Consistency`] holds one per slot; all zero is none.
#[derive(Clone, Copy, Debug)]
pub struct Writes {
    /// 64 bits of the owner's uid, which is random: enough to tell it from its successor.
    uid: [u32; 2],
    children: [u32; 2],
    owner: [u32; 2],
}

/// The own writes of all owners of a kind. `S` is `[Writes; N]` where they live, `[Writes]` where
/// they are used.
#[derive(Debug)]
pub struct Consistency<S: ?Sized = [Writes]> {
    writes: S,
}

/// The cache has not seen an own write yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// What was written.
    pub written: Written,
    /// The version the cache has seen.
    pub read: ResourceVersion,
    /// The version that was written.
    pub wrote: ResourceVersion,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, wrote, .. } = self;
        write!(f, "read version: {read} is not as new as written version: {wrote}")
    }
}

impl<const N: usize> Consistency<[Writes; N]> {
    /// Nothing was written.
    pub const fn new() -> Self {
        const { assert!(N > 0 && N <= Slot::MOST) };
        Self { writes: [Writes::NONE; N] }
    }
}

impl<const N: usize> Default for Consistency<[Writes; N]> {
    fn default() -> Self {
        Self::new()
    }
}

impl Consistency {
    /// A write for an owner has returned this version. What was remembered for another uid, an
    /// earlier object of the same name, is forgotten.
    pub fn wrote(&mut self, owner: Slot, uid: Uid, what: Written, version: ResourceVersion) {
        let Some(writes) = self.writes.get_mut(owner.index()) else { return };
        let uid = fold(uid);
        if writes.uid != uid {
            *writes = Writes { uid, ..Writes::NONE };
        }
        let field = match what {
            Written::Children => &mut writes.children,
            Written::Owner => &mut writes.owner,
        };
        *field = split(join(*field).max(version.number()));
    }

    /// Whether the cache has seen all own writes for an owner. `children` and `owners` are the
    /// last versions the two informers applied; an unknown one (`None`) does not hold anything
    /// back.
    pub fn ensure(
        &mut self,
        owner: Slot,
        uid: Uid,
        children: Option<ResourceVersion>,
        owners: Option<ResourceVersion>,
    ) -> Result<(), Stale> {
        let Some(writes) = self.writes.get_mut(owner.index()) else { return Ok(()) };
        if writes.uid == fold(uid) {
            check(Written::Children, writes.children, children)?;
            check(Written::Owner, writes.owner, owners)?;
        }
        *writes = Writes::NONE;
        Ok(())
    }

    /// The owner is gone.
    pub fn forget(&mut self, owner: Slot) {
        if let Some(writes) = self.writes.get_mut(owner.index()) {
            *writes = Writes::NONE;
        }
    }
}

impl Writes {
    const NONE: Self = Self { uid: [0; 2], children: [0; 2], owner: [0; 2] };
}

fn check(written: Written, wrote: [u32; 2], read: Option<ResourceVersion>) -> Result<(), Stale> {
    let wrote = ResourceVersion::new(join(wrote));
    match read {
        Some(read) if read < wrote => Err(Stale { written, read, wrote }),
        _ => Ok(()),
    }
}

fn fold(uid: Uid) -> [u32; 2] {
    let bits = u128::from_le_bytes(uid.to_bytes());
    split(((bits >> 64) as u64).rotate_left(17) ^ bits as u64)
}

const fn split(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

const fn join([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const RS: Slot = Slot::from_index(0).unwrap();
    const UID: Uid = Uid::from_bytes([7; 16]);

    fn version(number: u64) -> Option<ResourceVersion> {
        Some(ResourceVersion::new(number))
    }

    #[test]
    fn holds_back_until_both_informers_have_caught_up() {
        let mut guard = Consistency::<[_; 1]>::new();
        let guard: &mut Consistency = &mut guard;
        assert_eq!(guard.ensure(RS, UID, version(0), version(0)), Ok(()));
        guard.wrote(RS, UID, Written::Children, ResourceVersion::new(90));
        guard.wrote(RS, UID, Written::Children, ResourceVersion::new(100));
        guard.wrote(RS, UID, Written::Children, ResourceVersion::new(99));
        guard.wrote(RS, UID, Written::Owner, ResourceVersion::new(110));
        let children = guard.ensure(RS, UID, version(99), version(110)).unwrap_err();
        assert_eq!(children.written, Written::Children);
        assert_eq!(
            std::format!("{children}"),
            "read version: 99 is not as new as written version: 100"
        );
        let owner = guard.ensure(RS, UID, version(100), version(109)).unwrap_err();
        assert_eq!(owner.written, Written::Owner);
        assert_eq!(guard.ensure(RS, UID, version(100), version(110)), Ok(()));
        // Once caught up the record is dropped.
        assert_eq!(guard.ensure(RS, UID, version(1), version(1)), Ok(()));
    }

    #[test]
    fn versions_compare_as_numbers_and_unknown_ones_do_not_block() {
        let mut guard = Consistency::<[_; 1]>::new();
        let guard: &mut Consistency = &mut guard;
        guard.wrote(RS, UID, Written::Children, ResourceVersion::new(9));
        assert_eq!(guard.ensure(RS, UID, version(10), None), Ok(()));
        guard.wrote(RS, UID, Written::Children, ResourceVersion::new(u64::MAX));
        assert!(guard.ensure(RS, UID, version(u64::MAX - 1), None).is_err());
        assert_eq!(guard.ensure(RS, UID, None, None), Ok(()));
    }

    #[test]
    fn a_successor_of_the_same_name_starts_anew() {
        let other = Uid::from_bytes([8; 16]);
        let mut guard = Consistency::<[_; 1]>::new();
        let guard: &mut Consistency = &mut guard;
        guard.wrote(RS, UID, Written::Children, ResourceVersion::new(100));
        assert_eq!(guard.ensure(RS, other, version(1), version(1)), Ok(()));
        guard.wrote(RS, UID, Written::Children, ResourceVersion::new(100));
        guard.wrote(RS, other, Written::Owner, ResourceVersion::new(50));
        assert_eq!(guard.ensure(RS, other, version(1), version(50)), Ok(()));
        guard.wrote(RS, UID, Written::Children, ResourceVersion::new(100));
        guard.forget(RS);
        assert_eq!(guard.ensure(RS, UID, version(1), version(1)), Ok(()));
    }
}
