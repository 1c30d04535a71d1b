//! Expectations against Kubernetes' definition: per key two counters, a time and a set of pods.

use std::collections::{BTreeMap, BTreeSet};

use picokube_core::expect::{Expectations, Expected, TIMEOUT};
use picokube_core::link::Slot;
use picokube_core::store::{Applied, Change, ChangeType, Kind};
use picokube_core::time::{Duration, Instant, Timestamp};
use picokube_core::wire::{OwnerKind, Pod};

use crate::support::{OwnerRef, Rng, meta, pod, replica_set};

#[derive(Default)]
struct Model {
    counters: BTreeMap<usize, (i64, i64, Instant)>,
    awaited: BTreeMap<usize, BTreeSet<String>>,
}

impl Model {
    fn deletion_observed(&mut self, rs: usize, pod: &str) {
        if let Some(set) = self.awaited.get_mut(&rs)
            && set.remove(pod)
            && let Some((_, deletions, _)) = self.counters.get_mut(&rs)
        {
            *deletions -= 1;
        }
    }

    fn is_satisfied(&self, rs: usize, now: Instant) -> bool {
        self.counters.get(&rs).is_none_or(|(creations, deletions, since)| {
            (*creations <= 0 && *deletions <= 0) || now.since(*since) > TIMEOUT
        })
    }
}

const SETS: usize = 4;
type Memory = picokube_core::resources! {
    pods: 64, replica_sets: 8, deployments: 1, groups: 32, texts: 64,
};

fn owner(rs: usize) -> OwnerRef {
    (OwnerKind::ReplicaSet, format!("rs{rs}"), rs as u64)
}

/// What the handlers of the ReplicaSet controller do with a deletion.
fn observe(expectations: &mut Expectations, change: &Change) {
    let gone = change.event == ChangeType::Deleted || change.deleting;
    if let Some(rs) = change.old_owner.of(Kind::ReplicaSet)
        && change.was_expected
        && gone
    {
        expectations.deletion_observed(rs);
    }
}

#[test]
fn behaves_as_kubernetes_expectations() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        run(seed, 2_000);
    }
}

