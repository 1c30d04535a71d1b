//! What a ReplicaSet's worker does next.

use crate::control::{
    Candidate, Claim, Claimer, MayAdopt, Rank, SlowStart, claim, deletion_order, is_available,
    next_availability,
};
use crate::event::Message;
use crate::link::Slot;
use crate::manager::Context;
use crate::planted::Bug::{self, AdoptsUnselected, NeverReleases};
use crate::planted::planted;
use crate::sort::heap_sort;
use crate::store::{Entry, Kind, Pod, Record, ReplicaSet};
use crate::time::Duration;

use super::manage::{Manage, manage};
use super::status::{Count, FAILED_CREATE, FAILED_DELETE, FailureWrite, Stored, needs_write};
use super::worker::{Outcome, Phase, Want, Worker};

/// A pod while pods are ranked.
#[derive(Clone, Copy, Debug)]
pub struct Ranked {
    pod: Option<Slot>,
    /// How many of its kind share its node.
    colocated: u16,
    /// Its place among the owner's pods, the newest first.
    place: u16,
}

impl Ranked {
    /// No pod.
    pub const NONE: Self = Self { pod: None, colocated: 0, place: 0 };
}

/// How long to wait for the watch after a creation of which nobody knows whether it succeeded.
const AMBIGUOUS: Duration = Duration::from_secs(1);

/// Whether counts tell that all is as it should be, which somebody may wait for: nothing that is under way
/// will change them soon. Pods that are on their way out do not matter to anybody who waits.
fn completes(stored: &Count, count: &Count, wanted: i32) -> bool {
    let is_news = Count { terminating: stored.terminating, ..*count } != *stored;
    is_news && count.replicas == wanted && count.available == wanted
}

/// The longest that a status waits for the Deployment.
const OWNER_PATIENCE: Duration = Duration::from_secs(1);

/// For how long a decision is carried out whatever is wanted meanwhile.
const DECISION_HOLDS: Duration = Duration::from_secs(30);

impl Worker {
    /// The next request of this sync; `None` while it waits for answers or when it has ended.
    pub(crate) fn want(&mut self, context: &mut Context<'_, '_>) -> Option<Want> {
        let key = self.key?;
        loop {
            let is_there =
                context.cache.replica_sets.get(key).is_some_and(|rs| rs.uid() == self.uid);
            if !is_there {
                self.phase = Phase::Ending;
            }
            match self.phase {
                Phase::Idle => return None,
                Phase::Claim if self.open > 0 => return None,
                Phase::Claim if !has_valid_selector(context, key) => self.phase = Phase::Ending,
                Phase::Claim => match self.next_claim(context, key) {
                    Some(want) => return Some(want),
                    // All that could be claimed is. What could not makes numbers wrong.
                    None if self.outcome != Outcome::Good => self.phase = Phase::Ending,
                    None => self.manage(context, key),
                },
                Phase::Create if self.creations.is_over() => {
                    (0..self.creations.skipped())
                        .for_each(|_| context.expectations.creation_observed(key));
                    self.phase = Phase::Status;
                }
                Phase::Create if self.has_enough(context, key) => {
                    self.creations.stop();
                    if !self.creations.is_over() {
                        return None;
                    }
                }
                Phase::Create => return self.creations.can_begin().then_some(Want::Create),
                Phase::Delete if self.has_no_surplus(context, key) => {
                    while let Some(pod) = context.cache.next_victim(key) {
                        context.cache.unmark_victim(pod);
                        if context.cache.take_expected_deletion(pod) {
                            context.expectations.deletion_observed(key);
                        }
                    }
                    if self.open > 0 {
                        return None;
                    }
                    self.phase = Phase::Status;
                }
                Phase::Delete => match context.cache.next_victim(key) {
                    Some(pod) => return Some(Want::Delete(pod)),
                    None if self.open > 0 => return None,
                    None => self.phase = Phase::Status,
                },
                Phase::Status if self.open > 0 => return None,
                Phase::Status => {
                    if self.waits_for_owner(context, key) {
                        return None;
                    }
                    if self.wants_status(context, key) {
                        return Some(Want::Status);
                    }
                    self.phase = Phase::Ending;
                }
                Phase::Ending => {
                    if self.open == 0 {
                        self.end(context, key);
                    }
                    return None;
                }
            }
        }
    }

