//! Taking the facts about a StatefulSet, its revisions and its pods from the cache.

use core::fmt::Write;

use crate::control::is_available;
use crate::json::template_hash;
use crate::kind::Kind;
use crate::limits::ObjectName;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::sort::heap_sort;
use crate::store::{Cache, Entry, Pod, Record, StatefulSet};
use crate::text::Fingerprint;
use crate::time::Timestamp;
use crate::wire::PodPhase;

use super::identity::{Parts, RevisionName};
use super::revisions::Revision;
use super::view::{Facts, PodFacts, PodState};

/// The label that names the revision of a pod.
pub(super) const REVISION_LABEL: &str = "controller-revision-hash";
/// The label that tells the name of a pod.
pub(super) const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// The label that tells the ordinal of a pod.
pub(super) const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// Whether a pod has the name of a member of a StatefulSet.
pub(super) fn is_member(cache: &Cache<'_>, key: Slot, pod: Slot) -> bool {
    let (Some(set), Some(pod)) = (cache.stateful_sets.get(key), cache.pods.get(pod)) else {
        return false;
    };
    if planted(Bug::AnyNameAdopted) {
        return true;
    }
    let name = pod.name().to_object_name(cache.texts);
    Parts::of(&name).is_some_and(|parts| set.name().is(cache.texts, parts.set))
}

/// The revisions of a StatefulSet; `current` and `update` are those that it works with.
pub(super) fn revisions<'c>(
    cache: &'c Cache<'_>,
    key: Slot,
    current: Option<Slot>,
    update: Option<Slot>,
) -> impl Iterator<Item = Revision> + Clone + 'c {
    let all = cache.members_of(Kind::ControllerRevision, Kind::StatefulSet, key);
    all.filter_map(move |slot| revision(cache, key, slot, [current, update]))
}

/// Not inlined: several loops go through revisions, and the firmware would have a copy of this in each.
#[inline(never)]
fn revision(
    cache: &Cache<'_>,
    key: Slot,
    slot: Slot,
    in_use: [Option<Slot>; 2],
) -> Option<Revision> {
    let set = cache.stateful_sets.get(key);
    let entry = cache.controller_revisions.get(slot)?;
    let name = entry.name().as_text();
    let named = set.map(|set| set.record.current_revision).filter(|named| !named.is_empty());
    // Another controller may have told of it since this sync began.
    let is_told = set.is_some_and(|set| {
        name.is_some_and(|name| {
            [set.record.current_revision, set.record.update_revision].contains(&name)
        })
    });
    Some(Revision {
        slot,
        revision: entry.record.revision(),
        created: entry.record.created,
        is_equal: set.is_some_and(|set| set.record.template() == entry.record.data()),
        is_named: named.is_some() && named == name,
        is_live: in_use.contains(&Some(slot))
            || is_told
            || (has_pods(cache, key, &entry.name().to_object_name(cache.texts))
                && !planted(Bug::LiveRevisionDeleted)),
    })
}

fn has_pods(cache: &Cache<'_>, key: Slot, revision: &str) -> bool {
    let (label, value) = (Fingerprint::of(REVISION_LABEL), Fingerprint::of(revision));
    let mut pods = cache.pods_of(Kind::StatefulSet, key);
    pods.any(|(_, pod)| pod.record.labels.value(cache.texts, label) == Some(value))
}

/// The name of the revision for a StatefulSet's template.
pub(super) fn new_revision_name(
    cache: &Cache<'_>,
    set: Entry<'_, StatefulSet>,
    collisions: i32,
) -> ObjectName {
    let hash = template_hash(set.record.template(), Some(collisions));
    let mut name = ObjectName::new();
    // It is cut to what fits.
    let set = set.name().to_object_name(cache.texts);
    let _ = write!(name, "{}", RevisionName { set: &set, hash: &hash });
    name
}

