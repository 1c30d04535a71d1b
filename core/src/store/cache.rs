//! All tables together.

use crate::link::{Link, Slot};
use crate::text::{Interner, Name, Text};

use super::change::Owner;
use super::groups::{GroupKey, Groups, Role};
use super::{Deployment, Entry, Pod, Record, ReplicaSet, Table};

/// The kinds that are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Kind {
    /// `v1` Pod
    Pod,
    /// `apps/v1` ReplicaSet
    ReplicaSet,
    /// `apps/v1` Deployment
    Deployment,
}

/// The cached cluster: tables that live elsewhere, see [`resources!`](crate::resources!).
#[derive(Debug)]
pub struct Cache<'a> {
    /// Names, label sets and selectors.
    pub texts: &'a mut Interner,
    /// Owners and namespaces.
    pub groups: &'a mut Groups,
    /// All pods that are ours or nobody's.
    pub pods: &'a mut Table<[Entry<Pod>]>,
    /// All ReplicaSets.
    pub replica_sets: &'a mut Table<[Entry<ReplicaSet>]>,
    /// All Deployments.
    pub deployments: &'a mut Table<[Entry<Deployment>]>,
    /// What did not fit.
    pub state: &'a mut CacheState,
}

/// What the cache remembers of objects it could not hold, per kind.
#[derive(Debug, Default)]
pub struct CacheState {
    pub(super) pods: Shortage,
    pub(super) replica_sets: Shortage,
    pub(super) deployments: Shortage,
}

/// The shortage of room for one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shortage {
    /// Refusals since the last complete list, and since the running one began.
    pub(super) refused: u32,
    pub(super) refused_anew: u32,
    /// Nobody knows whose objects are missing: every owner is blind.
    pub(super) all_blind: bool,
    pub(super) all_blind_anew: bool,
    /// Something was freed since a refusal.
    pub(super) room: bool,
}

impl CacheState {
    /// Nothing is missing.
    pub const fn new() -> Self {
        const NONE: Shortage = Shortage {
            refused: 0,
            refused_anew: 0,
            all_blind: false,
            all_blind_anew: false,
            room: false,
        };
        Self { pods: NONE, replica_sets: NONE, deployments: NONE }
    }

    pub(super) const fn of(&self, kind: Kind) -> &Shortage {
        match kind {
            Kind::Pod => &self.pods,
            Kind::ReplicaSet => &self.replica_sets,
            Kind::Deployment => &self.deployments,
        }
    }

    pub(super) const fn of_mut(&mut self, kind: Kind) -> &mut Shortage {
        match kind {
            Kind::Pod => &mut self.pods,
            Kind::ReplicaSet => &mut self.replica_sets,
            Kind::Deployment => &mut self.deployments,
        }
    }

    /// Something was freed: whatever was refused may fit now.
    pub(super) fn room_appeared(&mut self) {
        for shortage in [&mut self.pods, &mut self.replica_sets, &mut self.deployments] {
            shortage.room = shortage.refused > 0;
        }
    }
}

impl Cache<'_> {
    /// The controller of a pod.
    pub fn owner_of_pod(&self, pod: Slot) -> Owner {
        self.resolve(self.pods.get(pod).and_then(|pod| pod.owned_group()))
    }

    /// The controller of a ReplicaSet.
    pub fn owner_of_replica_set(&self, rs: Slot) -> Owner {
        self.resolve(self.replica_sets.get(rs).and_then(|rs| rs.owned_group()))
    }

    /// Kubernetes' rule: the kind must be right, the owner is looked up by name, and its uid must
    /// be the reference's.
    pub(super) fn resolve(&self, group: Link) -> Owner {
        let Some(group) = group.and_then(|group| self.groups.get(group)) else {
            return Owner::None;
        };
        let key = group.key();
        let found = match (key.members, key.role) {
            (_, Role::Orphans | Role::InNamespace) => return Owner::None,
            (Kind::Pod, Role::OwnedByReplicaSet) => named(self.replica_sets, self.texts, &key),
            (Kind::ReplicaSet, Role::OwnedByDeployment) => {
                named(self.deployments, self.texts, &key)
            }
            _ => None,
        };
        found.map_or(Owner::Unresolved, Owner::Resolved)
    }

    /// The key of the group of objects that this one controls.
    pub(super) fn owned_key(&self, members: Kind, owner: Slot) -> Option<GroupKey> {
        let key = |role, namespace: Text, name: Option<Text>, uid| {
            let name = name?;
            Some(GroupKey { members, role, namespace, name, uid })
        };
        match members {
            Kind::Pod => {
                let rs = self.replica_sets.get(owner)?;
                key(Role::OwnedByReplicaSet, rs.namespace(), rs.name().as_text(), rs.uid())
            }
            Kind::ReplicaSet => {
                let d = self.deployments.get(owner)?;
                key(Role::OwnedByDeployment, d.namespace(), d.name().as_text(), d.uid())
            }
            Kind::Deployment => None,
        }
    }
}

fn named<R: Record>(table: &Table<[Entry<R>]>, texts: &Interner, key: &GroupKey) -> Link {
    let slot = table.find_name(texts, key.namespace, Name::from_text(key.name))?;
    (table.get(slot)?.uid() == key.uid).then_some(slot)
}
