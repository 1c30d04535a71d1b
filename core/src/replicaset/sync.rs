//! What a ReplicaSet's worker does next.

use crate::control::{
    Activity, ClaimRule, OrderedPod, Purpose, Rank, SlowStart, Write, deletion_order, is_available,
    next_availability,
};
use crate::kind::Kind;
use crate::link::Slot;
use crate::planted::{Bug, planted};
use crate::sort::heap_sort;
use crate::store::ConditionReason;
use crate::store::{Entry, Owner, Pod, Record, ReplicaSet};
use crate::time::Duration;

use super::controller::Sync;
use super::manage::{Manage, manage};
use super::status::{Counts, FailureWrite, StoredStatus, needs_write};
use super::worker::{Outcome, Phase, Worker};

/// How long to wait for the watch after a creation of which nobody knows whether it succeeded.
const AMBIGUOUS: Duration = Duration::from_secs(1);

/// Whether counts tell that all is as it should be, which somebody may wait for: nothing that is under way
/// will change them soon. Pods that are on their way out do not matter to anybody who waits.
fn completes(stored: &Counts, count: &Counts, wanted: i32) -> bool {
    let is_news = Counts { terminating: stored.terminating, ..*count } != *stored;
    is_news && count.replicas == wanted && count.available == wanted
}

/// The longest that a status waits for the Deployment.
const OWNER_PATIENCE: Duration = Duration::from_secs(1);

/// For how long a decision is carried out whatever is wanted meanwhile.
const DECISION_HOLDS: Duration = Duration::from_secs(30);

impl Worker {
    /// The next request of this sync; `None` while it waits for answers or when it has ended.
    pub(super) fn next(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        let key = self.key?;
        let kind = sync.kind();
        loop {
            if sync.get(key).is_none_or(|rs| rs.uid() != self.uid) {
                self.phase = Phase::Ending;
            }
            match self.phase {
                Phase::Idle => return None,
                Phase::Claim if self.open > 0 => return None,
                // Kubernetes looks no further either.
                Phase::Claim if !has_valid_selector(sync, key) => self.phase = Phase::Ending,
                Phase::Claim => {
                    let rule = ClaimRule::new(Kind::Pod, kind);
                    match self.claiming.next(sync.world.cache, &rule, key) {
                        Some(write) => return Some(write),
                        // All that could be claimed is. What could not makes numbers wrong.
                        None if self.outcome != Outcome::Good => self.phase = Phase::Ending,
                        None => self.manage(sync, key),
                    }
                }
                Phase::Create if self.creations.is_over() => {
                    (0..self.creations.skipped())
                        .for_each(|_| sync.expectations.creation_observed(key));
                    self.phase = Phase::Status;
                }
                Phase::Create if self.has_enough(sync, key) => {
                    self.creations.stop();
                    if !self.creations.is_over() {
                        return None;
                    }
                }
                Phase::Create => {
                    let rs = sync.get(key).filter(|_| self.creations.can_begin())?;
                    return Some(Write::create(Purpose::Create, Kind::Pod, key, &rs));
                }
                Phase::Delete if self.has_no_surplus(sync, key) => {
                    let cache = &mut *sync.world.cache;
                    while let Some(pod) = cache.next_victim(kind, key) {
                        cache.unmark_victim(pod);
                        if cache.take_expected_deletion(pod) {
                            sync.expectations.deletion_observed(key);
                        }
                    }
                    if self.open > 0 {
                        return None;
                    }
                    self.phase = Phase::Status;
                }
                Phase::Delete => match sync.world.cache.next_victim(kind, key) {
                    Some(pod) => {
                        let head = sync.world.cache.head(Kind::Pod, pod)?;
                        return Some(Write::delete(Purpose::Delete, Kind::Pod, pod, head));
                    }
                    None if self.open > 0 => return None,
                    None => self.phase = Phase::Status,
                },
                Phase::Status if self.open > 0 => return None,
                Phase::Status => {
                    if self.waits_for_owner(sync, key) {
                        return None;
                    }
                    if self.wants_status(sync, key) {
                        let rs = sync.get(key)?;
                        return Some(Write::status(Purpose::Status, kind, key, &rs));
                    }
                    self.phase = Phase::Ending;
                }
                Phase::Ending => {
                    if self.open == 0 {
                        self.end(sync, key);
                    }
                    return None;
                }
            }
        }
    }

    /// Whether the status waits for what the Deployment at work makes of the ReplicaSet: that may be
    /// something else to tell. It does not wait for a Deployment that is itself kept waiting.
    fn waits_for_owner(&mut self, sync: &Sync<'_, '_, '_>, key: Slot) -> bool {
        if !sync.owner_is_at_work(key) {
            return false;
        }
        let now = sync.world.now;
        now < *self.owner_until.get_or_insert(now + OWNER_PATIENCE)
    }

