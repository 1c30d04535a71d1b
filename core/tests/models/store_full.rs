//! Honest when full: at every capacity, one below and one above, and under random pressure.

use std::collections::BTreeSet;

use picokube_core::limits;
use picokube_core::link::Slot;
use picokube_core::store::{Applied, Cache, Kind, Owner, RefusalReason};
use picokube_core::wire::OwnerKind;

use crate::cluster::{ALL, Cluster, Id, Object, apply, delete, free, owners_of};
use crate::store::check_all;
use crate::support::{Rng, meta, pod, replica_set, room, uid};

/// Reads a complete list of a kind, as the watch machine would have it done.
fn list(cache: &mut Cache<'_>, server: &Cluster, kind: Kind) -> Vec<Owner> {
    cache.begin_relist(kind);
    for (id, object) in server.of(kind) {
        apply(cache, kind, id, object);
    }
    let mut sweep = cache.sweep(kind);
    while let Some(change) = cache.sweep_next(&mut sweep) {
        free(cache, kind, Some(&change));
    }
    std::iter::from_fn(|| cache.heal_next(&mut sweep)).collect()
}

/// Whether the cache holds the object in the server's state.
fn is_current(cache: &Cache<'_>, kind: Kind, (namespace, name): &Id, object: &Object) -> bool {
    let head = cache.find(kind, namespace, name).and_then(|slot| cache.head(kind, slot));
    head.is_some_and(|head| head.version().number() == object.version)
}

/// The promise: whoever would decide on a missing object is blind.
fn check_blindness(cache: &Cache<'_>, server: &Cluster) {
    let pairs = ALL.iter().flat_map(|&kind| owners_of(kind).iter().map(move |&of| (kind, of)));
    for (members, owners) in pairs {
        let missing = server.of(members).iter().filter(|(id, object)| {
            object.is_ours(members) && !is_current(cache, members, id, object)
        });
        for ((namespace, _), object) in missing {
            for (id, owner) in server.of(owners).iter().filter(|((ns, _), _)| ns == namespace) {
                let is_same = |slot: &Slot| {
                    cache.head(owners, *slot).is_some_and(|head| head.uid() == uid(owner.uid))
                };
                let Some(slot) = cache.find(owners, id.0, &id.1).filter(is_same) else { continue };
                let owned = object.owner.as_ref().is_some_and(|(kind, name, number)| {
                    *kind == owners.into() && *name == id.1 && *number == owner.uid
                });
                let adoptable = object.owner.is_none() && owner.selects(object);
                if owned || adoptable {
                    assert!(cache.is_blind(owners, slot), "{id:?} decides without {object:?}");
                }
            }
        }
    }
}

/// What one object of each kind needs.
const GROUPS: usize = if cfg!(feature = "statefulset") { 9 } else { 6 };
const TEXTS: usize = if cfg!(feature = "statefulset") { 28 } else { 14 };

/// Refusals and their reasons in so much room, whatever is asked for.
macro_rules! under_pressure {
    ($seeds:expr, $($capacity:tt)*) => {{
        let (mut refusals, mut reasons) = (0, BTreeSet::new());
        for seed in $seeds {
            let mut memory = Box::new(room!($($capacity)*));
            refusals += pressure(seed, memory.parts().cache, &mut reasons);
        }
        (refusals, reasons)
    }};
}

fn pressure(seed: u64, mut cache: Cache<'_>, reasons: &mut BTreeSet<String>) -> u32 {
    let mut refusals = 0;
    eprintln!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut server = Cluster::default();
    for _ in 0..600 {
        let kind = if rng.chance(3) { Kind::Pod } else { *rng.pick(ALL) };
        let names = match kind {
            Kind::Pod => 12,
            Kind::ReplicaSet => 5,
            Kind::Deployment => 3,
            _ => 6,
        };
        match rng.below(10) {
            0..6 => {
                // Selectors do not change in the life of a ReplicaSet or Deployment.
                let id = server.mutate(&mut rng, kind, names);
                let object = server.of(kind)[&id].clone();
                if let Applied::Refused(refusal) = apply(&mut cache, kind, &id, &object) {
                    refusals += 1;
                    reasons.insert(format!("{:?} {:?}", kind, refusal.reason));
                    assert!(cache.refused(kind) > 0);
                }
            }
            6..9 if !server.of(kind).is_empty() => {
                let at = rng.below(server.of(kind).len());
                let id = server.of(kind).keys().nth(at).unwrap().clone();
                let object = server.of_mut(kind).remove(&id).unwrap();
                delete(&mut cache, kind, &id, &object);
            }
            _ => {
                list(&mut cache, &server, kind);
            }
        }
        check_blindness(&cache, &server);
    }
    drain(&mut rng, &mut cache, &mut server);
    refusals
}

