//! A plain model of the objects on a server, and of what a cache says about changes to them.

use std::collections::BTreeMap;

use picokube_core::store::{Applied, Cache, Change, Kind};
use picokube_core::time::Timestamp;
use picokube_core::wire::{ConditionStatus, OwnerKind};
#[cfg(feature = "statefulset")]
use picokube_core::wire::{ControllerRevision, PersistentVolumeClaim, StatefulSet};

#[cfg(feature = "statefulset")]
use crate::support::fp;
use crate::support::{OwnerRef, Rng, deployment, meta, pod, replica_set};

pub(crate) type Id = (&'static str, String);
pub(crate) type Labels = Vec<(&'static str, &'static str)>;

/// The kinds of every build.
pub(crate) const KINDS: [Kind; 3] = [Kind::Pod, Kind::ReplicaSet, Kind::Deployment];

/// All kinds with a model.
pub(crate) const ALL: &[Kind] = &[
    Kind::Pod,
    Kind::ReplicaSet,
    Kind::Deployment,
    #[cfg(feature = "statefulset")]
    Kind::StatefulSet,
    #[cfg(feature = "statefulset")]
    Kind::ControllerRevision,
    #[cfg(feature = "statefulset")]
    Kind::PersistentVolumeClaim,
];

/// Those who may control objects of a kind.
pub(crate) fn owners_of(kind: Kind) -> &'static [Kind] {
    match kind {
        Kind::Pod => &[
            Kind::ReplicaSet,
            #[cfg(feature = "statefulset")]
            Kind::StatefulSet,
        ],
        Kind::ReplicaSet => &[Kind::Deployment],
        #[cfg(feature = "statefulset")]
        Kind::ControllerRevision | Kind::PersistentVolumeClaim => &[Kind::StatefulSet],
        _ => &[],
    }
}

/// Whether the cache lists all objects of a namespace.
pub(crate) fn is_listed_by_namespace(kind: Kind) -> bool {
    ALL.iter().any(|members| *members != kind && owners_of(*members).contains(&kind))
}

/// What the tests vary of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) uid: u64,
    pub(crate) version: u64,
    pub(crate) labels: Labels,
    /// Of those that control others.
    pub(crate) selector: Labels,
    pub(crate) owner: Option<OwnerRef>,
    pub(crate) ready: bool,
    pub(crate) deleting: bool,
    /// Which pod template it has, and how many it has had. Of ReplicaSets and Deployments.
    pub(crate) template: u64,
    pub(crate) generation: i64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    objects: BTreeMap<Kind, BTreeMap<Id, Object>>,
    next: u64,
}

static NOTHING: BTreeMap<Id, Object> = BTreeMap::new();

impl Object {
    /// Whether the cache wants to know it at all.
    pub(crate) fn is_ours(&self, kind: Kind) -> bool {
        let owners = owners_of(kind);
        let is_only_of_owners = match kind {
            Kind::Pod => true,
            #[cfg(feature = "statefulset")]
            Kind::ControllerRevision => true,
            _ => false,
        };
        let is_ours = |(kind, ..): &OwnerRef| owners.iter().any(|owner| *kind == (*owner).into());
        !is_only_of_owners || self.owner.as_ref().is_none_or(is_ours)
    }

    pub(crate) fn selects(&self, orphan: &Object) -> bool {
        !self.selector.is_empty()
            && self.selector.iter().all(|wanted| orphan.labels.contains(wanted))
    }
}

