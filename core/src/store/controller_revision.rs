//! What the cache keeps of a ControllerRevision.

use crate::json::Digest;
use crate::text::{Interner, LabelSet};
use crate::wire;

use super::change::RefusalReason;
use super::packed::{Packed64, Packed128, Seconds};
use super::{Condense, Record, Stored};

/// A cached ControllerRevision: which pod template it is of, and how new it is.
#[derive(Clone, Copy, Debug)]
pub struct ControllerRevision {
    data: Packed128,
    revision: Packed64,
    /// When the server created it.
    pub created: Seconds,
    /// Its labels.
    pub labels: LabelSet,
    is_deleting: bool,
}

impl ControllerRevision {
    /// `revision`
    pub const fn revision(&self) -> i64 {
        self.revision.get() as i64
    }

    /// The digest of the pod template in `data`, the `$patch` left out: equal to
    /// [that of the StatefulSet](super::StatefulSet::template) it was made of.
    pub const fn data(&self) -> Digest {
        Digest::from_bits(self.data.get())
    }
}

impl Condense for wire::ControllerRevision {
    type Record = ControllerRevision;

    fn condense(&self, texts: &mut Interner) -> Result<ControllerRevision, RefusalReason> {
        Ok(ControllerRevision {
            data: Packed128::new(self.data.to_bits()),
            revision: Packed64::new(self.revision as u64),
            created: Seconds::new(self.meta.creation),
            labels: LabelSet::intern(texts, self.meta.labels.as_slice()?)?,
            is_deleting: self.meta.deletion.is_some(),
        })
    }
}

impl Stored for ControllerRevision {
    const EMPTY: Self = Self {
        data: Packed128::new(0),
        revision: Packed64::new(0),
        created: Seconds::NONE,
        labels: LabelSet::EMPTY,
        is_deleting: false,
    };
    /// Nobody looks for all of a namespace.
    type InNamespace = ();
}

impl Record for ControllerRevision {
    fn labels(&self) -> LabelSet {
        self.labels
    }

    fn is_deleting(&self) -> bool {
        self.is_deleting
    }

    fn release(&self, texts: &mut Interner) {
        self.labels.release(texts);
    }
}