/// Objects go until the rest fits: then lists, each for a reason, heal everything.
fn drain(rng: &mut Rng, cache: &mut Cache<'_>, server: &mut Cluster) {
    for &kind in ALL {
        while server.of(kind).len() > 1 {
            let at = rng.below(server.of(kind).len());
            let id = server.of(kind).keys().nth(at).unwrap().clone();
            let object = server.of_mut(kind).remove(&id).unwrap();
            delete(cache, kind, &id, &object);
        }
    }
    for _ in 0..10 {
        for &kind in ALL {
            if cache.take_relist_wish(kind) {
                list(cache, server, kind);
            }
        }
    }
    let mut known = server.clone();
    ALL.iter().for_each(|&kind| known.of_mut(kind).retain(|_, it| it.is_ours(kind)));
    check_all(cache, &known);
    for &kind in ALL {
        assert_eq!(cache.refused(kind), 0, "{kind:?}");
        assert!(!cache.is_everyone_blind(kind));
    }
    for &kind in ALL {
        assert!(cache.slots(kind).all(|slot| !cache.is_blind(kind, slot)));
    }
    for &kind in ALL {
        for (id, object) in std::mem::take(server.of_mut(kind)) {
            delete(cache, kind, &id, &object);
        }
    }
    assert_eq!((cache.texts.used(), cache.groups.used()), (0, 0), "nothing is leaked");
}

#[test]
fn nobody_decides_on_half_a_view_when_tables_are_full() {
    let (refusals, reasons) = under_pressure!(0..60, 5, 3, 2; 60, 100);
    assert!(refusals > 1_000, "{refusals}");
    assert_eq!(reasons, ALL.iter().map(|kind| format!("{kind:?} TableFull")).collect());
}

#[test]
fn nobody_decides_on_half_a_view_when_texts_are_full() {
    let (refusals, reasons) = under_pressure!(0..60, 40, 20, 10; 60, TEXTS);
    assert!(refusals > 1_000, "{refusals}");
    assert_eq!(reasons, ALL.iter().map(|kind| format!("{kind:?} TextFull")).collect());
}

#[test]
fn nobody_decides_on_half_a_view_when_groups_are_full() {
    let (refusals, reasons) = under_pressure!(0..60, 40, 20, 10; GROUPS, 200);
    assert!(refusals > 1_000, "{refusals}");
    assert_eq!(reasons, ALL.iter().map(|kind| format!("{kind:?} GroupsFull")).collect());
}

#[test]
fn each_table_holds_exactly_its_capacity() {
    for count in 3..=5 {
        let mut memory = room!(4, 4, 4; 30, 60);
        let mut cache = memory.parts().cache;
        for &kind in ALL {
            let applied: Vec<_> = (0..count)
                .map(|number| {
                    let object = Object {
                        uid: number,
                        version: 1,
                        labels: vec![],
                        selector: vec![("a", "b")],
                        owner: None,
                        ready: false,
                        deleting: false,
                        template: 1,
                        generation: 1,
                    };
                    apply(&mut cache, kind, &("ns", format!("n{number}")), &object)
                })
                .collect();
            for (number, applied) in applied.iter().enumerate() {
                match applied {
                    Applied::Changed(_) => assert!(number < 4),
                    Applied::Refused(refusal) => {
                        assert_eq!((number, refusal.reason), (4, RefusalReason::TableFull));
                    }
                    Applied::Foreign | Applied::Older => panic!(),
                }
            }
            assert_eq!(cache.refused(kind), u32::from(count == 5));
        }
    }
}

