//! What a ReplicaSet's worker does next.

use crate::control::{
    Activity, ClaimRule, NextClaim, OrderedPod, Outcome, Purpose, Rank, SlowStart, Write,
    deletion_order, is_available,
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
use super::worker::{Phase, Worker};

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
    pub(super) fn next_request(&mut self, sync: &mut Sync<'_, '_, '_>) -> Option<Write> {
        let (key, kind) = (sync.key, sync.keys.kind());
        loop {
            if sync.run.is_void(sync.world.cache, kind) {
                self.phase = Phase::Ending;
            }
            match self.phase {
                Phase::Claim if sync.run.open > 0 => return None,
                // Kubernetes looks no further either.
                Phase::Claim if !has_valid_selector(sync) => self.phase = Phase::Ending,
                Phase::Claim => {
                    let rule = ClaimRule::new(Kind::Pod, kind);
                    match sync.run.next_claim(sync.world.cache, &rule) {
                        NextClaim::Send(write) => return Some(write),
                        NextClaim::Failed => self.phase = Phase::Ending,
                        NextClaim::Done => self.manage(sync),
                    }
                }
                Phase::Create if self.creations.is_over() => {
                    (0..self.creations.skipped())
                        .for_each(|_| sync.shared.expectations.creation_observed(sync.key));
                    self.phase = Phase::Status;
                }
                Phase::Create if self.has_enough(sync) => {
                    self.creations.stop();
                    if !self.creations.is_over() {
                        return None;
                    }
                }
                Phase::Create => {
                    let rs = sync.get().filter(|_| self.creations.can_begin())?;
                    let write = Write::create(Purpose::Create, Kind::Pod, key, &rs);
                    if sync.has_room(&write) {
                        self.creations.begin();
                    }
                    return Some(write);
                }
                Phase::Delete if self.has_no_surplus(sync) => {
                    let cache = &mut *sync.world.cache;
                    while let Some(pod) = cache.next_victim(kind, key) {
                        cache.unmark_victim(pod);
                        if cache.take_expected_deletion(pod) {
                            sync.shared.expectations.deletion_observed(sync.key);
                        }
                    }
                    if sync.run.open > 0 {
                        return None;
                    }
                    self.phase = Phase::Status;
                }
                Phase::Delete => match sync.world.cache.next_victim(kind, key) {
                    Some(pod) => {
                        let head = sync.world.cache.head(Kind::Pod, pod)?;
                        let write = Write::delete(Purpose::Delete, Kind::Pod, pod, head);
                        if sync.has_room(&write) {
                            sync.world.cache.unmark_victim(pod);
                        }
                        return Some(write);
                    }
                    None if sync.run.open > 0 => return None,
                    None => self.phase = Phase::Status,
                },
                Phase::Status if sync.run.open > 0 => return None,
                Phase::Status => {
                    if Self::waits_for_owner(sync) {
                        return None;
                    }
                    if self.wants_status(sync) {
                        let rs = sync.get()?;
                        return Some(Write::status(Purpose::Status, kind, key, &rs));
                    }
                    self.phase = Phase::Ending;
                }
                Phase::Ending => {
                    if sync.run.open == 0 {
                        self.end(sync);
                    }
                    return None;
                }
            }
        }
    }

    /// Whether the status waits for what the Deployment at work makes of the ReplicaSet: that may be
    /// something else to tell. It does not wait for a Deployment that is itself kept waiting.
    fn waits_for_owner(sync: &mut Sync<'_, '_, '_>) -> bool {
        if !sync.owner_is_at_work() {
            return false;
        }
        let now = sync.world.now;
        now < *sync.run.wakes_at.get_or_insert(now + OWNER_PATIENCE)
    }

    /// Counts the pods, then creates or deletes some.
    fn manage(&mut self, sync: &mut Sync<'_, '_, '_>) {
        let Some(rs) = sync.get().map(|rs| *rs.record) else { return };
        self.phase = Phase::Status;
        if sync.is_blind() {
            // Half a view is no ground for numbers either.
            self.phase = Phase::Ending;
            return;
        }
        self.count(sync, &rs);
        if rs.is_deleting() {
            return;
        }
        let now = sync.world.now;
        if let Some(expiry) = sync.shared.expectations.expire_at(sync.key, now)
            && !planted(Bug::NoExpectations)
        {
            sync.keys.queue.add_after(sync.key, expiry.since(now), now);
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
                sync.run.fail(Outcome::Retry, "unable to create pods, no labels");
            }
            Manage::Create(count) => {
                sync.shared.expectations.expect_creations(sync.key, count, now);
                self.creations = SlowStart::new(count);
                self.goal = claimed + usize::from(count);
                self.phase = Phase::Create;
            }
            Manage::Delete(count) => {
                sync.choose_victims(usize::from(count));
                self.goal = claimed.saturating_sub(usize::from(count));
                self.phase = Phase::Delete;
            }
        }
    }

    /// Whether the rest of the creations is no longer wanted: pods have turned up that were not
    /// known when that was decided, or there is no longer room to know them all.
    fn has_enough(&self, sync: &Sync<'_, '_, '_>) -> bool {
        let enough = || self.wanted_now(sync).map_or(self.goal, |now| now.min(self.goal));
        // Those under way may be there already: the watch can be faster than the answer.
        self.creations.to_come() > 0
            && (sync.world.cache.is_blind(sync.keys.kind(), sync.key)
                || sync.claimed().count() >= enough())
    }

    /// Whether the rest of the victims is to stay: pods have gone meanwhile.
    fn has_no_surplus(&self, sync: &Sync<'_, '_, '_>) -> bool {
        let enough = || self.wanted_now(sync).map_or(self.goal, |now| now.max(self.goal));
        let cache = &*sync.world.cache;
        let staying = sync.claimed().filter(|pod| !cache.is_being_deleted(*pod));
        cache.next_victim(sync.keys.kind(), sync.key).is_some()
            && staying.count() <= enough()
            && !planted(Bug::StaleDelete)
    }

    /// How many pods are wanted, if the decision at hand is so old that this counts. Kubernetes
    /// carries out what it has decided, and the recordings show it; but it does not have to wait
    /// for one of a few connections.
    fn wanted_now(&self, sync: &Sync<'_, '_, '_>) -> Option<usize> {
        let rs = sync.get()?;
        let is_old = sync.world.now > self.decided + DECISION_HOLDS;
        is_old.then(|| usize::try_from(rs.record.replicas).unwrap_or(0))
    }

    fn count(&mut self, sync: &Sync<'_, '_, '_>, rs: &ReplicaSet) {
        let cache = &*sync.world.cache;
        let texts = &*cache.texts;
        let mut count = Counts { observed_generation: rs.generation(), ..Counts::default() };
        if planted(Bug::GenerationNotObserved) {
            count.observed_generation = rs.observed_generation();
        }
        let mut terminating = 0;
        for (_, pod) in cache.pods_of(sync.keys.kind(), sync.key) {
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
        let is_told = sync.shared.like.counts_terminating && sync.world.terminating_replicas;
        count.terminating = is_told.then_some(terminating);
        self.count = count;
    }

    /// Whether the status is to be written now.
    fn wants_status(&mut self, sync: &mut Sync<'_, '_, '_>) -> bool {
        let Some(rs) = sync.get() else { return false };
        let stored = StoredStatus::of(rs.record);
        self.failure = FailureWrite::after(&stored.failure, self.failed);
        if sync.run.status_tries > 1 || !needs_write(&stored, &self.count, self.failure) {
            return false;
        }
        if rs.record.observed_generation() > self.count.observed_generation {
            // Somebody else has told of a newer generation: that is not taken back.
            sync.run.fail(Outcome::Retry, "");
            return false;
        }
        let pressing = self.failure != FailureWrite::Keep
            || sync.run.status_tries > 0
            || completes(&stored.count, &self.count, rs.record.replicas);
        let (lag, now) = (sync.world.status_lag, sync.world.now);
        match sync.keys.lag_left(sync.key, lag, now) {
            Some(wait) if !pressing => {
                sync.keys.queue.add_after(sync.key, wait, now);
                false
            }
            _ => true,
        }
    }

    fn end(&self, sync: &mut Sync<'_, '_, '_>) {
        if sync.run.outcome != Outcome::Good && planted(Bug::RetryForgotten) {
            sync.run.outcome = Outcome::Forget;
        }
        let is_coming =
            self.count.ready != self.count.available && !planted(Bug::AvailabilityForgotten);
        let seconds = sync.get().filter(|_| is_coming).map(|rs| rs.record.min_ready_seconds);
        sync.end(seconds);
    }
}

