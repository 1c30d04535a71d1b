//! The cache against plain maps, with room for everything.

use std::collections::BTreeSet;

use picokube_core::link::Slot;
use picokube_core::store::{Applied, Cache, Change, ChangeType, Kind, Owner};
use picokube_core::wire::ResourceVersion;

use crate::cluster::{
    ALL, Cluster, Id, Object, apply, delete, free, is_listed_by_namespace, owners_of,
};
use crate::support::{Rng, meta, pod, room, uid};

/// Of the kinds that only some builds have.
const STATEFUL: usize = if cfg!(feature = "statefulset") { 24 } else { 0 };

type Memory = picokube_core::resources! {
    pods: 64, replica_sets: 24, deployments: 12, stateful_sets: STATEFUL, controller_revisions: STATEFUL,
    persistent_volume_claims: STATEFUL, groups: 240, texts: 600,
};

/// So many names of objects that come and go.
fn names(kind: Kind) -> usize {
    match kind {
        Kind::Pod => 30,
        Kind::ReplicaSet => 8,
        Kind::Deployment => 4,
        _ => 6,
    }
}

fn uid_in(cache: &Cache<'_>, kind: Kind, slot: Slot) -> Option<picokube_core::wire::Uid> {
    cache.head(kind, slot).map(|head| head.uid())
}

fn find(cache: &Cache<'_>, kind: Kind, (namespace, name): &Id) -> Option<Slot> {
    cache.find(kind, namespace, name)
}

fn find_uid(cache: &Cache<'_>, kind: Kind, number: u64) -> Option<Slot> {
    cache.slots(kind).find(|slot| uid_in(cache, kind, *slot) == Some(uid(number)))
}

/// What the model says about the owner of an object that is cached in `known`.
fn check_owner(
    cache: &Cache<'_>,
    known: &Cluster,
    kind: Kind,
    id: &Id,
    object: &Object,
    owner: Owner,
) {
    let resolved = object.owner.as_ref().and_then(|owner| known.resolve(kind, id.0, owner));
    match (resolved, &object.owner) {
        (Some((kind, resolved)), _) => {
            let slot = find_uid(cache, kind, resolved.uid);
            assert_eq!(owner, slot.map_or(Owner::Unresolved, |slot| Owner::Resolved(kind, slot)));
        }
        (None, Some(_)) => assert_eq!(owner, Owner::Unresolved, "{object:?}"),
        (None, None) => assert_eq!(owner, Owner::None, "{object:?}"),
    }
}

/// `known` is what the cache knew before, `new` the state that was applied.
fn check_change(
    cache: &Cache<'_>,
    known: &Cluster,
    kind: Kind,
    id: &Id,
    new: &Object,
    change: &Change,
) {
    let old = known.of(kind).get(id);
    let ours = new.is_ours(kind);
    let expected = match (old, ours) {
        (_, false) => ChangeType::Deleted,
        (None, true) => ChangeType::Added,
        (Some(_), true) => ChangeType::Updated,
    };
    assert_eq!(change.event, expected);
    if kind == Kind::Deployment {
        assert_eq!((change.old_owner, change.new_owner), (Owner::None, Owner::None));
    } else {
        match old {
            Some(old) => check_owner(cache, known, kind, id, old, change.old_owner),
            None => assert_eq!(change.old_owner, Owner::None),
        }
    }
    if !ours {
        return;
    }
    assert_eq!(uid_in(cache, kind, change.slot), Some(uid(new.uid)));
    assert_eq!(change.deleting, new.deleting);
    if kind != Kind::Deployment {
        check_owner(cache, known, kind, id, new, change.new_owner);
    }
    let Some(old) = old else { return };
    assert_eq!(change.same_version, old.version == new.version);
    assert_eq!(change.uid_changed, old.uid != new.uid);
    assert_eq!(change.old_uid, uid(old.uid));
    if kind != Kind::Deployment {
        let sorted = |object: &Object| object.labels.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(change.labels_changed, sorted(old) != sorted(new));
        assert_eq!(change.owner_changed, old.owner != new.owner);
    }
    assert_eq!(change.became_ready, kind == Kind::Pod && !old.ready && new.ready);
}

fn remember(known: &mut Cluster, kind: Kind, id: &Id, object: &Object) {
    if object.is_ours(kind) {
        known.of_mut(kind).insert(id.clone(), object.clone());
    } else {
        known.of_mut(kind).remove(id);
    }
}

