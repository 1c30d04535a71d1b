//! The memory of work in progress: answers being decoded, syncs, events.

use crate::deployment;
use crate::event::{Event, Recorder};
use crate::replicaset;
use crate::text::{Name, Text};
use crate::time::{Instant, Timestamp};
use crate::watch::Decoder;
use crate::wire::{self, AnswerDecoder, Object, ResourceVersion, Uid};

use crate::deployment::View;
use crate::link::Slot;

/// Memory that work in progress takes, whatever the size of the cluster.
///
/// `PODS` requests for pods, and `OBJECTS` each for ReplicaSets and Deployments, can be under way
/// at a time; `WORKERS` keys of each controller are processed at a time; `EVENTS` events wait, and
/// so many are remembered.
pub struct Workspace<
    const PODS: usize,
    const OBJECTS: usize,
    const WORKERS: usize,
    const EVENTS: usize,
> {
    pods: [Lane<wire::Pod>; PODS],
    replica_sets: [Lane<wire::ReplicaSet>; OBJECTS],
    deployments: [Lane<wire::Deployment>; OBJECTS],
    replica_set_workers: [replicaset::Worker; WORKERS],
    deployment_workers: [deployment::Worker; WORKERS],
    recorder: Recorder<[Event; EVENTS]>,
    view: View,
    pod_feed: Decoder<wire::Pod>,
    replica_set_feed: Decoder<wire::ReplicaSet>,
    deployment_feed: Decoder<wire::Deployment>,
}

/// Views of the parts of a [`Workspace`], whatever its capacities.
pub struct Desk<'a> {
    pub(super) pods: &'a mut [Lane<wire::Pod>],
    pub(super) replica_sets: &'a mut [Lane<wire::ReplicaSet>],
    pub(super) deployments: &'a mut [Lane<wire::Deployment>],
    pub(super) replica_set_workers: &'a mut [replicaset::Worker],
    pub(super) deployment_workers: &'a mut [deployment::Worker],
    pub(super) recorder: &'a mut Recorder,
    pub(super) view: &'a mut View,
    pub(super) pod_feed: &'a mut Decoder<wire::Pod>,
    pub(super) replica_set_feed: &'a mut Decoder<wire::ReplicaSet>,
    pub(super) deployment_feed: &'a mut Decoder<wire::Deployment>,
}

impl<const PODS: usize, const OBJECTS: usize, const WORKERS: usize, const EVENTS: usize>
    Workspace<PODS, OBJECTS, WORKERS, EVENTS>
{
    /// A workspace in which nothing happens yet.
    pub const fn new() -> Self {
        const { assert!(PODS > 0 && OBJECTS > 0 && WORKERS > 0 && WORKERS < 256) };
        const { assert!(PODS + 2 * OBJECTS < 255) };
        Self {
            pods: [const { Lane::new() }; PODS],
            replica_sets: [const { Lane::new() }; OBJECTS],
            deployments: [const { Lane::new() }; OBJECTS],
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
            pods: &mut self.pods,
            replica_sets: &mut self.replica_sets,
            deployments: &mut self.deployments,
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

impl<const PODS: usize, const OBJECTS: usize, const WORKERS: usize, const EVENTS: usize> Default
    for Workspace<PODS, OBJECTS, WORKERS, EVENTS>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Where one request at a time is under way.
pub(super) struct Lane<K: Object> {
    pub(super) state: LaneState,
    pub(super) decoder: AnswerDecoder<K>,
}

impl<K: Object> Lane<K> {
    const fn new() -> Self {
        Self { state: LaneState::FREE, decoder: AnswerDecoder::new() }
    }
}

/// The request in a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneState {
    pub(super) job: Option<Job>,
    pub(super) serial: u16,
    /// HTTP status of the answer; 0 before its head.
    pub(super) status: u16,
    pub(super) retry_after: Option<u32>,
    pub(super) retries: u8,
    /// The body so far makes sense.
    pub(super) readable: bool,
    /// The request is to be sent again, not before this.
    pub(super) resend_at: Option<Instant>,
}

impl LaneState {
    pub(super) const FREE: Self = Self {
        job: None,
        serial: 0,
        status: 0,
        retry_after: None,
        retries: 0,
        readable: true,
        resend_at: None,
    };
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
pub(super) enum Task {
    RecheckReplicaSet,
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
