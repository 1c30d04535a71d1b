//! What controllers ask the cache.

use core::borrow::Borrow;

use crate::link::{Link, Slot};
use crate::text::{LabelSet, Text};

use super::apply::namespace_key;
use super::cache::Kind;
use super::groups::{GroupKey, List, Role};
use super::table::flag;
use super::{Cache, Deployment, Entry, Pod, Record, ReplicaSet, Table};

impl Cache<'_> {
    /// The pods that a ReplicaSet controls.
    pub fn pods_of(&self, rs: Slot) -> impl Iterator<Item = (Slot, &Entry<Pod>)> {
        self.members(self.pods, List::Owned, self.owned_key(Kind::Pod, rs))
    }

    /// The pods of a namespace that nobody controls.
    pub fn orphan_pods(&self, namespace: Text) -> impl Iterator<Item = (Slot, &Entry<Pod>)> {
        let key = namespace_key(Kind::Pod, Role::Orphans, namespace);
        self.members(self.pods, List::Owned, Some(key))
    }

    /// The ReplicaSets that a Deployment controls.
    pub fn replica_sets_of(&self, d: Slot) -> impl Iterator<Item = (Slot, &Entry<ReplicaSet>)> {
        self.members(self.replica_sets, List::Owned, self.owned_key(Kind::ReplicaSet, d))
    }

    /// The ReplicaSets of a namespace that nobody controls.
    pub fn orphan_replica_sets(
        &self,
        namespace: Text,
    ) -> impl Iterator<Item = (Slot, &Entry<ReplicaSet>)> {
        let key = namespace_key(Kind::ReplicaSet, Role::Orphans, namespace);
        self.members(self.replica_sets, List::Owned, Some(key))
    }

    /// The ReplicaSets with the same controller as this one, itself included; nothing for an
    /// orphan.
    pub fn siblings_of(&self, rs: Slot) -> impl Iterator<Item = (Slot, &Entry<ReplicaSet>)> {
        let group = self.replica_sets.get(rs).and_then(|rs| rs.owned_group());
        let key = group.and_then(|group| self.groups.get(group)).map(|group| group.key());
        let key = key.filter(|key| key.role.is_owned());
        self.members(self.replica_sets, List::Owned, key)
    }

    /// All ReplicaSets of a namespace.
    pub fn replica_sets_in(
        &self,
        namespace: Text,
    ) -> impl Iterator<Item = (Slot, &Entry<ReplicaSet>)> {
        let key = namespace_key(Kind::ReplicaSet, Role::InNamespace, namespace);
        self.members(self.replica_sets, List::InNamespace, Some(key))
    }

    /// All Deployments of a namespace.
    pub fn deployments_in(
        &self,
        namespace: Text,
    ) -> impl Iterator<Item = (Slot, &Entry<Deployment>)> {
        let key = namespace_key(Kind::Deployment, Role::InNamespace, namespace);
        self.members(self.deployments, List::InNamespace, Some(key))
    }

    /// The ReplicaSets of a namespace whose non-empty selector matches an orphan's labels.
    pub fn replica_sets_selecting(
        &self,
        namespace: Text,
        labels: LabelSet,
    ) -> impl Iterator<Item = Slot> {
        self.replica_sets_in(namespace)
            .filter(move |(_, rs)| rs.record.selector.matches_orphan(self.texts, labels))
            .map(|(slot, _)| slot)
    }

    /// The Deployments of a namespace whose non-empty selector matches an orphan's labels.
    pub fn deployments_selecting(
        &self,
        namespace: Text,
        labels: LabelSet,
    ) -> impl Iterator<Item = Slot> {
        self.deployments_in(namespace)
            .filter(move |(_, d)| d.record.selector.matches_orphan(self.texts, labels))
            .map(|(slot, _)| slot)
    }

    /// A ReplicaSet is about to delete these pods of its own: from now on it awaits exactly
    /// their deletion. Returns how many it awaits.
    pub fn expect_deletions(
        &mut self,
        rs: Slot,
        pods: impl IntoIterator<Item = impl Borrow<Slot>>,
    ) -> u16 {
        self.forget_expected_deletions(rs);
        let mut count = 0;
        for pod in pods {
            let pod = *pod.borrow();
            if self.owner_of_pod(pod).slot() == Some(rs)
                && let Some(entry) = self.pods.get_mut(pod)
                && entry.flags & flag::EXPECTED == 0
            {
                entry.flags |= flag::EXPECTED;
                count += 1;
            }
        }
        count
    }

    /// A ReplicaSet no longer awaits the deletion of any pod.
    pub fn forget_expected_deletions(&mut self, rs: Slot) {
        let group = self.owned_key(Kind::Pod, rs);
        let group = group.and_then(|key| self.groups.find(self.texts, &key));
        let mut at = group.and_then(|group| self.groups.get(group)).and_then(|group| group.first());
        while let Some(entry) = at.and_then(|slot| self.pods.get_mut(slot)) {
            entry.flags &= !(flag::EXPECTED | flag::VICTIM);
            at = entry.after(List::Owned);
        }
    }

    /// The deletion of a pod will not come, because the request failed. Whether it was awaited.
    pub fn take_expected_deletion(&mut self, pod: Slot) -> bool {
        let Some(entry) = self.pods.get_mut(pod) else { return false };
        let expected = entry.flags & flag::EXPECTED != 0;
        entry.flags &= !flag::EXPECTED;
        expected
    }

    /// Marks pods that [`next_victim`](Self::next_victim) is to return.
    pub fn mark_victims(&mut self, pods: impl IntoIterator<Item = impl Borrow<Slot>>) {
        for pod in pods {
            if let Some(entry) = self.pods.get_mut(*pod.borrow()) {
                entry.flags |= flag::VICTIM;
            }
        }
    }

    /// A pod of a ReplicaSet that is marked.
    pub fn next_victim(&self, rs: Slot) -> Option<Slot> {
        let marked = |pod: &Entry<Pod>| pod.flags & flag::VICTIM != 0;
        self.pods_of(rs).find(|(_, pod)| marked(pod)).map(|(slot, _)| slot)
    }

    /// Whether the deletion of a pod has been asked for.
    pub fn is_being_deleted(&self, pod: Slot) -> bool {
        let flags = self.pods.get(pod).map_or(0, |pod| pod.flags);
        flags & (flag::EXPECTED | flag::VICTIM) == flag::EXPECTED
    }

    /// Takes the mark of a pod away.
    pub fn unmark_victim(&mut self, pod: Slot) {
        if let Some(entry) = self.pods.get_mut(pod) {
            entry.flags &= !flag::VICTIM;
        }
    }

    /// Remembers whether a ReplicaSet's blindness was told of; returns what was remembered.
    pub fn tell_blind_replica_set(&mut self, rs: Slot, told: bool) -> bool {
        tell(self.replica_sets.get_mut(rs), told)
    }

    /// Remembers whether a Deployment's blindness was told of; returns what was remembered.
    pub fn tell_blind_deployment(&mut self, d: Slot, told: bool) -> bool {
        tell(self.deployments.get_mut(d), told)
    }

    pub(super) fn first_in_namespace(&self, kind: Kind, namespace: &str) -> Link {
        let namespace = self.texts.find(namespace.as_bytes())?;
        let key = namespace_key(kind, Role::InNamespace, namespace);
        self.groups.get(self.groups.find(self.texts, &key)?)?.first()
    }

    fn members<'s, R: Record>(
        &'s self,
        table: &'s Table<[Entry<R>]>,
        list: List,
        key: Option<GroupKey>,
    ) -> impl Iterator<Item = (Slot, &'s Entry<R>)> {
        let group = key.and_then(|key| self.groups.find(self.texts, &key));
        let mut at = group.and_then(|group| self.groups.get(group)).and_then(|group| group.first());
        core::iter::from_fn(move || {
            let slot = at?;
            let entry = table.get(slot)?;
            at = entry.after(list);
            Some((slot, entry))
        })
    }
}

fn tell<R: Record>(entry: Option<&mut Entry<R>>, told: bool) -> bool {
    let Some(entry) = entry else { return false };
    let before = entry.flags & flag::TOLD != 0;
    entry.flags = if told { entry.flags | flag::TOLD } else { entry.flags & !flag::TOLD };
    before
}
