//! Honest when full: who cannot be decided on because objects of theirs did not fit.

use crate::link::{Link, Slot};
use crate::text::Labels;
use crate::wire::{Fault, Field, Meta, ObjectFault};

use super::Cache;
use super::apply::{namespace_key, obtain_group};
use super::cache::Kind;
use super::change::{Owner, Refusal, RefusalReason};
use super::groups::{List, Role};
use super::table::flag;

impl Cache<'_> {
    /// Whether objects of this kind that belong to `owner` are missing from the cache: pods of a
    /// ReplicaSet, ReplicaSets of a Deployment.
    ///
    /// A blind owner gets no creates and no deletes: a decision on half a view could destroy
    /// work. It sees again after a complete list in which all its objects fit.
    pub fn is_blind(&self, members: Kind, owner: Slot) -> bool {
        self.state.of(members).all_blind
            || self
                .owned_key(members, owner)
                .and_then(|key| self.groups.find(self.texts, &key))
                .and_then(|group| self.groups.get(group))
                .is_some_and(|group| group.is_blind())
    }

    /// Refusals of objects of a kind since its last complete list.
    pub fn refused(&self, kind: Kind) -> u32 {
        self.state.of(kind).refused
    }

    /// Whether nobody knows whose objects are missing, so that every owner is blind.
    pub fn is_everyone_blind(&self, members: Kind) -> bool {
        self.state.of(members).all_blind
    }

    /// Whether a relist may pick up objects that were refused. Says so once per cause.
    pub fn take_relist_wish(&mut self, kind: Kind) -> bool {
        core::mem::take(&mut self.state.of_mut(kind).room)
    }

    /// An object cannot be used because of one of its fields: as if it did not fit.
    ///
    /// When it is not known whose it is, nobody in its namespace may decide; when not even that is
    /// known, nobody at all.
    pub fn refuse_faulty(&mut self, kind: Kind, fault: &ObjectFault<'_>) -> Refusal {
        let meta = fault.meta;
        match fault.fault.field {
            Field::Namespace | Field::Metadata => self.blind_everyone(kind),
            Field::OwnerReference
            | Field::OwnerKind
            | Field::OwnerName
            | Field::OwnerUid
            | Field::OwnerController => self.blind_namespace(kind, &meta.namespace),
            // Too many of them may match, and are known to be too many.
            Field::Labels if fault.fault.fault != Fault::TooMany => {
                self.blind_namespace(kind, &meta.namespace);
            }
            _ => {}
        }
        let reason = RefusalReason::Faulty;
        match kind {
            Kind::Pod => {
                let old = self.pods.find(self.texts, &meta.namespace, &meta.name);
                let owner = old.map_or(Owner::None, |slot| self.owner_of_pod(slot));
                self.refuse_pod(meta, old, owner, reason)
            }
            Kind::ReplicaSet => {
                let old = self.replica_sets.find(self.texts, &meta.namespace, &meta.name);
                let owner = old.map_or(Owner::None, |slot| self.owner_of_replica_set(slot));
                self.refuse_replica_set(meta, old, owner, reason)
            }
            Kind::Deployment => {
                let old = self.deployments.find(self.texts, &meta.namespace, &meta.name);
                self.refuse_deployment(old, reason)
            }
        }
    }

    pub(super) fn refuse_pod(
        &mut self,
        meta: &Meta,
        old: Link,
        old_owner: Owner,
        reason: RefusalReason,
    ) -> Refusal {
        self.count_refusal(Kind::Pod);
        if let Some(entry) = old.and_then(|slot| self.pods.get_mut(slot)) {
            entry.flags |= flag::STALE | flag::SEEN;
        }
        self.blind_owner_of(
            Kind::Pod,
            old.and_then(|slot| self.pods.get(slot).and_then(|pod| pod.owned_group())),
        );
        let owner = self.blind_named_owner(Kind::Pod, meta);
        if meta.controller.is_none() {
            // An orphan is the business of those who would adopt it.
            self.blind_owners(Kind::Pod, &meta.namespace, Some(&meta.labels));
        }
        Refusal { reason, owner: if owner == Owner::None { old_owner } else { owner } }
    }

    pub(super) fn refuse_replica_set(
        &mut self,
        meta: &Meta,
        old: Link,
        old_owner: Owner,
        reason: RefusalReason,
    ) -> Refusal {
        self.count_refusal(Kind::ReplicaSet);
        if let Some(entry) = old.and_then(|slot| self.replica_sets.get_mut(slot)) {
            entry.flags |= flag::STALE | flag::SEEN;
        }
        self.blind_owner_of(
            Kind::ReplicaSet,
            old.and_then(|slot| self.replica_sets.get(slot).and_then(|rs| rs.owned_group())),
        );
        let owner = self.blind_named_owner(Kind::ReplicaSet, meta);
        if meta.controller.is_none() {
            self.blind_owners(Kind::ReplicaSet, &meta.namespace, Some(&meta.labels));
        }
        Refusal { reason, owner: if owner == Owner::None { old_owner } else { owner } }
    }

    pub(super) fn refuse_deployment(&mut self, old: Link, reason: RefusalReason) -> Refusal {
        self.count_refusal(Kind::Deployment);
        if let Some(entry) = old.and_then(|slot| self.deployments.get_mut(slot)) {
            entry.flags |= flag::STALE | flag::SEEN;
        }
        Refusal { reason, owner: Owner::None }
    }

    /// An owner that comes while orphans of its namespace are missing might be about to adopt
    /// them.
    pub(super) fn inherit_blindness(&mut self, members: Kind, owner: Slot) {
        let orphans = self.owned_key(members, owner).and_then(|key| {
            let key = namespace_key(members, Role::Orphans, key.namespace);
            self.groups.get(self.groups.find(self.texts, &key)?)
        });
        if orphans.is_some_and(|group| group.is_blind()) {
            self.blind(members, owner);
        }
    }

    fn count_refusal(&mut self, kind: Kind) {
        let shortage = self.state.of_mut(kind);
        shortage.refused = shortage.refused.saturating_add(1);
        shortage.refused_anew = shortage.refused_anew.saturating_add(1);
    }

    fn blind_everyone(&mut self, members: Kind) {
        let shortage = self.state.of_mut(members);
        shortage.all_blind = true;
        shortage.all_blind_anew = true;
    }

    /// Blinds all owners in a namespace, and those that come.
    fn blind_namespace(&mut self, members: Kind, namespace: &str) {
        self.blind_owners(members, namespace, None);
        let orphans = self.texts.intern(namespace.as_bytes()).map_err(Into::into);
        let group = orphans.and_then(|namespace| {
            let key = namespace_key(members, Role::Orphans, namespace);
            let group = self.groups.obtain(self.texts, &key);
            self.texts.release(namespace);
            group
        });
        match group {
            Ok(group) => self.groups.blind(group),
            Err(_) => self.blind_everyone(members),
        }
    }

    /// Blinds the owners in a namespace that may select these labels, or all of them.
    fn blind_owners(&mut self, members: Kind, namespace: &str, labels: Option<&Labels>) {
        let owners = match members {
            Kind::Pod => Kind::ReplicaSet,
            Kind::ReplicaSet => Kind::Deployment,
            Kind::Deployment => return,
        };
        let mut at = self.first_in_namespace(owners, namespace);
        while let Some(owner) = at {
            let found = match owners {
                Kind::ReplicaSet => {
                    let found = self.replica_sets.get(owner);
                    found.map(|rs| (rs.record.selector, rs.after(List::InNamespace)))
                }
                Kind::Deployment => {
                    let found = self.deployments.get(owner);
                    found.map(|d| (d.record.selector, d.after(List::InNamespace)))
                }
                Kind::Pod => None,
            };
            let Some((selector, next)) = found else { return };
            at = next;
            if labels.is_none_or(|labels| selector.may_match(self.texts, labels)) {
                self.blind(members, owner);
            }
        }
    }

    /// Blinds the controller that an object's reference names, cached or not; for an orphan, the
    /// orphans of its namespace are marked instead.
    fn blind_named_owner(&mut self, members: Kind, meta: &Meta) -> Owner {
        match obtain_group(self.groups, self.texts, members, meta) {
            Ok(group) => {
                self.groups.blind(group);
                self.resolve(Some(group))
            }
            Err(_) => {
                self.blind_everyone(members);
                Owner::Unresolved
            }
        }
    }

    fn blind_owner_of(&mut self, members: Kind, group: Link) {
        let role = group.and_then(|group| self.groups.get(group)).map(|group| group.key());
        if let (Some(group), Some(key)) = (group, role)
            && key.members == members
            && key.role.is_owned()
        {
            self.groups.blind(group);
        }
    }

    fn blind(&mut self, members: Kind, owner: Slot) {
        let obtained = match self.owned_key(members, owner) {
            Some(key) => self.groups.obtain(self.texts, &key),
            None => return,
        };
        match obtained {
            Ok(group) => self.groups.blind(group),
            Err(_) => self.blind_everyone(members),
        }
    }
}