impl Cluster {
    pub(crate) fn of(&self, kind: Kind) -> &BTreeMap<Id, Object> {
        self.objects.get(&kind).unwrap_or(&NOTHING)
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut BTreeMap<Id, Object> {
        self.objects.entry(kind).or_default()
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The owner that a reference resolves to.
    pub(crate) fn resolve(
        &self,
        kind: Kind,
        namespace: &str,
        owner: &OwnerRef,
    ) -> Option<(Kind, &Object)> {
        let (owner_kind, name, uid) = owner;
        let of_kind = |kind: &&Kind| OwnerKind::from(**kind) == *owner_kind;
        let kind = *owners_of(kind).iter().find(of_kind)?;
        let mut table = self.of(kind).iter();
        let found = table.find(|((ns, known), _)| *ns == namespace && known == name);
        found.map(|(_, object)| (kind, object)).filter(|(_, object)| object.uid == *uid)
    }

    /// A random new state of an object, or a new object.
    pub(crate) fn mutate(&mut self, rng: &mut Rng, kind: Kind, names: usize) -> Id {
        let namespace = *rng.pick(&["default", "kube-system"]);
        let number = rng.below(names);
        let name = match kind {
            Kind::Pod => format!("a-rather-long-replica-set-name-{}-x{number}", number % 3),
            Kind::ReplicaSet => format!("a-rather-long-replica-set-name-{number}"),
            Kind::Deployment => format!("deployment-{number}"),
            #[cfg(feature = "statefulset")]
            Kind::StatefulSet => format!("a-rather-long-stateful-set-name-{number}"),
            #[cfg(feature = "statefulset")]
            Kind::ControllerRevision => {
                format!("a-rather-long-stateful-set-name-{}-c{number}", number % 3)
            }
            #[cfg(feature = "statefulset")]
            Kind::PersistentVolumeClaim => {
                format!("data-a-rather-long-stateful-set-name-{}-{number}", number % 3)
            }
            other => panic!("a kind without a model: {other:?}"),
        };
        let id = (namespace, name);
        let fresh = self.number();
        let owner = self.random_owner(rng, kind, namespace);
        let app = *rng.pick(&["web", "db", "cache"]);
        let mut labels = vec![("app", app)];
        if rng.chance(2) {
            labels.push(("tier", *rng.pick(&["front", "back"])));
        }
        if rng.chance(8) {
            labels.clear();
        }
        let selector = if rng.chance(10) { vec![] } else { vec![("app", app)] };
        let old = self.of(kind).get(&id).cloned();
        let object = match old {
            Some(old) if !rng.chance(10) => {
                let mut object = Object { version: fresh, ..old };
                match rng.below(6) {
                    0 => object.labels = labels,
                    1 => object.owner = owner,
                    2 => object.ready = !object.ready,
                    3 => object.deleting = true,
                    4 => {
                        object.template = fresh;
                        object.generation += 1;
                    }
                    _ => object.version = self.of(kind)[&id].version,
                }
                object
            }
            // New, or deleted and recreated unseen.
            _ => Object {
                uid: fresh,
                version: fresh,
                labels,
                selector,
                owner,
                ready: rng.chance(2),
                deleting: rng.chance(10),
                template: fresh,
                generation: 1,
            },
        };
        self.of_mut(kind).insert(id.clone(), object);
        id
    }

    fn random_owner(&mut self, rng: &mut Rng, kind: Kind, namespace: &str) -> Option<OwnerRef> {
        let owner_kind = match owners_of(kind) {
            [] => return None,
            [only] => *only,
            several => *rng.pick(several),
        };
        let owners = self.of(owner_kind);
        let owner_kind = owner_kind.into();
        let candidates: Vec<_> = owners.iter().filter(|((ns, _), _)| *ns == namespace).collect();
        match rng.below(8) {
            0 => None,
            1 => Some((OwnerKind::Other, "a-job".to_owned(), 5)),
            // A pod controls claims, but that does not make them its members here.
            2 if kind != Kind::Pod => Some((OwnerKind::Pod, "a-pod".to_owned(), 6)),
            2 => Some((OwnerKind::Other, "a-set".to_owned(), 6)),
            // Wrong uid, wrong name.
            3 => Some((owner_kind, "somebody".to_owned(), 1 << 40 | rng.below(3) as u64)),
            _ if candidates.is_empty() => None,
            _ => {
                let ((_, name), object) = rng.pick(&candidates);
                Some((owner_kind, name.clone(), object.uid))
            }
        }
    }
}

pub(crate) fn apply(cache: &mut Cache<'_>, kind: Kind, id: &Id, object: &Object) -> Applied {
    let meta = meta_of(id, object);
    match kind {
        Kind::Pod => {
            let mut pod = pod(meta);
            pod.ready = object.ready.then_some(ConditionStatus::True).into();
            cache.apply(&pod)
        }
        Kind::ReplicaSet => cache.apply(&replica_set(meta, &object.selector)),
        Kind::Deployment => cache.apply(&deployment(meta, &object.selector)),
        #[cfg(feature = "statefulset")]
        Kind::StatefulSet => {
            let mut set = StatefulSet { meta, ..StatefulSet::default() };
            let labels = object.selector.iter();
            labels.for_each(|(key, value)| set.selector.match_label(fp(key), fp(value)));
            cache.apply(&set)
        }
        #[cfg(feature = "statefulset")]
        Kind::ControllerRevision => {
            cache.apply(&ControllerRevision { meta, ..ControllerRevision::default() })
        }
        #[cfg(feature = "statefulset")]
        Kind::PersistentVolumeClaim => {
            cache.apply(&PersistentVolumeClaim { meta, ..PersistentVolumeClaim::default() })
        }
        other => panic!("a kind without a model: {other:?}"),
    }
}

pub(crate) fn delete(
    cache: &mut Cache<'_>,
    kind: Kind,
    id: &Id,
    object: &Object,
) -> Option<Change> {
    let meta = meta_of(id, object);
    let change = cache.delete(kind, &meta);
    free(cache, kind, change.as_ref());
    change
}

/// No queue knows the slot: it can be used again at once.
pub(crate) fn free(cache: &mut Cache<'_>, kind: Kind, change: Option<&Change>) {
    if let Some(change) = change {
        cache.free(kind, change.slot);
    }
}

fn meta_of((namespace, name): &Id, object: &Object) -> picokube_core::wire::Meta {
    let owner = object.owner.as_ref();
    let mut meta = meta(namespace, name, object.uid, object.version, &object.labels, owner);
    meta.deletion = object.deleting.then_some(Timestamp::from_secs(1));
    meta.generation = object.generation;
    meta
}
