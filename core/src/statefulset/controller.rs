//! The StatefulSet controller: its memory, and which changes concern it.

use crate::control::{self, ControllerInfo, Keys, KeysMemory, Runner, WorkerMemory, WorkerSlots};
use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::store::{Cache, Change, ChangeType, Owner, StatefulSet};
use crate::text::Text;
use crate::time::Instant;

use super::identity::Parts as NameParts;
use super::worker::Worker;

/// What is fixed about the StatefulSet controller.
pub static INFO: ControllerInfo = ControllerInfo {
    name: "statefulset-controller",
    alias: "statefulset",
    component: "statefulset-controller",
    queue: "statefulset",
    key: Kind::StatefulSet,
    watches: &[Kind::Pod, Kind::StatefulSet, Kind::ControllerRevision, Kind::PersistentVolumeClaim],
};

/// Memory for `N` StatefulSets.
pub type Memory<const N: usize> = KeysMemory<N>;

/// Views of the parts of [`Memory`].
pub type Parts<'a> = Keys<'a>;

/// Memory for `N` syncs at a time.
pub(crate) type Workers<const N: usize> = WorkerMemory<Worker, N>;

/// Views of the parts of [`Workers`].
pub(crate) type WorkerParts<'a> = WorkerSlots<'a, Worker>;

/// The controller.
pub(crate) type StatefulSetController<'a> = Runner<'a, Worker>;

/// Begins with nothing done.
pub(crate) fn start<'a>(keys: Parts<'a>, workers: WorkerParts<'a>) -> StatefulSetController<'a> {
    Runner::new(keys, workers, ())
}

/// What one sync works with, for as long as one call takes.
pub(super) type Sync<'s, 'w, 'a> = control::Sync<'s, 'w, 'a, ()>;

/// A pod has changed: who has to look?
pub(super) fn pod_changed(keys: &mut Keys<'_>, cache: &Cache<'_>, change: &Change, now: Instant) {
    let Change { slot, event, old_owner, new_owner, .. } = *change;
    match event {
        // The echo of an own write whose answer was heard before.
        ChangeType::Updated if change.same_version => {}
        // It may have had the name of one that is wanted.
        ChangeType::Deleted => match old_owner {
            Owner::Resolved(..) => keys.add_owner(old_owner),
            Owner::None | Owner::Unresolved => add_all(keys, cache, change.gone_from, |_| true),
        },
        ChangeType::Added if change.deleting => keys.add_owner(new_owner),
        ChangeType::Added | ChangeType::Updated => {
            if change.owner_changed {
                keys.add_owner(old_owner);
            }
            keys.add_owner(new_owner);
            let is_news =
                event == ChangeType::Added || change.labels_changed || change.owner_changed;
            if new_owner == Owner::None && is_news {
                keys.add_selecting(cache, Kind::Pod, slot);
            }
            if let Some(owner) = new_owner.of(Kind::StatefulSet)
                && change.became_ready
                && !planted(Bug::SetAvailabilityForgotten)
                && let Some(set) = cache.stateful_sets.get(owner)
            {
                keys.add_when_available(owner, set.record.min_ready_seconds, now);
            }
        }
    }
}

/// All sets of this sort in a namespace have to look: what has gone cannot be told from others any more.
pub(super) fn add_all(
    keys: &mut Keys<'_>,
    cache: &Cache<'_>,
    namespace: Text,
    is_concerned: fn(&StatefulSet) -> bool,
) {
    let sets = cache.stateful_sets.iter();
    let sets = sets.filter(|(_, set)| set.namespace() == namespace && is_concerned(set.record));
    sets.for_each(|(slot, _)| keys.queue.add(slot));
}

/// The set whose claim this is, by its name, has to look at it.
pub(super) fn add_user(keys: &mut Keys<'_>, cache: &Cache<'_>, claim: Slot) {
    let Some(head) = cache.head(Kind::PersistentVolumeClaim, claim) else { return };
    let name = head.name().to_object_name(cache.texts);
    let Some(stem) = NameParts::of(&name).map(|parts| parts.set) else { return };
    let sets = cache.stateful_sets.iter().filter(|(_, set)| {
        let name = set.name().to_object_name(cache.texts);
        let template = stem.strip_suffix(name.as_str()).and_then(|it| it.strip_suffix('-'));
        set.namespace() == head.namespace() && template.is_some_and(|it| !it.is_empty())
    });
    sets.for_each(|(slot, _)| keys.queue.add(slot));
}
