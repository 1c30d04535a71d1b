//! A plain model of the objects on a server, and of what a cache says about changes to them.

use std::collections::BTreeMap;

use picokube_core::store::{Applied, Cache, Change, Kind};
use picokube_core::time::Timestamp;
use picokube_core::wire::{ConditionStatus, OwnerKind};

use crate::support::{OwnerRef, Rng, deployment, meta, pod, replica_set};

pub(crate) type Id = (&'static str, String);
pub(crate) type Labels = Vec<(&'static str, &'static str)>;

pub(crate) const KINDS: [Kind; 3] = [Kind::Pod, Kind::ReplicaSet, Kind::Deployment];

/// What the tests vary of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) uid: u64,
    pub(crate) version: u64,
    pub(crate) labels: Labels,
    /// Of ReplicaSets and Deployments.
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
    pub(crate) pods: BTreeMap<Id, Object>,
    pub(crate) replica_sets: BTreeMap<Id, Object>,
    pub(crate) deployments: BTreeMap<Id, Object>,
    next: u64,
}

impl Object {
    /// Whether the cache wants to know it at all.
    pub(crate) fn is_ours(&self, kind: Kind) -> bool {
        kind != Kind::Pod || self.owner.as_ref().is_none_or(|(kind, ..)| *kind != OwnerKind::Other)
    }

    pub(crate) fn selects(&self, orphan: &Object) -> bool {
        !self.selector.is_empty()
            && self.selector.iter().all(|wanted| orphan.labels.contains(wanted))
    }
}

impl Cluster {
    pub(crate) fn of(&self, kind: Kind) -> &BTreeMap<Id, Object> {
        match kind {
            Kind::Pod => &self.pods,
            Kind::ReplicaSet => &self.replica_sets,
            Kind::Deployment => &self.deployments,
            other => panic!("a kind without a model: {other:?}"),
        }
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut BTreeMap<Id, Object> {
        match kind {
            Kind::Pod => &mut self.pods,
            Kind::ReplicaSet => &mut self.replica_sets,
            Kind::Deployment => &mut self.deployments,
            other => panic!("a kind without a model: {other:?}"),
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The owner that a reference resolves to.
    pub(crate) fn resolve(&self, kind: Kind, namespace: &str, owner: &OwnerRef) -> Option<&Object> {
        let (owner_kind, name, uid) = owner;
        let table = match (kind, owner_kind) {
            (Kind::Pod, OwnerKind::ReplicaSet) => &self.replica_sets,
            (Kind::ReplicaSet, OwnerKind::Deployment) => &self.deployments,
            _ => return None,
        };
        let found = table.iter().find(|((ns, known), _)| *ns == namespace && known == name);
        found.map(|(_, object)| object).filter(|object| object.uid == *uid)
    }

    /// A random new state of an object, or a new object.
    pub(crate) fn mutate(&mut self, rng: &mut Rng, kind: Kind, names: usize) -> Id {
        let namespace = *rng.pick(&["default", "kube-system"]);
        let number = rng.below(names);
        let name = match kind {
            Kind::Pod => format!("a-rather-long-replica-set-name-{}-x{number}", number % 3),
            Kind::ReplicaSet => format!("a-rather-long-replica-set-name-{number}"),
            Kind::Deployment => format!("deployment-{number}"),
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
        let (owner_kind, owners) = match kind {
            Kind::Pod => (OwnerKind::ReplicaSet, &self.replica_sets),
            Kind::ReplicaSet => (OwnerKind::Deployment, &self.deployments),
            Kind::Deployment => return None,
            other => panic!("a kind without a model: {other:?}"),
        };
        let candidates: Vec<_> = owners.iter().filter(|((ns, _), _)| *ns == namespace).collect();
        match rng.below(8) {
            0 => None,
            1 => Some((OwnerKind::Other, "a-job".to_owned(), 5)),
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
