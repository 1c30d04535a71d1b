//! Event handlers: which keys a change concerns.

use crate::expect::Expectations;
use crate::link::Slot;
use crate::metrics::Metrics;
use crate::planted::{Bug, planted};
use crate::queue::Queue;
use crate::store::{Cache, Change, Event, Kind, Owner, Refusal};
use crate::time::{Duration, Instant};
use crate::watch::Handler;
use crate::wire::{Meta, ObjectFault, Strategy};

/// Hands changes on to the queues of the controllers.
pub(super) struct Router<'r> {
    pub(super) replica_set_queue: &'r mut Queue,
    pub(super) deployment_queue: &'r mut Queue,
    pub(super) expectations: &'r mut Expectations,
    pub(super) status_pending: &'r mut [u32],
    pub(super) deployment_status_pending: &'r mut [u32],
    pub(super) metrics: &'r mut Metrics,
    pub(super) now: Instant,
}

impl Handler for Router<'_> {
    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change) {
        match kind {
            Kind::Pod => self.pod(cache, change),
            Kind::ReplicaSet => self.replica_set(cache, change),
            Kind::Deployment => self.deployment(cache, change),
        }
    }

    fn refused(&mut self, cache: &mut Cache<'_>, kind: Kind, _: &Meta, refusal: &Refusal) {
        self.metrics.refused = self.metrics.refused.wrapping_add(1);
        self.healed(cache, kind, refusal.owner);
    }

    fn faulty(&mut self, _: &ObjectFault<'_>) {
        self.metrics.faulty = self.metrics.faulty.wrapping_add(1);
    }

    /// The owner is looked at: to tell that it is blind, or to go on now that it sees.
    fn healed(&mut self, _: &mut Cache<'_>, members: Kind, owner: Owner) {
        match (members, owner.slot()) {
            (Kind::Pod, Some(owner)) => self.replica_set_queue.add(owner),
            (Kind::ReplicaSet, Some(owner)) => self.deployment_queue.add(owner),
            _ => {}
        }
    }
}

impl Router<'_> {
    fn pod(&mut self, cache: &mut Cache<'_>, change: &Change) {
        let Change { event, old_owner, new_owner, .. } = *change;
        if change.was_expected
            && let Some(owner) = old_owner.slot()
        {
            self.expectations.deletion_observed(owner);
        }
        match event {
            Event::Updated if change.same_version => {}
            Event::Deleted => {
                self.enqueue_set(old_owner);
                self.pod_gone(cache, old_owner);
            }
            _ if change.deleting => {
                self.enqueue_set(new_owner);
                if change.owner_changed || change.labels_changed {
                    self.enqueue_set(old_owner);
                }
                if change.owner_changed {
                    self.pod_gone(cache, old_owner);
                }
            }
            Event::Added => match new_owner {
                Owner::Resolved(owner) => {
                    self.expectations.creation_observed(owner);
                    self.enqueue_set(new_owner);
                }
                Owner::None => self.enqueue_selecting_sets(cache, change.slot),
                Owner::Unresolved => {}
            },
            Event::Updated => {
                if change.owner_changed {
                    self.enqueue_set(old_owner);
                }
                match new_owner {
                    Owner::Resolved(owner) => {
                        self.enqueue_set(new_owner);
                        if change.became_ready {
                            self.look_when_available(cache, owner);
                        }
                    }
                    Owner::None if change.labels_changed || change.owner_changed => {
                        self.enqueue_selecting_sets(cache, change.slot);
                    }
                    Owner::None | Owner::Unresolved => {}
                }
            }
        }
    }

    /// A Deployment that recreates its pods waits until the old ones are gone. To leave its
    /// ReplicaSet is as good; of one that is being deleted, no status tells.
    fn pod_gone(&mut self, cache: &Cache<'_>, owner: Owner) {
        let Some(rs) = owner.slot().filter(|_| !planted(Bug::WakeForgotten)) else { return };
        if let Some(d) = cache.owner_of_replica_set(rs).slot()
            && cache.deployments.get(d).is_some_and(|d| d.record.strategy == Strategy::Recreate)
        {
            self.deployment_queue.add(d);
        }
    }

    fn look_when_available(&mut self, cache: &Cache<'_>, owner: Slot) {
        let seconds = cache.replica_sets.get(owner).map_or(0, |rs| rs.record.min_ready_seconds);
        if seconds > 0 && !planted(Bug::AvailabilityForgotten) {
            let wait = Duration::from_secs(u64::from(seconds.unsigned_abs()));
            self.replica_set_queue.add_after(owner, wait, self.now);
        }
    }

    fn replica_set(&mut self, cache: &mut Cache<'_>, change: &Change) {
        let Change { slot, event, old_owner, new_owner, .. } = *change;
        if event == Event::Deleted || change.uid_changed {
            self.expectations.forget(slot);
            if let Some(pending) = self.status_pending.get_mut(slot.index()) {
                *pending = 0;
            }
        }
        if event == Event::Deleted {
            if self.replica_set_queue.retire(slot) {
                cache.free_replica_set(slot);
            }
            return self.enqueue_deployment(old_owner);
        }
        // The echo of an own write whose answer was heard before.
        if event == Event::Updated && change.same_version {
            return;
        }
        self.replica_set_queue.add(slot);
        if change.owner_changed {
            self.enqueue_deployment(old_owner);
        }
        let is_news = event == Event::Added || change.labels_changed || change.owner_changed;
        match new_owner {
            Owner::Resolved(_) => self.enqueue_deployment(new_owner),
            Owner::None if is_news && !change.deleting => {
                self.enqueue_selecting_deployments(cache, slot);
            }
            Owner::None | Owner::Unresolved => {}
        }
    }

    fn deployment(&mut self, cache: &mut Cache<'_>, change: &Change) {
        if (change.event == Event::Deleted || change.uid_changed)
            && let Some(pending) = self.deployment_status_pending.get_mut(change.slot.index())
        {
            *pending = 0;
        }
        if change.event == Event::Updated && change.same_version {
            return;
        }
        if change.event != Event::Deleted {
            self.deployment_queue.add(change.slot);
        } else if self.deployment_queue.retire(change.slot) {
            cache.free_deployment(change.slot);
        }
    }

    fn enqueue_set(&mut self, owner: Owner) {
        if let Some(owner) = owner.slot() {
            self.replica_set_queue.add(owner);
        }
    }

    fn enqueue_deployment(&mut self, owner: Owner) {
        if let Some(owner) = owner.slot() {
            self.deployment_queue.add(owner);
        }
    }

    fn enqueue_selecting_sets(&mut self, cache: &Cache<'_>, pod: Slot) {
        let Some(pod) = cache.pods.get(pod) else { return };
        for rs in cache.replica_sets_selecting(pod.namespace(), pod.record.labels) {
            self.replica_set_queue.add(rs);
        }
    }

    fn enqueue_selecting_deployments(&mut self, cache: &Cache<'_>, rs: Slot) {
        let Some(rs) = cache.replica_sets.get(rs) else { return };
        for d in cache.deployments_selecting(rs.namespace(), rs.record.labels) {
            self.deployment_queue.add(d);
        }
    }
}
