//! Honest when full: who cannot be decided on because objects of theirs did not fit.

use crate::kind::{Kind, OwnerKind};
use crate::link::{Link, Slot};
use crate::text::Labels;
use crate::wire::{Fault, Field, Meta, ObjectFault};

use super::Cache;
use super::apply::{namespace_key, obtain_group};
use super::change::{Owner, Refusal, RefusalReason};
use super::groups::{List, Role};
use super::index::{Head, flag};

impl Cache<'_> {
    /// Whether objects that belong to this one are missing from the cache, and of which kind: pods
    /// of a ReplicaSet, ReplicaSets of a Deployment.
    ///
    /// A blind owner gets no creates and no deletes: a decision on half a view could destroy
    /// work. It sees again after a complete list in which all its objects fit.
    pub fn blind_to(&self, kind: Kind, owner: Slot) -> Option<Kind> {
        let is_missing = |members: &Kind| {
            let group = || self.groups.find(self.texts, &self.owned_key(*members, kind, owner)?);
            self.is_everyone_blind(*members)
                || group().and_then(|at| self.groups.get(at)).is_some_and(|group| group.is_blind())
        };
        kind.members().find(is_missing)
    }

    /// Whether objects that belong to this one are missing from the cache.
    pub fn is_blind(&self, kind: Kind, owner: Slot) -> bool {
        self.blind_to(kind, owner).is_some()
    }

    /// Refusals of objects of a kind since its last complete list.
    pub fn refused(&self, kind: Kind) -> u32 {
        self.index(kind).state.shortage.refused
    }

    /// Whether nobody knows whose objects are missing, so that every owner is blind.
    pub fn is_everyone_blind(&self, members: Kind) -> bool {
        self.index(members).state.shortage.all_blind
    }

    /// Whether a relist may pick up objects that were refused. Says so once per cause.
    pub fn take_relist_wish(&mut self, kind: Kind) -> bool {
        core::mem::take(&mut self.split(kind).0.state.shortage.room)
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
        let old = self.find(kind, &meta.namespace, &meta.name);
        let owner = old.map_or(Owner::None, |slot| self.owner_of(kind, slot));
        self.refuse(kind, meta, old, owner, RefusalReason::Faulty(fault.fault))
    }

    pub(super) fn refuse(
        &mut self,
        kind: Kind,
        meta: &Meta,
        old: Link,
        old_owner: Owner,
        reason: RefusalReason,
    ) -> Refusal {
        let (index, ..) = self.split(kind);
        let shortage = &mut index.state.shortage;
        shortage.refused = shortage.refused.saturating_add(1);
        shortage.refused_anew = shortage.refused_anew.saturating_add(1);
        if let Some(head) = old.and_then(|slot| index.get_mut(slot)) {
            head.flags |= flag::STALE | flag::SEEN;
        }
        if kind.info().owners.is_empty() {
            return Refusal { reason, owner: Owner::None };
        }
        self.blind_owner_of(old.and_then(|slot| self.head(kind, slot)?.owned_group()));
        let named = self.blind_named_owner(kind, meta);
        // An orphan is the business of those who would adopt it. So is a claim that goes with its pod: it
        // comes back to whoever the pod is of.
        let goes_with_pod = cfg!(feature = "statefulset")
            && meta.controller.as_ref().is_some_and(|it| it.kind == OwnerKind::Pod);
        let is_orphan = meta.controller.is_none() || goes_with_pod;
        let adopter = match is_orphan {
            true => self.blind_owners(kind, &meta.namespace, Some(&meta.labels)),
            false => Owner::None,
        };
        let is_cached = |owner: &Owner| matches!(owner, Owner::Resolved(..));
        let owner = [named, old_owner, adopter].into_iter().find(is_cached);
        Refusal { reason, owner: owner.unwrap_or(named) }
    }

    /// An owner that comes while orphans of its namespace are missing might be about to adopt
    /// them.
    pub(super) fn inherit_blindness(&mut self, kind: Kind, owner: Slot) {
        for members in kind.members() {
            let namespace = self.head(kind, owner).map(Head::namespace);
            let orphans = namespace.and_then(|namespace| {
                let key = namespace_key(members, Role::ORPHANS, namespace);
                self.groups.get(self.groups.find(self.texts, &key)?)
            });
            if orphans.is_some_and(|group| group.is_blind()) {
                self.blind(members, kind, owner);
            }
        }
    }

    fn blind_everyone(&mut self, members: Kind) {
        let shortage = &mut self.split(members).0.state.shortage;
        shortage.all_blind = true;
        shortage.all_blind_anew = true;
    }

    /// Blinds all owners in a namespace, and those that come.
    fn blind_namespace(&mut self, members: Kind, namespace: &str) {
        self.blind_owners(members, namespace, None);
        let orphans = self.texts.intern(namespace.as_bytes()).map_err(Into::into);
        let group = orphans.and_then(|namespace| {
            let key = namespace_key(members, Role::ORPHANS, namespace);
            let group = self.groups.obtain(self.texts, &key);
            self.texts.release(namespace);
            group
        });
        match group {
            Ok(group) => self.groups.blind(group),
            Err(_) => self.blind_everyone(members),
        }
    }

    /// Blinds the owners in a namespace that may select these labels, or all of them. The first of them.
    fn blind_owners(&mut self, members: Kind, namespace: &str, labels: Option<&Labels>) -> Owner {
        let mut first = Owner::None;
        for kind in members.info().owners {
            let mut at = self.first_in_namespace(*kind, namespace);
            while let Some(owner) = at {
                at = self.index(*kind).after(owner, List::InNamespace);
                let selector = self.record(*kind, owner).and_then(|record| record.selector());
                let may_match =
                    |labels| selector.is_some_and(|it| it.may_match(self.texts, labels));
                if labels.is_none_or(may_match) {
                    self.blind(members, *kind, owner);
                    if first == Owner::None {
                        first = Owner::Resolved(*kind, owner);
                    }
                }
            }
        }
        first
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

    fn blind_owner_of(&mut self, group: Link) {
        let role = group.and_then(|group| self.groups.get(group)).map(|group| group.key().role);
        if let (Some(group), Some(role)) = (group, role)
            && role.is_owned()
        {
            self.groups.blind(group);
        }
    }

    fn blind(&mut self, members: Kind, kind: Kind, owner: Slot) {
        let obtained = match self.owned_key(members, kind, owner) {
            Some(key) => self.groups.obtain(self.texts, &key),
            None => return,
        };
        match obtained {
            Ok(group) => self.groups.blind(group),
            Err(_) => self.blind_everyone(members),
        }
    }
}