/// The facts about a StatefulSet. Of its revisions, those of this sync.
pub(super) fn facts(
    cache: &Cache<'_>,
    set: Entry<'_, StatefulSet>,
    current: Slot,
    update: Slot,
    honours_max_unavailable: bool,
) -> Facts {
    let record = set.record;
    let name = |slot| cache.controller_revisions.get(slot).and_then(|it| it.name().as_text());
    let (current_name, update_name) = (name(current), name(update));
    Facts {
        generation: record.generation(),
        deleting: record.is_deleting(),
        replicas: record.replicas,
        start: record.start,
        policy: record.policy(),
        strategy: record.strategy(),
        honours_max_unavailable,
        replaces_broken_pods: record.replaces_broken_pods(),
        same_revision: current == update,
        status: record.counts(),
        revisions_differ: current_name != Some(record.current_revision)
            || update_name != Some(record.update_revision),
    }
}

/// Fills in the pods of a StatefulSet by ordinal; returns how many there are.
pub(super) fn fill_pods(
    cache: &Cache<'_>,
    key: Slot,
    revisions: (Slot, Slot),
    now: Timestamp,
    places: &mut [PodFacts],
) -> usize {
    let Some(set) = cache.stateful_sets.get(key) else { return 0 };
    let name = |slot| {
        let revision = cache.controller_revisions.get(slot);
        revision.map(|it| Fingerprint::of(&it.name().to_object_name(cache.texts)))
    };
    let (current, update) = (name(revisions.0), name(revisions.1));
    let labels = Labels {
        revision: Fingerprint::of(REVISION_LABEL),
        pod_name: Fingerprint::of(POD_NAME_LABEL),
    };
    let mut len = 0;
    for (slot, pod) in cache.pods_of(Kind::StatefulSet, key) {
        if !set.record.selector.matches(cache.texts, pod.record.labels) {
            continue;
        }
        let pod_name = pod.name().to_object_name(cache.texts);
        let Some(parts) = Parts::of(&pod_name).filter(|it| set.name().is(cache.texts, it.set))
        else {
            continue;
        };
        let Some(ordinal) = parts.ordinal() else { continue };
        let value = |label| pod.record.labels.value(cache.texts, label);
        let revision = value(labels.revision);
        let has_name =
            parts.is_exact() && value(labels.pod_name) == Some(Fingerprint::of(&pod_name));
        let state = state_of(pod.record, set.record.min_ready_seconds, now)
            | PodState::CURRENT.when(revision.is_some() && revision == current)
            | PodState::UPDATED.when(revision.is_some() && revision == update)
            | PodState::IDENTITY.when(has_name)
            // Nobody can change the volumes of a pod: the server refuses it.
            | PodState::STORAGE;
        let facts = PodFacts::new(ordinal, slot, state);
        let (taken, _) = places.split_at_mut_checked(len).unwrap_or_default();
        match taken.iter_mut().find(|it| it.ordinal() == ordinal) {
            // `web-1` and `web-01`: only one of them can be right.
            Some(twin) if parts.is_exact() => *twin = facts,
            Some(_) => {}
            None => {
                if let Some(place) = places.get_mut(len) {
                    *place = facts;
                    len += 1;
                }
            }
        }
    }
    let (pods, _) = places.split_at_mut_checked(len).unwrap_or_default();
    heap_sort(pods, |a, b| a.ordinal().cmp(&b.ordinal()));
    len
}

struct Labels {
    revision: Fingerprint,
    pod_name: Fingerprint,
}

fn state_of(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> PodState {
    let phase = pod.phase();
    PodState::CREATED.when(phase != PodPhase::Empty)
        | PodState::ENDED.when(phase.is_terminal())
        | PodState::PENDING.when(phase == PodPhase::Pending)
        | PodState::READY.when(phase == PodPhase::Running && pod.is_ready())
        | PodState::AVAILABLE.when(is_available(pod, min_ready_seconds, now))
        | PodState::TERMINATING.when(Record::is_deleting(pod))
}
