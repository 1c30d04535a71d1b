//! Names and annotations that a Deployment gives its ReplicaSets.

use core::fmt::Write;

use heapless::String;

use crate::event::write_text;
use crate::json::template_hash;
use crate::limits::{self, ObjectName};
use crate::store::{Deployment, Entry, ReplicaSet};
use crate::text::Interner;

/// The longest `revision-history` that Kubernetes writes.
const HISTORY: usize = 2_000;
const _: () = assert!(limits::REVISION_HISTORY <= HISTORY);

/// The name of the ReplicaSet for a Deployment's template: the Deployment's name, cut off where
/// the whole would be too long, and the hash of the template.
pub(super) fn new_replica_set_name(texts: &Interner, d: Entry<'_, Deployment>) -> ObjectName {
    let hash = template_hash(d.record.template(), d.record.collision_count);
    let mut name = d.name().to_object_name(texts);
    name.truncate((limits::NAME - 1 - hash.len()).min(name.len()));
    // Both fit: the name was cut for that.
    let _ = write!(name, "-{hash}");
    name
}

/// `revision-history` with the present revision added, when a ReplicaSet gets another. `None`
/// leaves it as it is: there was no revision, or it would become too long.
pub(super) fn append_history(
    texts: &Interner,
    rs: &ReplicaSet,
) -> Option<String<{ limits::REVISION_HISTORY }>> {
    let revision = rs.revision().value()?;
    if !rs.knows_history() {
        return None;
    }
    let mut history = String::new();
    write_text(&mut history, texts, rs.revision_history).ok()?;
    let separator = if history.is_empty() { "" } else { "," };
    write!(history, "{separator}{revision}").ok()?;
    Some(history)
}