fn run(seed: u64, steps: usize) {
    let mut rng = Rng::new(seed);
    let mut memory = Box::new(Memory::new());
    let mut parts = memory.parts();
    let mut own = Expectations::<[Expected; 8]>::new();
    let expectations: &mut Expectations = &mut own;
    let mut model = Model::default();
    let mut pods: BTreeMap<String, (usize, Pod)> = BTreeMap::new();
    let mut now = Instant::ZERO;
    let slots: Vec<Slot> = (0..SETS)
        .map(|rs| {
            let object = replica_set(meta("ns", &format!("rs{rs}"), rs as u64, 1, &[], None), &[]);
            match parts.cache.apply(&object) {
                Applied::Changed(change) => change.slot,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    for step in 0..steps {
        let rs = rng.below(SETS);
        let cached = |pods: &BTreeMap<String, (usize, Pod)>| -> Vec<String> {
            pods.iter()
                .filter(|(_, (owner, _))| *owner == rs)
                .map(|(name, _)| name.clone())
                .collect()
        };
        match rng.below(9) {
            0 => {
                let count = rng.below(4) as u16;
                expectations.expect_creations(slots[rs], count, now);
                model.counters.insert(rs, (i64::from(count), 0, now));
            }
            1 => {
                let mut victims = cached(&pods);
                victims.truncate(rng.below(5));
                let places: Vec<Slot> = victims
                    .iter()
                    .map(|name| parts.cache.pods.find(parts.cache.texts, "ns", name).unwrap())
                    .collect();
                let count = parts.cache.expect_deletions(Kind::ReplicaSet, slots[rs], &places);
                expectations.expect_deletions(slots[rs], count, now);
                assert_eq!(usize::from(count), victims.len());
                model.counters.insert(rs, (0, victims.len() as i64, now));
                model.awaited.insert(rs, victims.into_iter().collect());
            }
            2..4 if pods.len() < 60 => {
                let name = format!("pod-{step}");
                let object =
                    pod(meta("ns", &name, 1000 + step as u64, step as u64, &[], Some(&owner(rs))));
                match parts.cache.apply(&object) {
                    Applied::Changed(change) => {
                        expectations
                            .creation_observed(change.new_owner.of(Kind::ReplicaSet).unwrap());
                    }
                    other => panic!("{other:?}"),
                }
                if let Some((creations, _, _)) = model.counters.get_mut(&rs) {
                    *creations -= 1;
                }
                pods.insert(name, (rs, object));
            }
            4 if !pods.is_empty() => {
                // The deletion timestamp appears.
                let name = pods.keys().nth(rng.below(pods.len())).unwrap().clone();
                let (owner, object) = pods.get_mut(&name).unwrap();
                object.meta.deletion = Some(Timestamp::from_secs(1));
                object.meta.resource_version =
                    picokube_core::wire::ResourceVersion::new(100_000 + step as u64);
                let Applied::Changed(change) = parts.cache.apply(object) else { panic!() };
                observe(expectations, &change);
                model.deletion_observed(*owner, &name);
            }
            5 if !pods.is_empty() => {
                let name = pods.keys().nth(rng.below(pods.len())).unwrap().clone();
                let (owner, object) = pods.remove(&name).unwrap();
                let change = parts.cache.delete(Kind::Pod, &object.meta).unwrap();
                observe(expectations, &change);
                model.deletion_observed(owner, &name);
            }
            6 => {
                // The request to delete a pod failed.
                if let Some(name) = cached(&pods).first() {
                    let place = parts.cache.pods.find(parts.cache.texts, "ns", name).unwrap();
                    if parts.cache.take_expected_deletion(place) {
                        expectations.deletion_observed(slots[rs]);
                    }
                    model.deletion_observed(rs, name);
                }
            }
            7 if !pods.is_empty() && rng.chance(2) => {
                // A pod changes hands, once in its life: its deletion no longer counts for the
                // first owner, nor for the second.
                let name = pods.keys().nth(rng.below(pods.len())).unwrap().clone();
                let (owner_now, object) = pods.get_mut(&name).unwrap();
                if object.meta.generation == 0 && object.meta.deletion.is_none() {
                    object.meta.generation = 1;
                    *owner_now = rs;
                    let moved = meta("ns", &name, 0, 0, &[], Some(&owner(rs)));
                    object.meta.controller = moved.controller;
                    let Applied::Changed(change) = parts.cache.apply(object) else { panic!() };
                    observe(expectations, &change);
                }
            }
            7 if rng.chance(2) => {
                expectations.forget(slots[rs]);
                parts.cache.forget_expected_deletions(Kind::ReplicaSet, slots[rs]);
                model.counters.remove(&rs);
                model.awaited.remove(&rs);
            }
            _ => now = now + Duration::from_secs(rng.next() % 60),
        }
        for (rs, &slot) in slots.iter().enumerate() {
            let satisfied = expectations.are_satisfied(slot, now);
            assert_eq!(satisfied, model.is_satisfied(rs, now), "step {step}");
            if let Some(at) = expectations.expire_at(slot, now) {
                assert!(expectations.are_satisfied(slot, at));
                let just_before = Instant::from_micros(at.as_micros() - 1);
                assert!(!expectations.are_satisfied(slot, just_before));
            }
        }
    }
}

#[test]
fn expire_after_five_minutes_and_not_before() {
    let mut own = Expectations::<[Expected; 1]>::new();
    let expectations: &mut Expectations = &mut own;
    let key = Slot::from_index(0).unwrap();
    let start = Instant::from_micros(u64::from(u32::MAX));
    assert!(expectations.are_satisfied(key, start));
    expectations.expect_creations(key, 1, start);
    assert!(!expectations.are_satisfied(key, start + Duration::from_secs(300)));
    assert!(expectations.are_satisfied(key, start + Duration::from_millis(300_001)));
    // Observing something nobody awaits is harmless.
    expectations.creation_observed(key);
    expectations.creation_observed(key);
    expectations.deletion_observed(key);
    assert!(expectations.are_satisfied(key, start));
    expectations.expect_deletions(key, 500, start);
    (0..499).for_each(|_| expectations.deletion_observed(key));
    assert!(!expectations.are_satisfied(key, start));
    expectations.deletion_observed(key);
    assert!(expectations.are_satisfied(key, start));
}