fn apply_checked(cache: &mut Cache<'_>, known: &mut Cluster, kind: Kind, id: &Id, object: &Object) {
    match apply(cache, kind, id, object) {
        Applied::Changed(change) => check_change(cache, known, kind, id, object, &change),
        Applied::Foreign => {
            assert!(!object.is_ours(kind) && !known.of(kind).contains_key(id));
        }
        Applied::Refused(refusal) => panic!("{refusal:?}"),
        Applied::Older => panic!("versions only grow here"),
    }
    remember(known, kind, id, object);
}

/// The cache holds exactly `known`, by every way of looking.
pub(crate) fn check_all(cache: &Cache<'_>, known: &Cluster) {
    for &kind in ALL {
        for (id, object) in known.of(kind) {
            let slot = find(cache, kind, id).unwrap_or_else(|| panic!("{kind:?} {id:?} is lost"));
            assert_eq!(find_uid(cache, kind, object.uid), Some(slot));
            assert_eq!(uid_in(cache, kind, slot), Some(uid(object.uid)));
        }
        assert_eq!(cache.slots(kind).count(), known.of(kind).len());
        for slot in cache.slots(kind) {
            let head = cache.head(kind, slot).unwrap();
            let name = head.display_name(cache.texts).to_string();
            let is_same = |((_, known), object): &(&Id, &Object)| {
                *known == name && uid(object.uid) == head.uid()
            };
            let found = known.of(kind).iter().find(is_same);
            let (id, object) = found.unwrap_or_else(|| panic!("{kind:?} {name} is not known"));
            assert_eq!(head.version().number(), object.version);
            check_owner(cache, known, kind, id, object, cache.owner_of(kind, slot));
        }
    }
    check_lists(cache, known);
}

fn check_lists(cache: &Cache<'_>, known: &Cluster) {
    let of_slots = |kind: Kind, slots: &mut dyn Iterator<Item = Slot>| {
        let uids: Vec<_> = slots.filter_map(|slot| uid_in(cache, kind, slot)).collect();
        let count = uids.len();
        let set: BTreeSet<_> = uids.into_iter().collect();
        assert_eq!(set.len(), count, "listed twice");
        set
    };
    for &members in ALL {
        for &owner in owners_of(members) {
            for (id @ (namespace, name), object) in known.of(owner) {
                let slot = find(cache, owner, id).unwrap();
                let owned = of_slots(members, &mut cache.members_of(members, owner, slot));
                let reference = Some((owner.into(), name.clone(), object.uid));
                let expected = known.of(members).iter();
                let expected =
                    expected.filter(|((ns, _), it)| ns == namespace && it.owner == reference);
                assert_eq!(owned, expected.map(|(_, it)| uid(it.uid)).collect());
            }
        }
        for (id @ (namespace, _), object) in known.of(members) {
            let slot = find(cache, members, id).unwrap();
            let siblings = of_slots(members, &mut cache.siblings_of(members, slot));
            let expected = known.of(members).iter().filter(|((ns, _), other)| {
                ns == namespace && object.owner.is_some() && other.owner == object.owner
            });
            assert_eq!(siblings, expected.map(|(_, it)| uid(it.uid)).collect());
        }
    }
    for namespace in ["default", "kube-system"] {
        let Some(text) = cache.texts.find(namespace.as_bytes()) else { continue };
        let here = |kind: Kind, keep: &dyn Fn(&Object) -> bool| -> BTreeSet<_> {
            let all = known.of(kind).iter().filter(|((ns, _), _)| *ns == namespace);
            all.filter(|(_, object)| keep(object)).map(|(_, object)| uid(object.uid)).collect()
        };
        for &kind in ALL {
            let orphans = of_slots(kind, &mut cache.orphans_in(kind, text));
            assert_eq!(orphans, here(kind, &|object| object.owner.is_none()));
            let all = of_slots(kind, &mut cache.all_in(kind, text));
            assert_eq!(all, here(kind, &|_| is_listed_by_namespace(kind)));
            for slot in cache.orphans_in(kind, text) {
                let orphan = uid_in(cache, kind, slot);
                let object = known.of(kind).values().find(|known| Some(uid(known.uid)) == orphan);
                let labels = cache.record(kind, slot).unwrap().labels();
                for &owner in owners_of(kind) {
                    let selecting = of_slots(owner, &mut cache.selecting(owner, text, labels));
                    assert_eq!(selecting, here(owner, &|it| it.selects(object.unwrap())));
                }
            }
        }
    }
}