    /// Whether the status waits for what the Deployment at work makes of the ReplicaSet: that may be
    /// something else to tell. It does not wait for a Deployment that is itself kept waiting.
    fn waits_for_owner(&mut self, context: &Context<'_, '_>, key: Slot) -> bool {
        if !context.owner_is_at_work(key) {
            return false;
        }
        let until = *self.owner_until.get_or_insert(context.now + OWNER_PATIENCE);
        context.now < until
    }

    /// The next pod to adopt or release.
    fn next_claim(&mut self, context: &mut Context<'_, '_>, key: Slot) -> Option<Want> {
        let rs = context.cache.replica_sets.get(key)?;
        let (selector, namespace) = (rs.record.selector, rs.namespace());
        let claimer = Claimer { deleting: rs.record.is_deleting() };
        let texts = &*context.cache.texts;
        let verdict = |pod: &Entry<Pod>, owned: Option<bool>| {
            let matches = selector.matches(texts, pod.record.labels)
                || planted(if owned.is_none() { AdoptsUnselected } else { NeverReleases });
            claim(claimer, Candidate { owned, matches, deleting: pod.record.is_deleting() })
        };
        let owned = context.cache.pods_of(key).map(|(slot, pod)| (slot, pod, Some(true)));
        let orphans = context.cache.orphan_pods(namespace).map(|(slot, pod)| (slot, pod, None));
        let next = owned
            .chain(orphans)
            .filter(|(slot, pod, _)| slot.index() >= self.cursor && pod.record.is_active())
            .map(|(slot, pod, owned)| (slot, verdict(pod, owned)))
            .filter(|(_, claim)| match claim {
                Claim::Adopt => self.may_adopt != MayAdopt::No,
                Claim::Release => true,
                _ => false,
            })
            .min_by_key(|(slot, _)| *slot)?;
        match next {
            (_, Claim::Adopt)
                if self.may_adopt == MayAdopt::Unknown && !planted(Bug::AdoptsWithoutLook) =>
            {
                Some(Want::Recheck)
            }
            (slot, Claim::Adopt) => Some(Want::Adopt(slot)),
            (slot, _) => Some(Want::Release(slot)),
        }
    }

    /// Counts the pods, then creates or deletes some.
    fn manage(&mut self, context: &mut Context<'_, '_>, key: Slot) {
        let Some(rs) = context.cache.replica_sets.get(key).copied() else { return };
        self.phase = Phase::Status;
        let blind = context.cache.is_blind(Kind::Pod, key);
        if blind != context.cache.tell_blind_replica_set(key, blind) && blind {
            context.record_replica_set(key, Message::Blind(Kind::Pod));
        }
        if blind {
            // Half a view is no ground for numbers either.
            self.phase = Phase::Ending;
            return;
        }
        self.count(context, key, &rs.record);
        if rs.record.is_deleting() {
            return;
        }
        if let Some(expiry) = context.expectations.expire_at(key, context.now)
            && !planted(Bug::NoExpectations)
        {
            context.replica_set_queue.add_after(key, expiry.since(context.now), context.now);
            return;
        }
        let mut claimed = usize::try_from(self.count.replicas).unwrap_or(0);
        if planted(Bug::StaleDelete) {
            claimed = claimed.max(usize::try_from(rs.record.status_replicas).unwrap_or(0));
        }
        self.decided = context.now;
        match manage(claimed, rs.record.replicas) {
            Manage::Nothing => {}
            Manage::Create(_) if rs.record.template_labels.is_empty() => {
                self.failed = Some(FAILED_CREATE);
                self.fail(Outcome::Retry, "unable to create pods, no labels");
            }
            Manage::Create(count) => {
                context.expectations.expect_creations(key, count, context.now);
                self.creations = SlowStart::new(count);
                self.goal = claimed + usize::from(count);
                self.phase = Phase::Create;
            }
            Manage::Delete(count) => {
                context.choose_victims(key, usize::from(count));
                self.goal = claimed.saturating_sub(usize::from(count));
                self.phase = Phase::Delete;
            }
        }
    }

    /// Whether the rest of the creations is no longer wanted: pods have turned up that were not
    /// known when that was decided, or there is no longer room to know them all.
    fn has_enough(&self, context: &Context<'_, '_>, key: Slot) -> bool {
        let enough = || self.wanted_now(context, key).map_or(self.goal, |now| now.min(self.goal));
        // Those under way may be there already: the watch can be faster than the answer.
        self.creations.to_come() > 0
            && (context.cache.is_blind(Kind::Pod, key) || context.claimed(key).count() >= enough())
    }

