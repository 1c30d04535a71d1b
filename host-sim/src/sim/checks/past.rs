//! What there was, version by version, and what of it a controller may have known.
//!
//! Controllers act on what they have been told, and what they ask for takes time. So a request is
//! right if what it was decided on *may have been so, as far as its controller could know*. With
//! `K(c, k, t)` the version up to which controller `c` has been told of kind `k` at moment `t`, and
//! `R(t)` the server's newest version then: a request that left at `s`, of a sync whose first
//! request left at `b`, is right if each object has had a version in `[K(c, k, b), R(s)]` for which
//! the rule holds. Each of its own, since a cache takes up answers before the watch tells of them,
//! and lists one object after the other. All versions are the server's real ones; nothing of this
//! is asked of the controller.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use picokube_core::kind::Kind;

use crate::time::Timestamp;

use super::super::device::Told;
use super::Facts;

/// All versions that objects have had.
#[derive(Debug, Default)]
pub(in crate::sim) struct Past(BTreeMap<(&'static str, String), Vec<Version>>);

type Version = (u64, Option<Rc<Facts>>);

/// What a request may have been decided on.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Basis {
    /// How far the controller had been told when it decided, by kind.
    pub(super) told: Told,
    /// The server's newest version when the request left.
    pub(super) until: u64,
    /// The latest that the controller may have taken the time to be.
    pub(super) wall: Timestamp,
    /// The pods whose deletion was asked for just before, in the same sync.
    pub(super) deleted: Vec<String>,
    /// The pods that the controller had deleted, and that were there again by what it was told since: see
    /// [`own`](super::own).
    pub(super) there_again: BTreeSet<String>,
    /// The version of its object that an answer had told of.
    pub(super) answered: u64,
    /// How far the controller had been told a while before: see [`Bases`](super::bases::Bases).
    pub(super) lately: Told,
}

/// What a controller may have known.
#[derive(Clone, Copy)]
pub(super) struct View<'v> {
    pub(super) past: &'v Past,
    pub(super) basis: &'v Basis,
    told: Told,
}

impl Past {
    pub(super) fn add(
        &mut self,
        plural: &'static str,
        key: &str,
        version: u64,
        facts: Option<Rc<Facts>>,
    ) {
        self.0.entry((plural, key.to_owned())).or_default().push((version, facts));
    }

    /// Whether there ever was such an object.
    pub(super) fn has_been(&self, plural: &'static str, key: &str) -> bool {
        self.0.contains_key(&(plural, key.to_owned()))
    }

    /// Whether there ever was an object like that under a key.
    pub(in crate::sim) fn ever(
        &self,
        plural: &'static str,
        key: &str,
        is: impl Fn(&Facts) -> bool,
    ) -> bool {
        let all = self.0.get(&(plural, key.to_owned())).into_iter().flatten();
        all.filter_map(|(_, facts)| facts.as_deref()).any(is)
    }

    /// Whether an object is gone, and another one was not like that when it went.
    pub(in crate::sim) fn gone_while_not(
        &self,
        (plural, key): (&'static str, &str),
        other: &Facts,
        is: impl Fn(&Facts) -> bool,
    ) -> bool {
        let all = self.0.get(&(plural, key.to_owned()));
        let Some((at, None)) = all.and_then(|all| all.last()) else { return false };
        let mut then = self.versions(other.plural, &other.key, (*at, *at));
        !then.any(|it| it.is_some_and(|it| it.uid == other.uid && is(it)))
    }

    /// Whether an object belonged to somebody else, or to nobody, when it was created.
    pub(in crate::sim) fn was_anothers(&self, object: &Facts) -> bool {
        let all = self.0.get(&(object.plural, object.key.clone())).into_iter().flatten();
        let mut versions = all.filter_map(|(_, facts)| facts.as_deref());
        let first = versions.find(|it| it.uid == object.uid);
        first.is_some_and(|first| first.controller != object.controller)
    }

    /// What kubelets have said about the pod that has this key now, the oldest first.
    pub(in crate::sim) fn reports(&self, key: &str) -> Vec<serde_json::Value> {
        let all = self.0.get(&("pods", key.to_owned())).map_or(&[][..], |all| all.as_slice());
        let versions = all.iter().rev().map_while(|(_, facts)| facts.as_ref());
        let statuses = versions.map(|facts| &facts.object["status"]);
        let mut told: Vec<_> =
            statuses.filter(|it| it["containerStatuses"].is_array()).cloned().collect();
        told.dedup();
        told.reverse();
        told
    }

    /// The keys of all objects of a resource that there ever were in a namespace.
    pub(super) fn keys<'a>(
        &'a self,
        plural: &'static str,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        let from = (plural, format!("{namespace}/"));
        let all = self.0.range(from..).map(|((of, key), _)| (*of, key.as_str()));
        let is_in = move |(of, key): &(&str, &str)| {
            *of == plural && key.split('/').next() == Some(namespace)
        };
        all.take_while(is_in).map(|(_, key)| key)
    }