fn has_valid_selector(sync: &Sync<'_, '_, '_>) -> bool {
    sync.get().is_some_and(|rs| rs.record.selector.validate().is_ok())
}

impl Sync<'_, '_, '_> {
    /// Whether the ReplicaSet's Deployment is in the middle of a sync. A status then waits for its
    /// end, so that the Deployment's own status is of one piece whoever is faster.
    fn owner_is_at_work(&self) -> bool {
        match self.world.cache.owner_of(self.keys.kind(), self.key) {
            Owner::Resolved(kind, owner) => self.world.peer(kind, owner) == Activity::Begun,
            Owner::None | Owner::Unresolved => false,
        }
    }

    /// The pods of a ReplicaSet that count.
    fn claimed(&self) -> impl Iterator<Item = Slot> {
        let rs = self.get();
        let is_claimed = move |pod: &Entry<'_, Pod>| {
            let labels = pod.record.labels;
            let texts = &*self.world.cache.texts;
            pod.record.is_active() && rs.is_some_and(|rs| rs.record.selector.matches(texts, labels))
        };
        let pods = self.world.cache.pods_of(self.keys.kind(), self.key);
        pods.filter(move |(_, pod)| is_claimed(pod)).map(|(slot, _)| slot)
    }

    /// Ranks the claimed pods of a ReplicaSet and marks the first `count` for deletion.
    fn choose_victims(&mut self, count: usize) {
        let ranking = core::mem::take(&mut self.world.pods);
        let mut len = 0;
        for (slot, place) in self.claimed().zip(ranking.iter_mut()) {
            *place = OrderedPod::at(len as i32, slot, 0);
            len += 1;
        }
        let (claimed, _) = ranking.split_at_mut_checked(len).unwrap_or_default();
        if count < len {
            for place in claimed.iter_mut() {
                place.note = self.count_colocated(place.slot());
            }
            let wall = self.world.wall;
            heap_sort(claimed, |a, b| match (self.rank(a), self.rank(b)) {
                // Of equals, the recordings show the one that was seen first to go.
                (Some(x), Some(y)) => deletion_order(&x, &y, wall).then(b.place.cmp(&a.place)),
                _ => core::cmp::Ordering::Equal,
            });
        }
        let victims = || claimed.iter().take(count).map(OrderedPod::slot);
        let expected = self.world.cache.expect_deletions(self.keys.kind(), self.key, victims());
        self.world.cache.mark_victims(victims());
        self.shared.expectations.expect_deletions(self.key, expected, self.world.now);
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
    fn count_colocated(&self, pod: Slot) -> u16 {
        let cache = &*self.world.cache;
        let Some(node) = cache.pods.get(pod).map(|pod| pod.record.node) else { return 0 };
        let siblings = cache.siblings_of(self.keys.kind(), self.key);
        let pods = siblings.flat_map(|sibling| cache.pods_of(self.keys.kind(), sibling));
        let there = pods.filter(|(_, pod)| pod.record.is_active() && pod.record.node == node);
        u16::try_from(there.count()).unwrap_or(u16::MAX)
    }
}
