//! What the cache keeps of a PersistentVolumeClaim.

use crate::statefulset::retention::{Owners, Reference};
use crate::text::{Fingerprint, Interner, LabelSet};
use crate::wire;
use crate::wire::{OwnerKind, OwnerReference, Uid};

use super::change::RefusalReason;
use super::packed::Packed64;
use super::{Condense, Record, Stored};

/// A cached PersistentVolumeClaim: whom it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct PersistentVolumeClaim {
    references: [StoredReference; wire::PersistentVolumeClaim::REFERENCES],
    /// Its labels.
    pub labels: LabelSet,
    /// Bits of [`flag`].
    flags: u8,
}

/// A reference to a StatefulSet or a pod. [`PersistentVolumeClaim::flags`] tell to which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StoredReference {
    uid: Packed64,
    name: u32,
}

/// Bits of [`PersistentVolumeClaim::flags`].
mod flag {
    pub(super) const DELETING: u8 = 1;
    pub(super) const OTHER_CONTROLLER: u8 = 1 << 1;
    /// Of a reference: where its bits are.
    pub(super) const REFERENCE: [u8; 2] = [2, 5];
    pub(super) const TO_SET: u8 = 1;
    pub(super) const TO_POD: u8 = 1 << 1;
    pub(super) const CONTROLLER: u8 = 1 << 2;
}

impl StoredReference {
    const NONE: Self = Self { uid: Packed64::new(0), name: 0 };

    /// Uids are random: half of their bits tell them apart as surely as fingerprints do texts.
    fn new(name: Fingerprint, uid: Uid) -> Self {
        let bits = u128::from_le_bytes(uid.to_bytes());
        let folded = (bits >> 64) as u64 ^ bits as u64;
        Self { uid: Packed64::new(folded), name: name.to_bits() as u32 }
    }

    fn of(reference: &OwnerReference) -> (Self, u8) {
        let kind = match reference.kind {
            OwnerKind::Pod => flag::TO_POD,
            _ => flag::TO_SET,
        };
        let controller = if reference.is_controller { flag::CONTROLLER } else { 0 };
        (Self::new(reference.name, reference.uid), kind | controller)
    }
}

impl PersistentVolumeClaim {
    fn of(claim: &wire::PersistentVolumeClaim, labels: LabelSet) -> Self {
        let mut record = Self { labels, ..Self::EMPTY };
        if claim.meta.deletion.is_some() {
            record.flags |= flag::DELETING;
        }
        if claim.has_other_controller {
            record.flags |= flag::OTHER_CONTROLLER;
        }
        let places = record.references.iter_mut().zip(flag::REFERENCE);
        for ((place, shift), reference) in places.zip(&claim.references) {
            let (stored, bits) = StoredReference::of(reference);
            *place = stored;
            record.flags |= bits << shift;
        }
        record
    }

    /// What its owner references say of a StatefulSet and of a pod of it, each by name and uid. Without the
    /// pod, whatever refers to its name is of one that was.
    pub fn owners(&self, set: (&str, Uid), pod: Option<(&str, Uid)>, pod_name: &str) -> Owners {
        let set = (StoredReference::new(Fingerprint::of(set.0), set.1), true);
        let uid = pod.map_or(Uid::NIL, |(_, uid)| uid);
        let pod = (StoredReference::new(Fingerprint::of(pod_name), uid), pod.is_some());
        let mut owners = Owners {
            set: Reference::Absent,
            pod: Reference::Absent,
            has_other_controller: self.flags & flag::OTHER_CONTROLLER != 0,
        };
        for (stored, shift) in self.references.iter().zip(flag::REFERENCE) {
            let bits = self.flags >> shift;
            let is_controller = bits & flag::CONTROLLER != 0;
            let ((owner, exists), found) = match bits & (flag::TO_SET | flag::TO_POD) {
                flag::TO_SET => (set, &mut owners.set),
                flag::TO_POD => (pod, &mut owners.pod),
                _ => continue,
            };
            if stored.name != owner.name {
                owners.has_other_controller |= is_controller;
                continue;
            }
            let reference = match (exists && stored.uid == owner.uid, is_controller) {
                (false, _) => Reference::Stale,
                (true, false) => Reference::NotController,
                (true, true) => Reference::Ours,
            };
            // Of two, the one with which more is wrong.
            if reference as u8 > *found as u8 {
                *found = reference;
            }
        }
        owners
    }
}

impl Condense for wire::PersistentVolumeClaim {
    type Record = PersistentVolumeClaim;

    fn condense(&self, texts: &mut Interner) -> Result<PersistentVolumeClaim, RefusalReason> {
        let labels = LabelSet::intern(texts, self.meta.labels.as_slice()?)?;
        Ok(PersistentVolumeClaim::of(self, labels))
    }
}

impl Stored for PersistentVolumeClaim {
    const EMPTY: Self = Self {
        references: [StoredReference::NONE; wire::PersistentVolumeClaim::REFERENCES],
        labels: LabelSet::EMPTY,
        flags: 0,
    };
    /// Nobody looks for all of a namespace.
    type InNamespace = ();
}

impl Record for PersistentVolumeClaim {
    fn labels(&self) -> LabelSet {
        self.labels
    }

    fn is_deleting(&self) -> bool {
        self.flags & flag::DELETING != 0
    }

    fn release(&self, texts: &mut Interner) {
        self.labels.release(texts);
    }
}
