//! Shared by the model tests: a seeded source of randomness and builders of objects.

use picokube_core::text::Fingerprint;
use picokube_core::wire::{
    ControllerRef, Deployment, Meta, OwnerKind, Pod, ReplicaSet, ResourceVersion, Uid,
};

/// SplitMix64: small, and the same on every machine.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0..bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

pub(crate) fn uid(number: u64) -> Uid {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Uid::from_bytes(bytes)
}

pub(crate) fn fp(text: &str) -> Fingerprint {
    Fingerprint::of(text)
}

/// Memory for so many pods, ReplicaSets and Deployments; groups and texts. And for as many claims as pods,
/// and as many StatefulSets and revisions as ReplicaSets, in builds that have them.
macro_rules! room {
    ($pods:expr, $replica_sets:expr, $deployments:expr; $groups:expr, $texts:expr) => {
        <picokube_core::resources! {
            pods: $pods,
            replica_sets: $replica_sets,
            deployments: $deployments,
            stateful_sets: if cfg!(feature = "statefulset") { $replica_sets } else { 0 },
            controller_revisions: if cfg!(feature = "statefulset") { $replica_sets } else { 0 },
            persistent_volume_claims: if cfg!(feature = "statefulset") { $pods } else { 0 },
            groups: $groups,
            texts: $texts,
        }>::new()
    };
}
pub(crate) use room;

/// The controller reference of an object: kind, name, uid.
pub(crate) type OwnerRef = (OwnerKind, String, u64);

pub(crate) fn meta(
    namespace: &str,
    name: &str,
    number: u64,
    version: u64,
    labels: &[(&str, &str)],
    owner: Option<&OwnerRef>,
) -> Meta {
    let mut meta = Meta {
        namespace: namespace.try_into().unwrap(),
        name: name.try_into().unwrap(),
        uid: uid(number),
        resource_version: ResourceVersion::new(version),
        ..Meta::default()
    };
    labels.iter().for_each(|(key, value)| meta.labels.insert_text(key, value));
    meta.controller = owner.map(|(kind, name, number)| ControllerRef {
        kind: *kind,
        name: name.as_str().try_into().unwrap(),
        uid: uid(*number),
    });
    meta
}

pub(crate) fn pod(meta: Meta) -> Pod {
    Pod { meta, ..Pod::default() }
}

/// A ReplicaSet whose selector is these labels.
pub(crate) fn replica_set(meta: Meta, selector: &[(&str, &str)]) -> ReplicaSet {
    let mut rs = ReplicaSet { meta, ..ReplicaSet::default() };
    selector.iter().for_each(|(key, value)| rs.selector.match_label(fp(key), fp(value)));
    rs
}

/// A Deployment whose selector is these labels.
pub(crate) fn deployment(meta: Meta, selector: &[(&str, &str)]) -> Deployment {
    let mut d = Deployment { meta, ..Deployment::default() };
    selector.iter().for_each(|(key, value)| d.selector.match_label(fp(key), fp(value)));
    d
}