    /// The versions of an object within a stretch, and the one at its beginning.
    pub(super) fn versions<'a>(
        &'a self,
        plural: &'static str,
        key: &str,
        (from, until): (u64, u64),
    ) -> impl Iterator<Item = Option<&'a Facts>> + use<'a> {
        let all = self.0.get(&(plural, key.to_owned())).map_or(&[][..], |all| all.as_slice());
        let after = all.partition_point(|(version, _)| *version <= from);
        let first = after.checked_sub(1).and_then(|at| all[at].1.as_deref());
        let later = all[after..].iter().take_while(move |(version, _)| *version <= until);
        [first].into_iter().chain(later.map(|(_, facts)| facts.as_deref()))
    }
}

impl Basis {
    /// All that nobody can rule out who does not ask the controller: each object may have been as it
    /// ever was until this version, and the time at most this.
    pub(in crate::sim) fn of_anything(until: u64, wall: Timestamp) -> Self {
        let (told, lately) = (Told::default(), Told::default());
        let (deleted, there_again) = (Vec::new(), BTreeSet::new());
        Self { told, until, wall, deleted, there_again, answered: 0, lately }
    }

    /// How far the controller had been told of a resource a while ago.
    pub(super) fn lately_of(&self, plural: &str) -> u64 {
        self.lately.of(kind(plural))
    }
}

fn kind(plural: &str) -> Kind {
    match plural {
        "pods" => Kind::Pod,
        "replicasets" => Kind::ReplicaSet,
        "deployments" => Kind::Deployment,
        "statefulsets" => Kind::StatefulSet,
        "controllerrevisions" => Kind::ControllerRevision,
        "replicationcontrollers" => Kind::ReplicationController,
        _ => Kind::PersistentVolumeClaim,
    }
}

impl<'v> View<'v> {
    pub(super) fn new(past: &'v Past, basis: &'v Basis) -> Self {
        Self { past, basis, told: basis.told }
    }

    /// What it may have known at any moment of the last while.
    pub(super) fn lately(self) -> Self {
        Self { told: self.basis.lately, ..self }
    }

    /// What an object may have been, as far as the controller could know; nothing where it may not
    /// have been there.
    pub(super) fn versions(
        self,
        plural: &'static str,
        key: &str,
    ) -> impl Iterator<Item = Option<&'v Facts>> + use<'v> {
        let kind = kind(plural);
        self.past.versions(plural, key, (self.told.of(kind), self.basis.until))
    }

    /// Whether an object may have been like that.
    pub(super) fn may_be(
        self,
        plural: &'static str,
        key: &str,
        is: impl Fn(&Facts) -> bool,
    ) -> bool {
        self.versions(plural, key).flatten().any(is)
    }

    /// Whether an object was like that for sure.
    pub(super) fn must_be(
        self,
        plural: &'static str,
        key: &str,
        is: impl Fn(&Facts) -> bool,
    ) -> bool {
        self.versions(plural, key).all(|version| version.is_some_and(&is))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_begins_with_what_there_was() {
        let mut past = Past::default();
        let facts = |uid: &str| Some(Rc::new(Facts { uid: uid.to_owned(), ..Facts::default() }));
        for (version, uid) in [(5, Some("a")), (8, Some("b")), (9, None), (12, Some("c"))] {
            past.add("pods", "default/s0-0", version, uid.and_then(facts));
        }
        let seen = |from, until| -> Vec<String> {
            let versions = past.versions("pods", "default/s0-0", (from, until));
            versions.map(|it| it.map_or("-".to_owned(), |it| it.uid.clone())).collect()
        };
        assert_eq!(seen(0, 4), ["-"]);
        assert_eq!(seen(0, 8), ["-", "a", "b"]);
        assert_eq!(seen(5, 8), ["a", "b"]);
        assert_eq!(seen(8, 11), ["b", "-"]);
        assert_eq!(seen(20, 20), ["c"]);
        assert_eq!(past.keys("pods", "default").count(), 1);
        assert_eq!(past.keys("pods", "defaul").count(), 0);
    }
}
