//! The memory of work in progress: answers being decoded, syncs, events.

use crate::deployment;
use crate::event::{Event, Recorder};
use crate::replicaset;
use crate::store::Kind;
use crate::text::{Name, Text};
use crate::time::{Instant, Timestamp};
use crate::watch::Decoder;
use crate::wire::{self, AnswerDecoder, ResourceVersion, Uid};

use crate::deployment::View;
use crate::link::Slot;

/// Memory that work in progress takes, whatever the size of the cluster.
///
/// `LANES` requests can be under way at a time, events apart; `WORKERS` keys of each controller are
/// processed at a time; `EVENTS` events wait, and so many are remembered.
pub struct Workspace<const LANES: usize, const WORKERS: usize, const EVENTS: usize> {
    states: [[LaneState; STATES]; LANES],
    decoders: [LaneDecoder; LANES],
    replica_set_workers: [replicaset::Worker; WORKERS],
    deployment_workers: [deployment::Worker; WORKERS],
    recorder: Recorder<[Event; EVENTS]>,
    view: View,
    pod_feed: Decoder<wire::Pod>,
    replica_set_feed: Decoder<wire::ReplicaSet>,
    deployment_feed: Decoder<wire::Deployment>,
}

/// Requests per lane: one is under way, the others wait until the server wants to see them again,
/// which needs no decoder.
const STATES: usize = 3;

/// Views of the parts of a [`Workspace`], whatever its capacities.
pub struct Desk<'a> {
    pub(super) states: &'a mut [LaneState],
    pub(super) decoders: &'a mut [LaneDecoder],
    pub(super) replica_set_workers: &'a mut [replicaset::Worker],
    pub(super) deployment_workers: &'a mut [deployment::Worker],
    pub(super) recorder: &'a mut Recorder,
    pub(super) view: &'a mut View,
    pub(super) pod_feed: &'a mut Decoder<wire::Pod>,
    pub(super) replica_set_feed: &'a mut Decoder<wire::ReplicaSet>,
    pub(super) deployment_feed: &'a mut Decoder<wire::Deployment>,
}

impl<const LANES: usize, const WORKERS: usize, const EVENTS: usize>
    Workspace<LANES, WORKERS, EVENTS>
{
    /// A workspace in which nothing happens yet.
    pub const fn new() -> Self {
        const { assert!(LANES > 0 && WORKERS > 0 && WORKERS < 256) };
        const { assert!(LANES * STATES < 255) };
        Self {
            states: [[LaneState::FREE; STATES]; LANES],
            decoders: [const { LaneDecoder::NEW }; LANES],
            replica_set_workers: [const { replicaset::Worker::IDLE }; WORKERS],
            deployment_workers: [const { deployment::Worker::IDLE }; WORKERS],
            recorder: Recorder::new(),
            view: View::EMPTY,
            pod_feed: Decoder::new(),
            replica_set_feed: Decoder::new(),
            deployment_feed: Decoder::new(),
        }
    }

    /// The parts, in the form that the manager works on.
    pub fn desk(&mut self) -> Desk<'_> {
        Desk {
            states: self.states.as_flattened_mut(),
            decoders: &mut self.decoders,
            replica_set_workers: &mut self.replica_set_workers,
            deployment_workers: &mut self.deployment_workers,
            recorder: &mut self.recorder,
            view: &mut self.view,
            pod_feed: &mut self.pod_feed,
            replica_set_feed: &mut self.replica_set_feed,
            deployment_feed: &mut self.deployment_feed,
        }
    }
}

impl<const LANES: usize, const WORKERS: usize, const EVENTS: usize> Default
    for Workspace<LANES, WORKERS, EVENTS>
{
    fn default() -> Self {
        Self::new()
    }
}

impl Desk<'_> {
    /// Where another request can begin: its state and its decoder.
    pub(super) fn free_lane(&self) -> Option<(usize, usize)> {
        let state = self.states.iter().position(|state| state.job.is_none())?;
        Some((state, self.free_decoder()?))
    }

    /// A decoder that no request under way has.
    pub(super) fn free_decoder(&self) -> Option<usize> {
        let is_free = |at: &usize| !self.states.iter().any(|state| state.has_decoder(*at));
        (0..self.decoders.len()).find(is_free)
    }
}

/// Reads the answer to one request at a time, whatever object is in it: the largest kind takes
/// all of its memory, and the others would stand idle beside it.
#[expect(clippy::large_enum_variant, reason = "one memory for all of them is the point")]
pub(super) enum LaneDecoder {
    Pod(AnswerDecoder<wire::Pod>),
    ReplicaSet(AnswerDecoder<wire::ReplicaSet>),
    Deployment(AnswerDecoder<wire::Deployment>),
}

impl LaneDecoder {
    /// The largest one: what marks the others is zero in it.
    const NEW: Self = Self::ReplicaSet(AnswerDecoder::new());

    /// Gets ready for an answer with an object of this kind.
    pub(super) fn prepare(&mut self, kind: Kind) {
        match (self, kind) {
            (Self::Pod(decoder), Kind::Pod) => decoder.reset(),
            (Self::ReplicaSet(decoder), Kind::ReplicaSet) => decoder.reset(),
            (Self::Deployment(decoder), Kind::Deployment) => decoder.reset(),
            (other, kind) => other.turn_into(kind),
        }
    }

    /// Fills the memory in its place, and not by way of the stack, which may be small.
    #[inline(never)]
    fn turn_into(&mut self, kind: Kind) {
        match kind {
            Kind::Pod => *self = Self::Pod(const { AnswerDecoder::new() }),
            Kind::ReplicaSet => *self = Self::ReplicaSet(const { AnswerDecoder::new() }),
            Kind::Deployment => *self = Self::Deployment(const { AnswerDecoder::new() }),
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneState {
    pub(super) job: Option<Job>,
    pub(super) serial: u16,
    /// HTTP status of the answer; 0 before its head.
    pub(super) status: u16,
    pub(super) retry_after: Option<u32>,
    pub(super) retries: u8,
    /// The body does not make sense.
    pub(super) is_unreadable: bool,
    /// The request is to be sent again, not before this.
    pub(super) resend_at: Option<Instant>,
    /// Which decoder reads the answer, while the request is under way.
    pub(super) decoder: u8,
}

impl LaneState {
    pub(super) const FREE: Self = Self {
        job: None,
        serial: 0,
        status: 0,
        retry_after: None,
        retries: 0,
        is_unreadable: false,
        resend_at: None,
        decoder: 0,
    };

    fn has_decoder(&self, at: usize) -> bool {
        self.job.is_some() && self.resend_at.is_none() && usize::from(self.decoder) == at
    }
}

/// What a request is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    /// Which worker of the task's controller waits for it.
    pub(super) worker: u8,
    /// The object it is about.
    pub(super) slot: Option<Slot>,
    pub(super) namespace: Text,
    pub(super) name: Name,
    pub(super) uid: Uid,
    pub(super) version: ResourceVersion,
    /// When the request was made: what its body says does not change with time.
    pub(super) at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Task {
    RecheckReplicaSet = 1,
    AdoptPod,
    ReleasePod,
    CreatePod,
    DeletePod,
    ReplicaSetStatus,
    RecheckDeployment,
    AdoptReplicaSet,
    ReleaseReplicaSet,
    CreateReplicaSet,
    UpdateReplicaSet { revision: Option<i64>, annotations: bool },
    ScaleReplicaSet { from: i32, to: i32 },
    DeleteReplicaSet,
    DeploymentStatus,
    Rollback { revision: i64 },
    ClearRollback,
}
