//! What controllers ask the cache.

use core::borrow::Borrow;

use crate::kind::Kind;
use crate::link::{Link, Slot};
use crate::text::{LabelSet, Text};
use crate::wire::Uid;

use super::apply::namespace_key;
use super::groups::{GroupKey, List, Role};
use super::index::{Head, flag};
use super::{Cache, Entry, Pod, Record, ReplicaSet};

impl Cache<'_> {
    /// The objects of a kind that another one controls.
    pub fn members_of(
        &self,
        members: Kind,
        owner: Kind,
        slot: Slot,
    ) -> impl Iterator<Item = Slot> + Clone {
        self.members(members, List::Owned, self.owned_key(members, owner, slot))
    }

    /// The objects of a namespace that nobody controls.
    pub fn orphans_in(&self, kind: Kind, namespace: Text) -> impl Iterator<Item = Slot> {
        self.members(kind, List::Owned, Some(namespace_key(kind, Role::ORPHANS, namespace)))
    }

    /// All objects of a namespace; none of a kind that nobody asks that of.
    pub fn all_in(&self, kind: Kind, namespace: Text) -> impl Iterator<Item = Slot> {
        let key = namespace_key(kind, Role::IN_NAMESPACE, namespace);
        self.members(kind, List::InNamespace, Some(key))
    }

    /// The objects with the same controller as this one, itself included; nothing for an orphan.
    pub fn siblings_of(&self, kind: Kind, slot: Slot) -> impl Iterator<Item = Slot> {
        let group = self.head(kind, slot).and_then(Head::owned_group);
        let key = group.and_then(|group| self.groups.get(group)).map(|group| group.key());
        self.members(kind, List::Owned, key.filter(|key| key.role.is_owned()))
    }

    /// The objects of a namespace whose non-empty selector matches an orphan's labels.
    pub fn selecting(
        &self,
        kind: Kind,
        namespace: Text,
        labels: LabelSet,
    ) -> impl Iterator<Item = Slot> {
        self.all_in(kind, namespace).filter(move |slot| {
            let selector = self.record(kind, *slot).and_then(|record| record.selector());
            selector.is_some_and(|selector| selector.matches_orphan(self.texts, labels))
        })
    }

    /// The pods that an object controls.
    pub fn pods_of(&self, owner: Kind, slot: Slot) -> impl Iterator<Item = (Slot, Entry<'_, Pod>)> {
        let pods = self.members_of(Kind::Pod, owner, slot);
        pods.filter_map(|pod| Some((pod, self.pods.get(pod)?)))
    }

    /// The ReplicaSets that a Deployment controls.
    pub fn replica_sets_of(&self, d: Slot) -> impl Iterator<Item = (Slot, Entry<'_, ReplicaSet>)> {
        let sets = self.members_of(Kind::ReplicaSet, Kind::Deployment, d);
        sets.filter_map(|set| Some((set, self.replica_sets.get(set)?)))
    }

    /// An object is about to delete these pods of its own: from now on it awaits exactly
    /// their deletion. Returns how many it awaits.
    pub fn expect_deletions(
        &mut self,
        owner: Kind,
        slot: Slot,
        pods: impl IntoIterator<Item = impl Borrow<Slot>>,
    ) -> u16 {
        self.forget_expected_deletions(owner, slot);
        let mut count = 0;
        for pod in pods {
            let pod = *pod.borrow();
            if self.owner_of(Kind::Pod, pod).of(owner) == Some(slot)
                && let Some(head) = self.pods.index.get_mut(pod)
                && head.flags & flag::EXPECTED == 0
            {
                head.flags |= flag::EXPECTED;
                count += 1;
            }
        }
        count
    }

    /// A pod goes at once, as the answer to its deletion says: its owner awaits that the watch tells. If it
    /// has told already, the slot may be another one's by now.
    pub fn expect_deletion(&mut self, pod: Slot, uid: Uid) {
        let is_told = |pod: Entry<'_, Pod>| pod.record.is_deleting() || pod.uid() != uid;
        let is_told = self.pods.get(pod).is_none_or(is_told);
        if let Some(head) = self.pods.index.get_mut(pod).filter(|_| !is_told) {
            head.flags |= flag::EXPECTED;
        }
    }

    /// Whether an object awaits the deletion of a pod.
    pub fn expects_deletions(&self, owner: Kind, slot: Slot) -> bool {
        self.pods_of(owner, slot).any(|(_, pod)| pod.is_deletion_expected())
    }

    /// An object no longer awaits the deletion of any pod.
    pub fn forget_expected_deletions(&mut self, owner: Kind, slot: Slot) {
        let mut at = self.first_member(self.owned_key(Kind::Pod, owner, slot));
        while let Some(pod) = at {
            at = self.pods.index.after(pod, List::Owned);
            if let Some(head) = self.pods.index.get_mut(pod) {
                head.flags &= !(flag::EXPECTED | flag::VICTIM);
            }
        }
    }

    /// The deletion of a pod will not come, because the request failed. Whether it was awaited.
    pub fn take_expected_deletion(&mut self, pod: Slot) -> bool {
        let Some(entry) = self.pods.index.get_mut(pod) else { return false };
        let expected = entry.flags & flag::EXPECTED != 0;
        entry.flags &= !flag::EXPECTED;
        expected
    }

    /// Marks pods that [`next_victim`](Self::next_victim) is to return.
    pub fn mark_victims(&mut self, pods: impl IntoIterator<Item = impl Borrow<Slot>>) {
        for pod in pods {
            if let Some(entry) = self.pods.index.get_mut(*pod.borrow()) {
                entry.flags |= flag::VICTIM;
            }
        }
    }

    /// A pod of an object that is marked.
    pub fn next_victim(&self, owner: Kind, slot: Slot) -> Option<Slot> {
        let is_marked =
            |pod: &Slot| self.pods.index.get(*pod).is_some_and(|pod| pod.flags & flag::VICTIM != 0);
        self.members_of(Kind::Pod, owner, slot).find(is_marked)
    }

    /// Whether the deletion of a pod has been asked for.
    pub fn is_being_deleted(&self, pod: Slot) -> bool {
        let flags = self.pods.get(pod).map_or(0, |pod| pod.flags);
        flags & (flag::EXPECTED | flag::VICTIM) == flag::EXPECTED
    }

    /// Takes the mark of a pod away.
    pub fn unmark_victim(&mut self, pod: Slot) {
        if let Some(entry) = self.pods.index.get_mut(pod) {
            entry.flags &= !flag::VICTIM;
        }
    }

    /// Remembers whether an object's blindness was told of; returns what was remembered.
    pub fn tell_blind(&mut self, kind: Kind, slot: Slot, told: bool) -> bool {
        let Some(head) = self.split(kind).0.get_mut(slot) else { return false };
        let before = head.flags & flag::TOLD != 0;
        head.flags = if told { head.flags | flag::TOLD } else { head.flags & !flag::TOLD };
        before
    }

    pub(super) fn first_in_namespace(&self, kind: Kind, namespace: &str) -> Link {
        let namespace = self.texts.find(namespace.as_bytes())?;
        self.first_member(Some(namespace_key(kind, Role::IN_NAMESPACE, namespace)))
    }

    fn members(
        &self,
        kind: Kind,
        list: List,
        key: Option<GroupKey>,
    ) -> impl Iterator<Item = Slot> + Clone {
        let index = self.index(kind);
        core::iter::successors(self.first_member(key), move |slot| index.after(*slot, list))
    }

    fn first_member(&self, key: Option<GroupKey>) -> Link {
        let group = self.groups.find(self.texts, &key?)?;
        self.groups.get(group)?.first()
    }
}
