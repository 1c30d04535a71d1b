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
    let hash = template_hash(d.record.template(), d.record.collision_count());
    let mut name = d.name().to_object_name(texts);
    name.truncate((limits::NAME - 1 - hash.len()).min(name.len()));
    // Both fit: the name was cut for that.
    let _ = write!(name, "-{hash}");
    name
}

/// `revision-history` with the present revision added, when a ReplicaSet gets another; where it would
/// become too long, without the oldest. `None` leaves it as it is: there was no revision, or what is
/// there is longer than can be kept here.
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
    append(&mut history, revision);
    Some(history)
}

fn append<const N: usize>(history: &mut String<N>, revision: i64) {
    let mut last = String::<20>::new();
    // No number is longer.
    let _ = write!(last, "{revision}");
    while !history.is_empty() && history.len() + 1 + last.len() > N {
        let rest = history.split_once(',').map_or("", |(_, rest)| rest);
        // It is shorter than what it is a part of.
        *history = String::try_from(rest).unwrap_or_default();
    }
    let separator = if history.is_empty() { "" } else { "," };
    // There is room now.
    let _ = write!(history, "{separator}{last}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_revisions_make_room_for_the_last_one() {
        let mut history = String::<12>::new();
        for (revision, expected) in [
            (1, "1"),
            (22, "1,22"),
            (333, "1,22,333"),
            (4, "1,22,333,4"),
            (55, "22,333,4,55"),
            (666_666, "4,55,666666"),
            (-77_777_777_777, "-77777777777"),
            (8, "8"),
        ] {
            append(&mut history, revision);
            assert_eq!(history, expected);
        }
    }
}