    /// Counts the pods, then creates or deletes some.
    fn manage(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot) {
        let Some(rs) = sync.get(key).map(|rs| *rs.record) else { return };
        self.phase = Phase::Status;
        if sync.world.is_blind(sync.like.info, key) {
            // Half a view is no ground for numbers either.
            self.phase = Phase::Ending;
            return;
        }
        self.count(sync, key, &rs);
        if rs.is_deleting() {
            return;
        }
        let now = sync.world.now;
        if let Some(expiry) = sync.expectations.expire_at(key, now)
            && !planted(Bug::NoExpectations)
        {
            sync.keys.queue.add_after(key, expiry.since(now), now);
            return;
        }
        let mut claimed = usize::try_from(self.count.replicas).unwrap_or(0);
        if planted(Bug::StaleDelete) {
            claimed = claimed.max(usize::try_from(rs.status_replicas.get()).unwrap_or(0));
        }
        self.decided = now;
        match manage(claimed, rs.replicas) {
            Manage::Nothing => {}
            Manage::Create(_) if rs.template_labels.is_empty() => {
                self.failed = Some(ConditionReason::FailedCreate);
                self.fail(Outcome::Retry, "unable to create pods, no labels");
            }
            Manage::Create(count) => {
                sync.expectations.expect_creations(key, count, now);
                self.creations = SlowStart::new(count);
                self.goal = claimed + usize::from(count);
                self.phase = Phase::Create;
            }
            Manage::Delete(count) => {
                sync.choose_victims(key, usize::from(count));
                self.goal = claimed.saturating_sub(usize::from(count));
                self.phase = Phase::Delete;
            }
        }
    }

    /// Whether the rest of the creations is no longer wanted: pods have turned up that were not
    /// known when that was decided, or there is no longer room to know them all.
    fn has_enough(&self, sync: &Sync<'_, '_, '_>, key: Slot) -> bool {
        let enough = || self.wanted_now(sync, key).map_or(self.goal, |now| now.min(self.goal));
        // Those under way may be there already: the watch can be faster than the answer.
        self.creations.to_come() > 0
            && (sync.world.cache.is_blind(sync.kind(), key)
                || sync.claimed(key).count() >= enough())
    }

    /// Whether the rest of the victims is to stay: pods have gone meanwhile.
    fn has_no_surplus(&self, sync: &Sync<'_, '_, '_>, key: Slot) -> bool {
        let enough = || self.wanted_now(sync, key).map_or(self.goal, |now| now.max(self.goal));
        let cache = &*sync.world.cache;
        let staying = sync.claimed(key).filter(|pod| !cache.is_being_deleted(*pod));
        cache.next_victim(sync.kind(), key).is_some()
            && staying.count() <= enough()
            && !planted(Bug::StaleDelete)
    }

    /// How many pods are wanted, if the decision at hand is so old that this counts. Kubernetes
    /// carries out what it has decided, and the recordings show it; but it does not have to wait
    /// for one of a few connections.
    fn wanted_now(&self, sync: &Sync<'_, '_, '_>, key: Slot) -> Option<usize> {
        let rs = sync.get(key)?;
        let is_old = sync.world.now > self.decided + DECISION_HOLDS;
        is_old.then(|| usize::try_from(rs.record.replicas).unwrap_or(0))
    }

    fn count(&mut self, sync: &Sync<'_, '_, '_>, key: Slot, rs: &ReplicaSet) {
        let cache = &*sync.world.cache;
        let texts = &*cache.texts;
        let mut count = Counts { observed_generation: rs.generation(), ..Counts::default() };
        if planted(Bug::GenerationNotObserved) {
            count.observed_generation = rs.observed_generation();
        }
        let mut terminating = 0;
        for (_, pod) in cache.pods_of(sync.kind(), key) {
            let pod = pod.record;
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
            count.available += i32::from(is_available(pod, rs.min_ready_seconds, sync.world.wall));
        }
        let is_told = sync.like.counts_terminating && sync.world.terminating_replicas;
        count.terminating = is_told.then_some(terminating);
        self.count = count;
    }

    /// Whether the status is to be written now.
    fn wants_status(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot) -> bool {
        let Some(rs) = sync.get(key) else { return false };
        let stored = StoredStatus::of(rs.record);
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
        let (lag, now) = (sync.world.status_lag, sync.world.now);
        match sync.keys.lag_left(key, lag, now) {
            Some(wait) if !pressing => {
                sync.keys.queue.add_after(key, wait, now);
                false
            }
            _ => true,
        }
    }