#[test]
fn only_the_owner_of_a_refused_pod_is_blind_and_a_relist_heals_it() {
    let mut memory = room!(2, 4, 1; 30, 60);
    let mut cache = memory.parts().cache;
    let owner = |name: &str, number| (OwnerKind::ReplicaSet, name.to_owned(), number);
    let mut slots = vec![];
    for (name, number) in [("one", 1), ("two", 2)] {
        let rs = replica_set(meta("ns", name, number, 1, &[], None), &[("app", name)]);
        let Applied::Changed(change) = cache.apply(&rs) else { panic!() };
        slots.push(change.slot);
    }
    let pods: Vec<_> = [("one-a", 11, "one", 1), ("two-a", 12, "two", 2), ("two-b", 13, "two", 2)]
        .map(|(name, number, rs, rs_uid)| {
            pod(meta("ns", name, number, 1, &[], Some(&owner(rs, rs_uid))))
        })
        .into();
    assert!(matches!(cache.apply(&pods[0]), Applied::Changed(_)));
    assert!(matches!(cache.apply(&pods[1]), Applied::Changed(_)));
    let Applied::Refused(refusal) = cache.apply(&pods[2]) else { panic!() };
    assert_eq!(refusal.reason, RefusalReason::TableFull);
    assert_eq!(refusal.owner, Owner::Resolved(Kind::ReplicaSet, slots[1]));
    assert!(!cache.is_blind(Kind::ReplicaSet, slots[0]), "everyone else is served");
    assert!(cache.is_blind(Kind::ReplicaSet, slots[1]));
    assert!(!cache.take_relist_wish(Kind::Pod), "no room, no relist");

    // A refused orphan blinds those who would adopt it, nobody else.
    let orphan = pod(meta("ns", "orphan", 14, 1, &[("app", "one")], None));
    assert!(matches!(cache.apply(&orphan), Applied::Refused(_)));
    assert!(cache.is_blind(Kind::ReplicaSet, slots[0]));

    cache.delete(Kind::Pod, &pods[0].meta).unwrap();
    assert!(cache.take_relist_wish(Kind::Pod), "room appeared");
    assert!(!cache.take_relist_wish(Kind::Pod), "said once");
    cache.begin_relist(Kind::Pod);
    for pod in &pods[1..] {
        assert!(matches!(cache.apply(pod), Applied::Changed(_)));
    }
    assert!(cache.is_blind(Kind::ReplicaSet, slots[1]), "blind until the list is complete");
    let mut sweep = cache.sweep(Kind::Pod);
    assert_eq!(cache.sweep_next(&mut sweep), None);
    let healed: Vec<_> = std::iter::from_fn(|| cache.heal_next(&mut sweep)).collect();
    assert!(healed.contains(&Owner::Resolved(Kind::ReplicaSet, slots[0])));
    assert!(healed.contains(&Owner::Resolved(Kind::ReplicaSet, slots[1])));
    assert!(
        !cache.is_blind(Kind::ReplicaSet, slots[0]) && !cache.is_blind(Kind::ReplicaSet, slots[1])
    );
}

#[test]
fn a_relist_that_breaks_off_heals_nothing_and_deletes_nothing() {
    let mut memory = room!(2, 4, 1; 30, 60);
    let mut cache = memory.parts().cache;
    let rs = replica_set(meta("ns", "rs", 1, 1, &[], None), &[]);
    let Applied::Changed(change) = cache.apply(&rs) else { panic!() };
    let owner = (OwnerKind::ReplicaSet, "rs".to_owned(), 1);
    for number in 0..3 {
        let name = format!("rs-{number}");
        cache.apply(&pod(meta("ns", &name, 10 + number, 1, &[], Some(&owner))));
    }
    assert!(cache.is_blind(Kind::ReplicaSet, change.slot));
    cache.begin_relist(Kind::Pod);
    cache.begin_relist(Kind::Pod);
    assert!(cache.is_blind(Kind::ReplicaSet, change.slot));
    assert_eq!(cache.pods.iter().count(), 2);
}

#[test]
fn too_many_labels_are_refused_as_a_full_table_is() {
    for count in [limits::LABELS, limits::LABELS + 1] {
        let mut memory = Box::new(room!(4, 4, 4; 30, 200));
        let mut cache = memory.parts().cache;
        let rs = replica_set(meta("ns", "rs", 1, 1, &[], None), &[("no", "match")]);
        let Applied::Changed(change) = cache.apply(&rs) else { panic!() };
        let mut orphan = pod(meta("ns", "orphan", 2, 1, &[], None));
        for label in 0..count {
            orphan.meta.labels.insert_text(&format!("k{label}"), "v");
        }
        let applied = cache.apply(&orphan);
        if count == limits::LABELS {
            assert!(matches!(applied, Applied::Changed(_)));
            assert!(!cache.is_blind(Kind::ReplicaSet, change.slot));
        } else {
            let Applied::Refused(refusal) = applied else { panic!() };
            assert_eq!(refusal.reason, RefusalReason::TooManyLabels);
            assert!(cache.is_blind(Kind::ReplicaSet, change.slot), "it may match");
        }
    }
}

