//! How large a firmware is: its capacities, fixed when it is built.
//!
//! `PICOKUBE_PROFILE` in the environment of the build chooses; `cargo xtask firmware build
//! --profile` sets it.

use picokube_core::kind::Kind;
use picokube_core::{manager, resources};

/// The capacities of a firmware.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// What `PICOKUBE_PROFILE` calls it.
    pub name: &'static str,
    /// Pods that are cached.
    pub pods: usize,
    /// ReplicaSets that are cached.
    pub replica_sets: usize,
    /// Deployments that are cached.
    pub deployments: usize,
    /// StatefulSets that are cached.
    pub stateful_sets: usize,
    /// ControllerRevisions that are cached, those of StatefulSets.
    pub controller_revisions: usize,
    /// PersistentVolumeClaims that are cached.
    pub persistent_volume_claims: usize,
    /// Keys of each controller that are processed at once.
    pub workers: usize,
    /// Events that wait to be written, and that are remembered to be counted.
    pub events: usize,
    /// Bodies up to this size are kept for the next pod of the same ReplicaSet.
    pub body_buffer: usize,
}

impl Profile {
    /// For chips with 192 KiB of RAM: 72 KiB of stores.
    pub const TINY: Self = Self {
        name: "tiny",
        pods: 224,
        replica_sets: 60,
        deployments: 30,
        stateful_sets: 12,
        controller_revisions: 24,
        persistent_volume_claims: 24,
        workers: 2,
        events: 16,
        body_buffer: 2048,
    };
    /// For chips with 256 KiB of RAM.
    pub const REFERENCE: Self = Self {
        name: "reference",
        pods: 512,
        replica_sets: 128,
        deployments: 64,
        stateful_sets: 32,
        controller_revisions: 64,
        persistent_volume_claims: 64,
        workers: 2,
        events: 16,
        body_buffer: 4096,
    };
    /// For chips with 512 KiB of RAM.
    pub const LARGE: Self = Self {
        name: "large",
        pods: 2000,
        replica_sets: 256,
        deployments: 128,
        stateful_sets: 64,
        controller_revisions: 128,
        persistent_volume_claims: 256,
        workers: 4,
        events: 64,
        body_buffer: 8192,
    };
}

/// The profile of this build.
pub const PROFILE: Profile = match option_env!("PICOKUBE_PROFILE") {
    None => Profile::REFERENCE,
    Some(name) => match name.as_bytes() {
        b"tiny" => Profile::TINY,
        b"reference" => Profile::REFERENCE,
        b"large" => Profile::LARGE,
        _ => panic!("PICOKUBE_PROFILE is neither tiny, reference nor large"),
    },
};

/// Watches at a time: one a kind.
pub(crate) const WATCHES: usize = Kind::COUNT;

/// Requests that may be under way at once. All of them share one maker of bodies.
pub(crate) const LANES: usize = 2;

/// ReplicationControllers that are cached, in a build with their controller.
const REPLICATION_CONTROLLERS: usize =
    if cfg!(feature = "replication-controller") { 16 } else { 0 };

/// The stores of the controllers.
pub(crate) type Stores = resources! {
    pods: PROFILE.pods,
    replica_sets: PROFILE.replica_sets,
    deployments: PROFILE.deployments,
    replication_controllers: REPLICATION_CONTROLLERS,
    stateful_sets: PROFILE.stateful_sets,
    controller_revisions: PROFILE.controller_revisions,
    persistent_volume_claims: PROFILE.persistent_volume_claims,
};

/// The memory of work in progress.
pub(crate) type Workspace = manager::Workspace<LANES, { PROFILE.workers }, { PROFILE.events }>;

/// What `tiny` promises.
const _: () = assert!(PROFILE.pods != Profile::TINY.pods || size_of::<Stores>() <= 72 * 1024);
