//! What ReplicaSets wanted of late, as controllers knew it.

use std::collections::BTreeMap;

use picokube_core::wire::Uid;

use super::super::clock::Moment;
use super::{Issued, KEEPERS, Tables};

/// A burst is decided at once and sent one by one, but not for longer than this. A request that
/// the server wants to see again later was decided as long before.
const DECIDED_WITHIN_SECS: u64 = 60;

/// `spec.replicas` of ReplicaSets over the last while, by controller and uid.
#[derive(Debug, Default)]
pub(super) struct Wanted(BTreeMap<(usize, Uid), Vec<(Moment, i32)>>);

impl Wanted {
    /// Remembers what every ReplicaSet wants now.
    pub(super) fn note(&mut self, issued: &Issued<'_, '_>) {
        let of = |kind| issued.cache.table_of(kind).iter();
        for (_, set) in KEEPERS.into_iter().flat_map(of) {
            let wanted = self.0.entry((issued.device, set.uid())).or_default();
            match wanted.last_mut() {
                Some((at, last)) if *last == set.record.replicas => *at = issued.now,
                _ => wanted.push((issued.now, set.record.replicas)),
            }
            let is_recent =
                |at: Moment| issued.now.micros_since(at) < DECIDED_WITHIN_SECS * 1_000_000;
            wanted.retain(|(at, _)| is_recent(*at));
        }
    }

    /// A controller has forgotten everything.
    pub(super) fn forget(&mut self, device: usize) {
        self.0.retain(|(of, _), _| *of != device);
    }

    pub(super) fn most(&self, device: usize, set: Uid) -> usize {
        self.recent(device, set).max().unwrap_or(0)
    }

    pub(super) fn least(&self, device: usize, set: Uid) -> usize {
        self.recent(device, set).min().unwrap_or(0)
    }

    fn recent(&self, device: usize, set: Uid) -> impl Iterator<Item = usize> {
        let recent = self.0.get(&(device, set)).into_iter().flatten();
        recent.map(|(_, wanted)| usize::try_from(*wanted).unwrap_or(0))
    }
}