#[test]
fn groups_are_held_exactly_to_their_capacity() {
    // Each pod has an owner of its own.
    for count in 3..=5_u64 {
        let mut memory = room!(8, 1, 1; 4, 60);
        let mut cache = memory.parts().cache;
        for number in 0..count {
            let owner = (OwnerKind::ReplicaSet, format!("rs{number}"), 100 + number);
            let name = format!("rs{number}-x");
            let applied = cache.apply(&pod(meta("ns", &name, number, 1, &[], Some(&owner))));
            match applied {
                Applied::Changed(_) => assert!(number < 4),
                Applied::Refused(refusal) => {
                    assert_eq!((number, refusal.reason), (4, RefusalReason::GroupsFull));
                }
                Applied::Foreign | Applied::Older => panic!(),
            }
        }
        // No group is left to remember who is blind: everyone is.
        assert_eq!(cache.is_everyone_blind(Kind::Pod), count == 5);
    }
}

#[test]
fn when_everyone_was_blind_everyone_is_looked_at_again() {
    let mut memory = room!(8, 2, 1; 4, 60);
    let mut cache = memory.parts().cache;
    let rs = replica_set(meta("ns", "web", 1, 1, &[], None), &[("app", "web")]);
    let Applied::Changed(web) = cache.apply(&rs) else { panic!() };
    let pods: Vec<_> = (0..4_u64)
        .map(|number| {
            let owner = (OwnerKind::ReplicaSet, format!("rs{number}"), 100 + number);
            pod(meta("elsewhere", &format!("rs{number}-x"), number + 10, 1, &[], Some(&owner)))
        })
        .collect();
    for pod in &pods {
        cache.apply(pod);
    }
    assert!(cache.is_everyone_blind(Kind::Pod) && cache.is_blind(Kind::ReplicaSet, web.slot));
    for pod in &pods {
        cache.delete(Kind::Pod, &pod.meta);
    }
    assert!(cache.take_relist_wish(Kind::Pod));
    cache.begin_relist(Kind::Pod);
    let mut sweep = cache.sweep(Kind::Pod);
    assert_eq!(cache.sweep_next(&mut sweep), None);
    let healed: Vec<_> = std::iter::from_fn(|| cache.heal_next(&mut sweep)).collect();
    assert!(healed.contains(&Owner::Resolved(Kind::ReplicaSet, web.slot)), "{healed:?}");
    assert!(!cache.is_blind(Kind::ReplicaSet, web.slot));
}

#[test]
fn objects_at_kubernetes_full_limits_are_cached_and_found() {
    let mut memory = Box::new(room!(2, 2, 2; 20, 400));
    let mut cache = memory.parts().cache;
    let namespace = "n".repeat(limits::NAMESPACE);
    let rs_name = "r".repeat(limits::NAME);
    // As a server names it: the prefix cut to 248, then five characters.
    let pod_name = format!("{}abcde", &rs_name[..limits::NAME - 5]);
    let key = |number: usize| format!("{number:0>253}/{}", "k".repeat(limits::LABEL_VALUE));
    let value = "v".repeat(limits::LABEL_VALUE);
    let labels: Vec<(String, String)> =
        (0..limits::LABELS).map(|number| (key(number), value.clone())).collect();
    assert_eq!(labels[0].0.len(), limits::LABEL_KEY);
    let labels: Vec<(&str, &str)> = labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let rs = replica_set(meta(&namespace, &rs_name, 1, 1, &labels, None), &labels);
    let Applied::Changed(rs) = cache.apply(&rs) else { panic!() };
    let owner = (OwnerKind::ReplicaSet, rs_name.clone(), 1);
    let owned = pod(meta(&namespace, &pod_name, 2, 1, &labels, Some(&owner)));
    let Applied::Changed(change) = cache.apply(&owned) else { panic!() };
    assert_eq!(change.new_owner, Owner::Resolved(Kind::ReplicaSet, rs.slot));
    assert_eq!(cache.pods.find(cache.texts, &namespace, &pod_name), Some(change.slot));
    let entry = cache.pods.get(change.slot).unwrap();
    assert_eq!(entry.display_name(cache.texts).to_string(), pod_name);
    let selecting = cache.selecting(Kind::ReplicaSet, entry.namespace(), entry.record.labels);
    assert_eq!(selecting.collect::<Vec<_>>(), [rs.slot]);
    let orphan = pod(meta(&namespace, "orphan", 3, 1, &labels[1..], None));
    let Applied::Changed(change) = cache.apply(&orphan) else { panic!() };
    let entry = cache.pods.get(change.slot).unwrap();
    let selecting = cache.selecting(Kind::ReplicaSet, entry.namespace(), entry.record.labels);
    assert_eq!(selecting.count(), 0, "one label is missing");
}