    /// Whether the rest of the victims is to stay: pods have gone meanwhile.
    fn has_no_surplus(&self, context: &Context<'_, '_>, key: Slot) -> bool {
        let enough = || self.wanted_now(context, key).map_or(self.goal, |now| now.max(self.goal));
        let staying = context.claimed(key).filter(|pod| !context.cache.is_being_deleted(*pod));
        context.cache.next_victim(key).is_some()
            && staying.count() <= enough()
            && !planted(Bug::StaleDelete)
    }

    /// How many pods are wanted, if the decision at hand is so old that this counts. Kubernetes
    /// carries out what it has decided, and the recordings show it; but it does not have to wait
    /// for one of a few connections.
    fn wanted_now(&self, context: &Context<'_, '_>, key: Slot) -> Option<usize> {
        let rs = context.cache.replica_sets.get(key)?;
        let is_old = context.now > self.decided + DECISION_HOLDS;
        is_old.then(|| usize::try_from(rs.record.replicas).unwrap_or(0))
    }

    fn count(&mut self, context: &Context<'_, '_>, key: Slot, rs: &ReplicaSet) {
        let texts = &*context.cache.texts;
        let mut count = Count { observed_generation: rs.generation(), ..Count::default() };
        if planted(Bug::GenerationNotObserved) {
            count.observed_generation = rs.observed_generation();
        }
        let mut terminating = 0;
        for (_, pod) in context.cache.pods_of(key) {
            let pod = &pod.record;
            if !rs.selector.matches(texts, pod.labels) {
                continue;
            }
            terminating += i32::from(pod.is_terminating());
            if !pod.is_active() {
                continue;
            }
            count.replicas += 1;
            count.fully_labeled += i32::from(pod.labels.contains(texts, rs.template_labels));
            count.ready += i32::from(pod.is_ready());
            count.available += i32::from(is_available(pod, rs.min_ready_seconds, context.wall));
        }
        count.terminating = context.settings.terminating_replicas.then_some(terminating);
        self.count = count;
    }

    /// Whether the status is to be written now.
    fn wants_status(&mut self, context: &mut Context<'_, '_>, key: Slot) -> bool {
        let Some(rs) = context.cache.replica_sets.get(key) else { return false };
        let stored = Stored::of(&rs.record);
        self.failure = FailureWrite::after(&stored.failure, self.failed);
        if self.status_tries > 1 || !needs_write(&stored, &self.count, self.failure) {
            return false;
        }
        if rs.record.observed_generation() > self.count.observed_generation {
            // Somebody else has told of a newer generation: that is not taken back.
            self.fail(Outcome::Retry, "");
            return false;
        }
        let pressing = self.failure != FailureWrite::Keep
            || self.status_tries > 0
            || completes(&stored.count, &self.count, rs.record.replicas);
        match context.replica_set_lag_left(key) {
            Some(wait) if !pressing => {
                context.replica_set_queue.add_after(key, wait, context.now);
                false
            }
            _ => true,
        }
    }

    fn end(&mut self, context: &mut Context<'_, '_>, key: Slot) {
        let now = context.now;
        self.key = None;
        self.phase = Phase::Idle;
        let rs = context.cache.replica_sets.get(key).map(|rs| (rs.uid(), rs.record));
        let queue = &mut *context.replica_set_queue;
        match (rs, self.outcome) {
            (None, _) => {}
            (Some(_), Outcome::Retry | Outcome::RetryLater) if planted(Bug::RetryForgotten) => {
                queue.forget(key);
            }
            (Some(_), Outcome::Retry) => queue.add_rate_limited(key, now),
            (Some(_), Outcome::RetryLater) => queue.add_after(key, AMBIGUOUS, now),
            (Some((_, rs)), Outcome::Good) => {
                queue.forget(key);
                let is_coming = self.count.ready != self.count.available
                    && !planted(Bug::AvailabilityForgotten);
                if rs.min_ready_seconds > 0 && is_coming {
                    let pods = context.cache.pods_of(key).map(|(_, pod)| &pod.record);
                    let fallback =
                        Duration::from_secs(u64::from(rs.min_ready_seconds.unsigned_abs()));
                    let wait = next_availability(pods, rs.min_ready_seconds, context.wall);
                    // It is longer only by a wrong clock, which may be put right any moment.
                    queue.add_after(key, wait.unwrap_or(fallback).min(fallback), now);
                }
            }
        }
        queue.done(key);
        if rs.is_none() && queue.retire(key) {
            context.cache.free_replica_set(key);
        }
    }
}

