//! Names, paths and annotations that are put together from cached texts.

use core::fmt::{self, Write};

use heapless::String;

use crate::event::write_text;
use crate::json::template_hash;
use crate::limits;
use crate::store::{Deployment, Entry, ReplicaSet};
use crate::text::{Interner, Name, Text};

use super::request::{ObjectName, Target};

/// The longest `revision-history` that Kubernetes writes.
const HISTORY: usize = 2_000;
const _: () = assert!(limits::REVISION_HISTORY <= HISTORY);

/// The name of the ReplicaSet for a Deployment's template: the Deployment's name, cut off where
/// the whole would be too long, and the hash of the template.
pub(super) fn new_set_name(texts: &Interner, d: &Entry<Deployment>) -> ObjectName {
    let hash = template_hash(d.record.template(), d.record.collision_count);
    let mut name: ObjectName = display(d.name(), texts);
    name.truncate((limits::NAME - 1 - hash.len()).min(name.len()));
    // Both fit: the name was cut for that.
    let _ = write!(name, "-{hash}");
    name
}

/// A name as a text of its own.
pub(super) fn display(name: Name, texts: &Interner) -> ObjectName {
    let mut out = ObjectName::new();
    // A name has at most as many bytes.
    let _ = write!(out, "{}", name.display(texts));
    out
}

/// A namespace as a text of its own.
pub(super) fn namespace(texts: &Interner, text: Text) -> String<{ limits::NAMESPACE }> {
    let mut out = String::new();
    // A namespace has at most as many bytes.
    let _ = write_text(&mut out, texts, text);
    out
}

/// Writes the path of a collection, such as `/apis/apps/v1/namespaces/default/replicasets`.
pub(super) fn write_collection(
    target: &mut Target,
    texts: &Interner,
    place: Text,
    plural: &str,
) -> fmt::Result {
    let api = if plural == "pods" { "/api/v1" } else { "/apis/apps/v1" };
    write!(target, "{api}/namespaces/")?;
    write_text(target, texts, place)?;
    write!(target, "/{plural}")
}

/// The path of an object.
pub(super) fn object(
    texts: &Interner,
    place: Text,
    plural: &str,
    name: Name,
) -> Result<Target, fmt::Error> {
    let mut target = Target::new();
    write_collection(&mut target, texts, place, plural)?;
    write!(target, "/{}", name.display(texts))?;
    Ok(target)
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
