//! What a sync works with.

use crate::event::{About, Message, Recorder, Subject};
use crate::kind::Kind;
use crate::link::Slot;
use crate::store::Cache;
use crate::time::{Duration, Instant, Timestamp};

use super::controller::{Activity, Controller, ControllerInfo};
use super::pods::OrderedPod;
use super::write::Write;

/// What a sync works with, for as long as one call takes.
pub(crate) struct World<'w, 'a> {
    pub(crate) cache: &'w mut Cache<'a>,
    pub(crate) recorder: &'w mut Recorder,
    /// Room to put the pods of one owner in order.
    pub(crate) pods: &'w mut [OrderedPod],
    pub(crate) peers: Peers<'w, 'a>,
    /// Whether a write can be sent now: there is a place for its answer, and nobody else writes to the
    /// same object.
    pub(crate) has_room: &'w dyn Fn(&Write) -> bool,
    /// Whether `status.terminatingReplicas` is kept.
    pub(crate) terminating_replicas: bool,
    /// Whether `maxUnavailable` of a StatefulSet counts.
    #[cfg(feature = "statefulset")]
    pub(crate) max_unavailable_stateful_set: bool,
    /// How long a status may wait that only tells how far things are.
    pub(crate) status_lag: Duration,
    pub(crate) now: Instant,
    pub(crate) wall: Timestamp,
}

/// The other controllers.
#[derive(Clone, Copy)]
pub(crate) struct Peers<'w, 'a> {
    pub(crate) before: &'w [&'w mut (dyn Controller<'a> + 'a)],
    pub(crate) after: &'w [&'w mut (dyn Controller<'a> + 'a)],
}

impl World<'_, '_> {
    /// What the controller of another kind is doing about one of its keys.
    pub(crate) fn peer(&self, kind: Kind, key: Slot) -> Activity {
        let mut peers = self.peers.before.iter().chain(self.peers.after);
        let peer = peers.find(|peer| peer.info().key == kind);
        peer.map_or(Activity::Idle, |peer| peer.activity(key))
    }

    /// Whether objects that belong to a key are missing from the cache, which its object is told of.
    pub(crate) fn is_blind(&mut self, by: &'static ControllerInfo, key: Slot) -> bool {
        let members = self.cache.blind_to(by.key, key);
        let was_told = self.cache.tell_blind(by.key, key, members.is_some());
        if let Some(members) = members
            && !was_told
        {
            self.record(by, key, Message::Blind(members));
        }
        members.is_some()
    }

    /// Tells something about a key of a controller.
    pub(crate) fn record(&mut self, by: &'static ControllerInfo, key: Slot, message: Message) {
        record(self.recorder, self.cache, by, key, message, self.wall);
    }
}

/// Tells something about a key of a controller.
pub(crate) fn record(
    recorder: &mut Recorder,
    cache: &mut Cache<'_>,
    by: &'static ControllerInfo,
    key: Slot,
    message: Message,
    at: Timestamp,
) {
    let Some(head) = cache.head(by.key, key) else { return };
    let subject = Subject {
        about: About::Object(by.key),
        component: by.component,
        namespace: head.namespace(),
        name: head.name(),
        uid: head.uid(),
        version: head.version(),
    };
    recorder.record(cache.texts, subject, message, at);
}