/// Kubernetes looks no further either.
fn has_valid_selector(context: &Context<'_, '_>, key: Slot) -> bool {
    let rs = context.cache.replica_sets.get(key);
    rs.is_some_and(|rs| rs.record.selector.validate().is_ok())
}

impl Context<'_, '_> {
    /// Whether the ReplicaSet's Deployment is in the middle of a sync. A status then waits for its
    /// end, so that the Deployment's own status is of one piece whoever is faster.
    fn owner_is_at_work(&self, key: Slot) -> bool {
        let owner = self.cache.owner_of_replica_set(key).slot();
        owner.is_some() && self.deployment_workers.iter().any(|worker| worker.is_at_work(owner))
    }

    /// The pods of a ReplicaSet that count.
    fn claimed(&self, key: Slot) -> impl Iterator<Item = Slot> {
        let rs = self.cache.replica_sets.get(key);
        let is_claimed = move |pod: &Entry<Pod>| {
            let labels = pod.record.labels;
            let matches = rs.is_some_and(|rs| rs.record.selector.matches(self.cache.texts, labels));
            pod.record.is_active() && matches
        };
        let pods = self.cache.pods_of(key).filter(move |(_, pod)| is_claimed(pod));
        pods.map(|(slot, _)| slot)
    }

    /// Ranks the claimed pods of a ReplicaSet and marks the first `count` for deletion.
    fn choose_victims(&mut self, key: Slot, count: usize) {
        let Some(rs) = self.cache.replica_sets.get(key) else { return };
        let selector = rs.record.selector;
        let mut len = 0;
        for (slot, pod) in self.cache.pods_of(key) {
            let claimed =
                pod.record.is_active() && selector.matches(self.cache.texts, pod.record.labels);
            if claimed && let Some(place) = self.ranking.get_mut(len) {
                *place = Ranked { pod: Some(slot), colocated: 0, place: len as u16 };
                len += 1;
            }
        }
        let ranked = core::mem::take(&mut self.ranking);
        let (claimed, _) = ranked.split_at_mut_checked(len).unwrap_or_default();
        if count < len {
            for place in claimed.iter_mut() {
                place.colocated = self.count_colocated(key, place.pod);
            }
            let wall = self.wall;
            heap_sort(claimed, |a, b| match (self.rank(a), self.rank(b)) {
                // Of equals, the recordings show the one that was seen first to go.
                (Some(x), Some(y)) => deletion_order(&x, &y, wall).then(b.place.cmp(&a.place)),
                _ => core::cmp::Ordering::Equal,
            });
        }
        let victims = || claimed.iter().take(count).filter_map(|place| place.pod);
        let expected = self.cache.expect_deletions(key, victims());
        self.cache.mark_victims(victims());
        self.expectations.expect_deletions(key, expected, self.now);
        self.ranking = ranked;
    }

    fn rank(&self, ranked: &Ranked) -> Option<Rank> {
        let entry = self.cache.pods.get(ranked.pod?)?;
        let pod = &entry.record;
        Some(Rank {
            scheduled: !pod.node.is_empty(),
            phase: pod.phase(),
            ready: pod.is_ready(),
            deletion_cost: pod.deletion_cost,
            colocated: ranked.colocated,
            ready_since: pod.ready_transition,
            restarts: pod.restarts.into(),
            sidecar_restarts: pod.sidecar_restarts.into(),
            created: pod.created,
            uid: entry.uid(),
        })
    }

    /// Active pods of all ReplicaSets with the same controller on the same node. A ReplicaSet
    /// without a controller does not count them.
    fn count_colocated(&self, key: Slot, pod: Option<Slot>) -> u16 {
        let Some(node) = pod.and_then(|pod| Some(self.cache.pods.get(pod)?.record.node)) else {
            return 0;
        };
        let siblings = self.cache.siblings_of(key);
        let pods = siblings.flat_map(|(sibling, _)| self.cache.pods_of(sibling));
        let there = pods.filter(|(_, pod)| pod.record.is_active() && pod.record.node == node);
        u16::try_from(there.count()).unwrap_or(u16::MAX)
    }
}

/// The reason of a failure in this phase.
pub(crate) const fn failure_reason(creating: bool) -> &'static str {
    if creating { FAILED_CREATE } else { FAILED_DELETE }
}
