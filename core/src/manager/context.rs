//! What a sync works with.

use crate::deployment::{self, View};
use crate::event::{Message, Recorder, Subject};
use crate::expect::Expectations;
use crate::link::Slot;
use crate::queue::Queue;
use crate::replicaset::{self, Ranked};
use crate::store::{Cache, Entry, Kind, Record};
use crate::text::{Name, Text};
use crate::time::{Duration, Instant, Timestamp};

use super::settings::Settings;

/// What a sync works with, for as long as one call takes.
pub(crate) struct Context<'c, 'a> {
    pub(crate) cache: &'c mut Cache<'a>,
    pub(crate) replica_set_queue: &'c mut Queue,
    /// What the ReplicaSet controller is at, for those who wait for it.
    pub(crate) replica_set_workers: &'c [replicaset::Worker],
    pub(crate) deployment_queue: &'c mut Queue,
    /// What the Deployment controller is at, for those who let it finish.
    pub(crate) deployment_workers: &'c [deployment::Worker],
    pub(crate) expectations: &'c mut Expectations,
    pub(crate) ranking: &'c mut [Ranked],
    /// Since when the status of each ReplicaSet waits to be written, in milliseconds; 0 if none.
    pub(crate) status_pending: &'c mut [u32],
    /// The same of each Deployment.
    pub(crate) deployment_status_pending: &'c mut [u32],
    pub(crate) recorder: &'c mut Recorder,
    pub(crate) view: &'c mut View,
    pub(crate) settings: &'c Settings,
    pub(crate) now: Instant,
    pub(crate) wall: Timestamp,
}

impl Context<'_, '_> {
    /// Tells something about a ReplicaSet.
    pub(crate) fn record_replica_set(&mut self, rs: Slot, message: Message) {
        if let Some(rs) = self.cache.replica_sets.get(rs) {
            let subject = subject(Kind::ReplicaSet, rs);
            self.recorder.record(self.cache.texts, subject, message, self.wall);
        }
    }

    /// Tells something about a Deployment.
    pub(crate) fn record_deployment(&mut self, d: Slot, message: Message) {
        if let Some(d) = self.cache.deployments.get(d) {
            let subject = subject(Kind::Deployment, d);
            self.recorder.record(self.cache.texts, subject, message, self.wall);
        }
    }

    /// As [`record_replica_set`](Self::record_replica_set), about a pod that is not cached.
    pub(super) fn record_pod(&mut self, rs: Slot, pod: &str, message: fn(Name) -> Message) {
        if let Ok(name) = Name::split(self.cache.texts, pod) {
            self.record_replica_set(rs, message(name));
            name.release(self.cache.texts);
        }
    }

    /// As [`record_replica_set`](Self::record_replica_set), with an error in it.
    pub(super) fn record_error(&mut self, rs: Slot, error: &str, message: fn(Text) -> Message) {
        let text = self.cache.texts.intern(error.as_bytes()).unwrap_or_default();
        self.record_replica_set(rs, message(text));
        self.cache.texts.release(text);
    }

    /// How long the counts of a ReplicaSet's status still may wait for others to join them.
    pub(crate) fn replica_set_lag_left(&mut self, rs: Slot) -> Option<Duration> {
        lag_left(self.status_pending.get_mut(rs.index())?, self.settings.status_lag, self.now)
    }

    /// The same of a Deployment's status.
    pub(crate) fn deployment_lag_left(&mut self, d: Slot) -> Option<Duration> {
        let pending = self.deployment_status_pending.get_mut(d.index())?;
        lag_left(pending, self.settings.status_lag, self.now)
    }

    /// The status of a ReplicaSet has been written.
    pub(super) fn note_replica_set_status(&mut self, rs: Slot) {
        if let Some(pending) = self.status_pending.get_mut(rs.index()) {
            *pending = 0;
        }
    }

    /// The status of a Deployment has been written.
    pub(super) fn note_deployment_status(&mut self, d: Slot) {
        if let Some(pending) = self.deployment_status_pending.get_mut(d.index()) {
            *pending = 0;
        }
    }
}

/// How much of `lag` is left since a status began to wait, which may be now.
fn lag_left(pending: &mut u32, lag: Duration, now: Instant) -> Option<Duration> {
    if lag == Duration::ZERO {
        return None;
    }
    if *pending == 0 {
        *pending = stamp(now);
    }
    let elapsed = u64::from(stamp(now).wrapping_sub(*pending));
    let left = lag - Duration::from_millis(elapsed);
    (left > Duration::ZERO).then_some(left)
}

/// Milliseconds, wrapping, since only differences count; never 0.
fn stamp(now: Instant) -> u32 {
    ((now.as_micros() / 1_000) as u32).wrapping_add(1).max(1)
}

fn subject<R: Record>(kind: Kind, entry: &Entry<R>) -> Subject {
    Subject {
        kind,
        namespace: entry.namespace(),
        name: entry.name(),
        uid: entry.uid(),
        version: entry.version(),
    }
}
