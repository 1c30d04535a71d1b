//! The claims of a StatefulSet's pods, as the cache has them.

use core::fmt::Write;

use heapless::String;

use crate::event::write_text;
use crate::kind::Kind;
use crate::limits::{self, ObjectName};
use crate::link::Slot;
use crate::store::{Cache, Entry, PersistentVolumeClaim, Record, StatefulSet};
use crate::text::Name;

use super::identity::{ClaimName, PodName};
use super::retention::{self, Owners, Verdict, retain};
use super::view::Claims;

/// A StatefulSet, and what its pods and claims are called.
pub(super) struct SetClaims<'c, 'a> {
    cache: &'c Cache<'a>,
    set: Entry<'c, StatefulSet>,
    name: ObjectName,
    templates: String<{ limits::CLAIM_TEMPLATES }>,
}

/// A claim that is there.
pub(super) type Claim<'c> = (Slot, Entry<'c, PersistentVolumeClaim>);

impl<'c, 'a> SetClaims<'c, 'a> {
    pub(super) fn of(cache: &'c Cache<'a>, key: Slot) -> Option<Self> {
        let set = cache.stateful_sets.get(key)?;
        let mut templates = String::new();
        write_text(&mut templates, cache.texts, set.record.claim_templates).ok()?;
        Some(Self { cache, set, name: set.name().to_object_name(cache.texts), templates })
    }

    /// The names of the claim templates, in their order.
    pub(super) fn templates(&self) -> impl Iterator<Item = &str> {
        self.templates.split(',').filter(|name| !name.is_empty())
    }

    /// The name of the StatefulSet.
    pub(super) fn set_name(&self) -> &ObjectName {
        &self.name
    }

    /// The name of the pod of an ordinal; one that is too long is cut, and refused by the server.
    pub(super) fn pod_name(&self, ordinal: i32) -> ObjectName {
        written(PodName { set: &self.name, ordinal })
    }

    /// The name of a claim.
    pub(super) fn claim_name(&self, template: &str, ordinal: i32) -> ObjectName {
        written(ClaimName { template, set: &self.name, ordinal })
    }

    /// The cached pod of an ordinal, whoever it belongs to.
    pub(super) fn pod(&self, ordinal: i32) -> Option<Slot> {
        let name = Name::find_split(self.cache.texts, &self.pod_name(ordinal))?;
        self.cache.find_name(Kind::Pod, self.set.namespace(), name)
    }

    /// A claim, if it is there.
    pub(super) fn find(&self, template: &str, ordinal: i32) -> Option<Claim<'c>> {
        let name = Name::find_split(self.cache.texts, &self.claim_name(template, ordinal))?;
        let kind = Kind::PersistentVolumeClaim;
        let slot = self.cache.find_name(kind, self.set.namespace(), name)?;
        Some((slot, self.cache.persistent_volume_claims.get(slot)?))
    }

    /// What the retention policy says about a claim.
    pub(super) fn verdict(&self, claim: &Claim<'_>, ordinal: i32, is_condemned: bool) -> Verdict {
        retain(self.set.record.retention(), self.owners(claim, ordinal), is_condemned)
    }

    fn owners(&self, (_, claim): &Claim<'_>, ordinal: i32) -> Owners {
        let name = self.pod_name(ordinal);
        let head = self.pod(ordinal).and_then(|pod| self.cache.head(Kind::Pod, pod));
        let pod = head.map(|head| (name.as_str(), head.uid()));
        claim.record.owners((&self.name, self.set.uid()), pod, &name)
    }

    fn found(&self, ordinal: i32) -> impl Iterator<Item = Claim<'c>> {
        self.templates().filter_map(move |template| self.find(template, ordinal))
    }
}

impl Claims for SetClaims<'_, '_> {
    fn is_stale(&self, ordinal: i32) -> bool {
        let policy = self.set.record.retention();
        self.found(ordinal).any(|claim| retention::is_stale(policy, self.owners(&claim, ordinal)))
    }

    fn are_right(&self, ordinal: i32, is_condemned: bool) -> bool {
        self.found(ordinal).all(|claim| self.verdict(&claim, ordinal, is_condemned).is_right())
    }

    fn are_missing(&self, ordinal: i32) -> bool {
        self.templates().any(|template| {
            self.find(template, ordinal).is_none_or(|(_, claim)| claim.record.is_deleting())
        })
    }
}

fn written(name: impl core::fmt::Display) -> ObjectName {
    let mut out = ObjectName::new();
    // A name that is too long is cut; the server would refuse it, too.
    let _ = write!(out, "{name}");
    out
}