#[test]
fn behaves_as_plain_maps() {
    for seed in 0..70 {
        eprintln!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut memory = Box::new(Memory::new());
        let mut cache = memory.parts().cache;
        cache.texts.seed(rng.next());
        let mut server = Cluster::default();
        let mut known = Cluster::default();
        for step in 0..1_500 {
            // Pods are the most.
            let kind = if rng.chance(2) { Kind::Pod } else { *rng.pick(ALL) };
            let names = names(kind);
            match rng.below(20) {
                0..14 => {
                    let id = server.mutate(&mut rng, kind, names);
                    let object = server.of(kind)[&id].clone();
                    apply_checked(&mut cache, &mut known, kind, &id, &object);
                }
                14..18 if !server.of(kind).is_empty() => {
                    let at = rng.below(server.of(kind).len());
                    let (id, object) = server
                        .of(kind)
                        .iter()
                        .nth(at)
                        .map(|(k, v)| (k.clone(), v.clone()))
                        .unwrap();
                    server.of_mut(kind).remove(&id);
                    let change = delete(&mut cache, kind, &id, &object);
                    assert_eq!(change.is_some(), known.of(kind).contains_key(&id));
                    assert!(change.is_none_or(|change| change.event == ChangeType::Deleted));
                    known.of_mut(kind).remove(&id);
                }
                18 => relist(&mut rng, &mut cache, &mut server, &mut known, kind, names),
                _ => {}
            }
            if step % 25 == 0 {
                check_all(&cache, &known);
            }
        }
        for &kind in ALL {
            for (id, object) in std::mem::take(server.of_mut(kind)) {
                delete(&mut cache, kind, &id, &object);
            }
        }
        assert_eq!((cache.texts.used(), cache.groups.used()), (0, 0), "nothing is leaked");
        assert_eq!(ALL.iter().map(|kind| cache.taken(*kind)).sum::<usize>(), 0);
    }
}

/// The server changed unseen; a list tells, perhaps only half of it.
fn relist(
    rng: &mut Rng,
    cache: &mut Cache<'_>,
    server: &mut Cluster,
    known: &mut Cluster,
    kind: Kind,
    names: usize,
) {
    for _ in 0..rng.below(8) {
        if rng.chance(2) && !server.of(kind).is_empty() {
            let at = rng.below(server.of(kind).len());
            let id = server.of(kind).keys().nth(at).unwrap().clone();
            server.of_mut(kind).remove(&id);
        } else {
            server.mutate(rng, kind, names);
        }
    }
    let cut = rng.chance(3).then(|| rng.below(server.of(kind).len() + 1));
    cache.begin_relist(kind);
    for (id, object) in server.of(kind).clone().iter().take(cut.unwrap_or(usize::MAX)) {
        apply_checked(cache, known, kind, id, object);
    }
    if cut.is_some() {
        check_all(cache, known);
        return relist(rng, cache, server, known, kind, names);
    }
    let mut gone: BTreeSet<u64> = known
        .of(kind)
        .iter()
        .filter(|(id, _)| !server.of(kind).contains_key(*id))
        .map(|(_, o)| o.uid)
        .collect();
    let mut sweep = cache.sweep(kind);
    while let Some(change) = cache.sweep_next(&mut sweep) {
        let found = gone.iter().copied().find(|number| uid(*number) == change.old_uid);
        assert!(gone.remove(&found.expect("was listed")));
        assert_eq!(change.event, ChangeType::Deleted);
        free(cache, kind, Some(&change));
    }
    assert!(gone.is_empty(), "not swept: {gone:?}");
    assert_eq!(cache.heal_next(&mut sweep), None);
    let server = &*server;
    known.of_mut(kind).retain(|id, _| server.of(kind).contains_key(id));
    check_all(cache, known);
}

/// It may be gone again: then no watch that begins after the list will tell.
#[test]
fn what_only_an_answer_has_told_of_is_on_no_list() {
    for (version, stays) in [(4, true), (5, false), (10, false)] {
        let mut memory = room!(2, 2, 2; 20, 60);
        let mut cache = memory.parts().cache;
        let created = pod(meta("ns", "created", 1, 5, &[], None));
        let listed = pod(meta("ns", "listed", 2, 3, &[], None));
        cache.begin_relist(Kind::Pod);
        cache.apply(&listed);
        for answer in [&created, &listed] {
            cache.apply_answer(answer);
        }
        let mut sweep = cache.sweep_until(Kind::Pod, ResourceVersion::new(version));
        let gone: Vec<_> = std::iter::from_fn(|| cache.sweep_next(&mut sweep)).collect();
        assert_eq!(gone.is_empty(), stays, "a list of version {version}");
        assert_eq!(cache.pods.iter().count(), 1 + usize::from(stays));
    }
}
