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

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use super::*;
    use crate::json::Digest;
    use crate::kind::OwnerKind;
    use crate::resources::Few;
    use crate::wire;
    use crate::wire::{ConditionStatus, ControllerRef, Meta, ResourceVersion, Uid};
    use crate::zero::ZeroOption;

    const NOW: Timestamp = Timestamp::from_secs(1_000);

    /// Of the StatefulSet `web`, whose number is 1, or of what belongs to it.
    fn meta(name: &str, number: u8) -> Meta {
        let (kind, uid) = (OwnerKind::StatefulSet, Uid::from_bytes([1; 16]));
        let owner = ControllerRef { kind, name: "web".try_into().unwrap(), uid };
        Meta {
            namespace: "default".try_into().unwrap(),
            name: name.try_into().unwrap(),
            uid: Uid::from_bytes([number; 16]),
            resource_version: ResourceVersion::new(1),
            controller: Some(owner).filter(|_| number > 1),
            ..Meta::default()
        }
    }

    /// A set that goes from `web-a` to `web-b`.
    fn web() -> wire::StatefulSet {
        let mut set = wire::StatefulSet { meta: meta("web", 1), ..wire::StatefulSet::default() };
        set.selector.match_label(Fingerprint::of("app"), Fingerprint::of("web"));
        set.template = Digest::from_bits(2);
        set.min_ready_seconds = 10;
        set.status.current_revision = "web-a".try_into().unwrap();
        set.status.update_revision = "web-b".try_into().unwrap();
        set
    }

    /// A pod that runs, of a revision or of none.
    fn pod(name: &str, number: u8, revision: &str) -> wire::Pod {
        let mut pod = wire::Pod { meta: meta(name, number), ..wire::Pod::default() };
        pod.phase = PodPhase::Running;
        pod.meta.labels.insert_text("app", "web");
        pod.meta.labels.insert_text(POD_NAME_LABEL, name);
        if !revision.is_empty() {
            pod.meta.labels.insert_text(REVISION_LABEL, revision);
        }
        pod
    }

    fn ready_since(seconds: i64, pod: wire::Pod) -> wire::Pod {
        let ready_transition = Some(Timestamp::from_secs(seconds));
        wire::Pod { ready: ZeroOption::Some(ConditionStatus::True), ready_transition, ..pod }
    }

    /// Shows the cache of a set with these pods, and the slots of its four revisions.
    fn with_cache(
        set: &wire::StatefulSet,
        pods: &[wire::Pod],
        test: impl FnOnce(&Cache<'_>, Slot, [Slot; 4]),
    ) {
        let mut memory = Box::new(Few::new());
        let mut cache = memory.parts().cache;
        cache.apply(set);
        let revisions = [("web-a", 10, 1), ("web-b", 11, 2), ("web-c", 12, 3), ("web-d", 13, 2)];
        for (name, number, data) in revisions {
            let (meta, data) = (meta(name, number), Digest::from_bits(data));
            cache.apply(&wire::ControllerRevision { meta, data, ..Default::default() });
        }
        for pod in pods {
            cache.apply(pod);
        }
        let slot = |(name, ..): (&str, u8, u128)| {
            cache.find(Kind::ControllerRevision, "default", name).unwrap()
        };
        let key = cache.find(Kind::StatefulSet, "default", "web").unwrap();
        test(&cache, key, revisions.map(slot));
    }

    #[test]
    fn members_have_the_name_of_their_set_and_a_number() {
        let rows = [
            ("web-0", true),
            ("web-01", true),
            ("web-x", false),
            ("api-0", false),
            ("web-a-1", false),
        ];
        let pods: Vec<_> = rows.iter().zip(20..).map(|((name, _), at)| pod(name, at, "")).collect();
        with_cache(&web(), &pods, |cache, key, _| {
            for (name, expected) in rows {
                let pod = cache.find(Kind::Pod, "default", name).unwrap();
                assert_eq!(is_member(cache, key, pod), expected, "{name}");
            }
        });
    }

    /// What is said of each revision: `e`qual to the template, `n`amed as the current one, `l`ive.
    fn told_of_revisions(
        set: &wire::StatefulSet,
        in_use: impl Fn([Slot; 4]) -> [Option<Slot>; 2],
    ) -> String {
        let pods = [pod("web-0", 20, "web-c"), pod("web-1", 21, "")];
        let mut told = String::new();
        with_cache(set, &pods, |cache, key, slots| {
            let [current, update] = in_use(slots);
            let all: Vec<_> = revisions(cache, key, current, update).collect();
            assert_eq!(all.len(), slots.len());
            for slot in slots {
                let it = all.iter().find(|it| it.slot == slot).unwrap();
                let letters = [(it.is_equal, 'e'), (it.is_named, 'n'), (it.is_live, 'l')];
                told.extend(letters.iter().filter(|(is, _)| *is).map(|(_, letter)| letter));
                told.push(' ');
            }
        });
        told
    }

    #[test]
    fn a_revision_is_live_that_is_told_or_in_use_or_that_a_pod_is_of() {
        let none = |_: [Slot; 4]| [None, None];
        assert_eq!(told_of_revisions(&web(), none), "nl el l e ");
        assert_eq!(told_of_revisions(&web(), |slots| [Some(slots[3]), None]), "nl el l el ");
        assert_eq!(told_of_revisions(&web(), |slots| [None, Some(slots[3])]), "nl el l el ");
        // Nothing has been told yet.
        let mut set = web();
        set.status.current_revision.clear();
        set.status.update_revision.clear();
        assert_eq!(told_of_revisions(&set, none), " e l e ");
    }

    #[test]
    fn a_new_revision_is_called_after_its_set_and_what_it_is_of() {
        let mut names = Vec::new();
        for (template, collisions) in [(2, 0), (2, 1), (3, 0)] {
            let mut set = web();
            set.template = Digest::from_bits(template);
            with_cache(&set, &[], |cache, key, _| {
                let set = cache.stateful_sets.get(key).unwrap();
                names.push(new_revision_name(cache, set, collisions));
            });
        }
        assert!(names.iter().all(|name| name.len() > 4 && name.starts_with("web-")), "{names:?}");
        assert!(names[0] != names[1] && names[0] != names[2], "{names:?}");
    }

    #[test]
    fn revisions_differ_when_either_is_not_the_one_that_was_told() {
        with_cache(&web(), &[], |cache, key, slots| {
            let set = cache.stateful_sets.get(key).unwrap();
            for (current, update, same, differ) in [
                (0, 1, false, false),
                (1, 1, true, true),
                (0, 0, true, true),
                (2, 1, false, true),
                (0, 3, false, true),
                (2, 3, false, true),
            ] {
                let facts = facts(cache, set, slots[current], slots[update], false);
                assert_eq!((facts.same_revision, facts.revisions_differ), (same, differ));
            }
        });
    }

    fn described(name: &str, pod: &PodFacts) -> String {
        let words = [
            (pod.is_created(), "created"),
            (pod.has_ended(), "ended"),
            (pod.is_pending(), "pending"),
            (pod.is_ready(), "ready"),
            (pod.is_ready_and_available(), "available"),
            (pod.is_terminating(), "terminating"),
            (pod.is_current(), "current"),
            (pod.is_updated(), "updated"),
            (pod.has_identity_and_storage(), "right"),
        ];
        let words = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word);
        core::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// The pods of a set in their order, where there is room for so many.
    fn filled(pods: &[wire::Pod], room: usize) -> Vec<String> {
        let mut filled = Vec::new();
        with_cache(&web(), pods, |cache, key, [current, update, ..]| {
            let mut places = [PodFacts::new(-1, Slot::FIRST, PodState::NONE); 8];
            let len = fill_pods(cache, key, (current, update), NOW, &mut places[..room]);
            for facts in &places[..len] {
                let name = cache.head(Kind::Pod, facts.slot()).unwrap().name();
                let name = name.to_object_name(cache.texts);
                assert_eq!(Parts::of(&name).unwrap().ordinal(), Some(facts.ordinal()));
                filled.push(described(&name, facts));
            }
        });
        filled
    }

    #[test]
    fn a_pod_is_what_its_labels_its_phase_and_its_times_tell() {
        let of_phase = |number: u8, phase| {
            let name = format!("web-{number}");
            wire::Pod { phase, ..pod(&name, 20 + number, "web-b") }
        };
        let mut leaving = ready_since(990, pod("web-7", 27, "web-c"));
        leaving.meta.deletion = Some(NOW);
        let mut unnamed = pod("web-6", 26, "");
        unnamed.meta.labels.insert_text(POD_NAME_LABEL, "web-5");
        let pods = [
            leaving,
            unnamed,
            ready_since(991, pod("web-5", 25, "web-a")),
            ready_since(990, pod("web-4", 24, "web-b")),
            of_phase(3, PodPhase::Running),
            ready_since(1, of_phase(2, PodPhase::Pending)),
            of_phase(1, PodPhase::Failed),
            of_phase(0, PodPhase::Empty),
        ];
        let expected = [
            "web-0 updated right",
            "web-1 created ended updated right",
            "web-2 created pending updated right",
            "web-3 created updated right",
            "web-4 created ready available updated right",
            "web-5 created ready current right",
            "web-6 created",
            "web-7 created ready available terminating right",
        ];
        assert_eq!(filled(&pods, 8), expected);
        assert_eq!(filled(&pods, 5).len(), 5);
        assert_eq!(filled(&[], 8), [""; 0]);
    }

    #[test]
    fn only_pods_that_are_selected_and_have_a_place_are_looked_at() {
        let mut other = pod("web-0", 20, "web-a");
        other.meta.labels.insert_text("app", "other");
        let (beyond, stranger) = (pod("web-99999999999", 21, "web-a"), pod("api-1", 22, "web-a"));
        let pods = [other, beyond, stranger, pod("web-3", 23, "web-a")];
        assert_eq!(filled(&pods, 8), ["web-3 created current right"]);
    }

    /// In whatever order they come.
    #[test]
    fn of_two_pods_of_one_ordinal_the_one_with_the_right_name_counts() {
        let (right, wrong) = (pod("web-1", 21, "web-b"), pod("web-01", 22, "web-a"));
        let first = pod("web-0", 20, "web-a");
        let expected = ["web-0 created current right", "web-1 created updated right"];
        assert_eq!(filled(&[wrong.clone(), first.clone(), right.clone()], 8), expected);
        assert_eq!(filled(&[right, first, wrong.clone()], 8), expected);
        // Its label tells its name, which no pod is to have.
        assert_eq!(filled(&[wrong], 8), ["web-01 created current"]);
    }

    #[test]
    fn a_pod_without_a_revision_is_not_of_one_that_has_gone() {
        with_cache(&web(), &[pod("web-0", 20, "")], |cache, key, _| {
            let gone = Slot::from_index(5).unwrap();
            assert!(cache.controller_revisions.get(gone).is_none());
            let mut places = [PodFacts::new(-1, Slot::FIRST, PodState::NONE); 1];
            assert_eq!(fill_pods(cache, key, (gone, gone), NOW, &mut places), 1);
            assert_eq!(described("web-0", &places[0]), "web-0 created right");
        });
    }
}