    fn end(&mut self, sync: &mut Sync<'_, '_, '_>, key: Slot) {
        let now = sync.world.now;
        self.key = None;
        self.phase = Phase::Idle;
        let min_ready_seconds = sync.get(key).map(|rs| rs.record.min_ready_seconds);
        let kind = sync.kind();
        let queue = &mut *sync.keys.queue;
        match (min_ready_seconds, self.outcome) {
            (None, _) => {}
            (Some(_), Outcome::Retry | Outcome::RetryLater) if planted(Bug::RetryForgotten) => {
                queue.forget(key);
            }
            (Some(_), Outcome::Retry) => queue.add_rate_limited(key, now),
            (Some(_), Outcome::RetryLater) => queue.add_after(key, AMBIGUOUS, now),
            (Some(seconds), Outcome::Good) => {
                queue.forget(key);
                let is_coming = self.count.ready != self.count.available
                    && !planted(Bug::AvailabilityForgotten);
                if seconds > 0 && is_coming {
                    let pods = sync.world.cache.pods_of(kind, key);
                    let pods = pods.map(|(_, pod)| pod.record);
                    let fallback = Duration::from_secs(u64::from(seconds.unsigned_abs()));
                    let wait = next_availability(pods, seconds, sync.world.wall);
                    // It is longer only by a wrong clock, which may be put right any moment.
                    queue.add_after(key, wait.unwrap_or(fallback).min(fallback), now);
                }
            }
        }
        sync.keys.end(sync.world.cache, key);
    }
}

fn has_valid_selector(sync: &Sync<'_, '_, '_>, key: Slot) -> bool {
    sync.get(key).is_some_and(|rs| rs.record.selector.validate().is_ok())
}

impl Sync<'_, '_, '_> {
    /// Whether the ReplicaSet's Deployment is in the middle of a sync. A status then waits for its
    /// end, so that the Deployment's own status is of one piece whoever is faster.
    fn owner_is_at_work(&self, key: Slot) -> bool {
        match self.world.cache.owner_of(self.kind(), key) {
            Owner::Resolved(kind, owner) => self.world.peer(kind, owner) == Activity::Begun,
            Owner::None | Owner::Unresolved => false,
        }
    }

    /// The pods of a ReplicaSet that count.
    fn claimed(&self, key: Slot) -> impl Iterator<Item = Slot> {
        let rs = self.get(key);
        let is_claimed = move |pod: &Entry<'_, Pod>| {
            let labels = pod.record.labels;
            let texts = &*self.world.cache.texts;
            pod.record.is_active() && rs.is_some_and(|rs| rs.record.selector.matches(texts, labels))
        };
        let pods = self.world.cache.pods_of(self.kind(), key);
        pods.filter(move |(_, pod)| is_claimed(pod)).map(|(slot, _)| slot)
    }

    /// Ranks the claimed pods of a ReplicaSet and marks the first `count` for deletion.
    fn choose_victims(&mut self, key: Slot, count: usize) {
        let ranking = core::mem::take(&mut self.world.pods);
        let mut len = 0;
        for (slot, place) in self.claimed(key).zip(ranking.iter_mut()) {
            *place = OrderedPod::at(len as i32, slot, 0);
            len += 1;
        }
        let (claimed, _) = ranking.split_at_mut_checked(len).unwrap_or_default();
        if count < len {
            for place in claimed.iter_mut() {
                place.note = self.count_colocated(key, place.slot());
            }
            let wall = self.world.wall;
            heap_sort(claimed, |a, b| match (self.rank(a), self.rank(b)) {
                // Of equals, the recordings show the one that was seen first to go.
                (Some(x), Some(y)) => deletion_order(&x, &y, wall).then(b.place.cmp(&a.place)),
                _ => core::cmp::Ordering::Equal,
            });
        }
        let victims = || claimed.iter().take(count).map(OrderedPod::slot);
        let expected = self.world.cache.expect_deletions(self.kind(), key, victims());
        self.world.cache.mark_victims(victims());
        self.expectations.expect_deletions(key, expected, self.world.now);
        self.world.pods = ranking;
    }

    /// The note is how many of its kind share its node.
    fn rank(&self, ranked: &OrderedPod) -> Option<Rank> {
        let entry = self.world.cache.pods.get(ranked.slot())?;
        let pod = entry.record;
        Some(Rank {
            scheduled: !pod.node.is_empty(),
            phase: pod.phase(),
            ready: pod.is_ready(),
            deletion_cost: pod.deletion_cost,
            colocated: ranked.note,
            ready_since: pod.ready_transition,
            restarts: pod.restarts.into(),
            sidecar_restarts: pod.sidecar_restarts.into(),
            created: pod.created,
            uid: entry.uid(),
        })
    }

    /// Active pods of all ReplicaSets with the same controller on the same node. A ReplicaSet
    /// without a controller does not count them.
    fn count_colocated(&self, key: Slot, pod: Slot) -> u16 {
        let cache = &*self.world.cache;
        let Some(node) = cache.pods.get(pod).map(|pod| pod.record.node) else { return 0 };
        let siblings = cache.siblings_of(self.kind(), key);
        let pods = siblings.flat_map(|sibling| cache.pods_of(self.kind(), sibling));
        let there = pods.filter(|(_, pod)| pod.record.is_active() && pod.record.node == node);
        u16::try_from(there.count()).unwrap_or(u16::MAX)
    }
}
