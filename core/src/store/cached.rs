//! From what was read of an object to what is kept of it.

use crate::json::Digest;
use crate::kind::Kind;
use crate::text::Interner;
use crate::wire::Object;

use super::change::RefusalReason;
use super::{Cache, Stored, Table};

/// An object of which a record can be kept.
pub trait Condense: Object {
    /// What is kept.
    type Record: Stored + 'static;
    /// Whether such an object has a pod template, which a record may know.
    const HAS_TEMPLATE: bool = false;

    /// Makes a record of the object. On failure nothing of it is held by the interner.
    fn condense(&self, texts: &mut Interner) -> Result<Self::Record, RefusalReason>;

    /// The digest of the object's pod template, if the record is of the same generation; what else is
    /// kept of a template is filled in.
    fn recall_template(&mut self, record: &Self::Record, texts: &Interner) -> Option<Digest> {
        let _ = (record, texts);
        None
    }
}

/// An object of a kind that the cache holds. The table of kinds makes these.
pub trait Cached: Condense {
    /// The kind.
    const CACHED: Kind;

    /// The kind's table.
    fn table<'c, 'a>(cache: &'c Cache<'a>) -> &'c Table<'a, Self::Record>;

    /// The kind's table, to be changed.
    fn table_mut<'c, 'a>(cache: &'c mut Cache<'a>) -> &'c mut Table<'a, Self::Record>;
}
