//! All memory of the controllers in one value.

use crate::expect::{Expectations, Expected};
use crate::queue::{Item, Queue};
use crate::replicaset::Ranked;
use crate::store::{Cache, CacheState, Deployment, Entry, Group, Groups, Pod, ReplicaSet, Table};
use crate::text::{Cell, Interner};

/// The type of [`Resources`] with the capacities given, for example
/// `resources! { pods: 512, replica_sets: 64, deployments: 32 }`.
///
/// | capacity | of | default |
/// |---|---|---|
/// | `pods` | pods that a ReplicaSet or StatefulSet controls, or nobody | – |
/// | `replica_sets` | ReplicaSets | – |
/// | `deployments` | Deployments | – |
/// | `groups` | owners and namespaces | [`groups_for`] |
/// | `texts` | pieces of names, labels and selectors | [`texts_for`] |
///
/// ```
/// use std::sync::Mutex;
/// type Memory = picokube_core::resources! { pods: 64, replica_sets: 8, deployments: 4 };
/// // All zero: takes no room in flash, and is never built on a stack.
/// static MEMORY: Mutex<Memory> = Mutex::new(Memory::new());
/// assert_eq!(MEMORY.lock().unwrap().parts().cache.pods.capacity(), 64);
/// ```
#[macro_export]
macro_rules! resources {
    (pods: $pods:expr, replica_sets: $rs:expr, deployments: $d:expr $(,)?) => {
        $crate::resources! {
            pods: $pods, replica_sets: $rs, deployments: $d,
            groups: $crate::resources::groups_for($pods, $rs, $d),
            texts: $crate::resources::texts_for($pods, $rs, $d),
        }
    };
    (pods: $pods:expr, replica_sets: $rs:expr, deployments: $d:expr,
     groups: $groups:expr, texts: $texts:expr $(,)?) => {
        $crate::resources::Resources<{ $pods }, { $rs }, { $d }, { $groups }, { $texts }>
    };
}

/// Owners and namespaces that a cluster of this size is likely to have: one group per controller,
/// some orphans, a few namespaces.
pub const fn groups_for(pods: usize, replica_sets: usize, deployments: usize) -> usize {
    16 + pods / 32 + replica_sets + deployments
}

/// Pieces of text that a cluster of this size is likely to need, with names of 40 characters and
/// four labels.
pub const fn texts_for(pods: usize, replica_sets: usize, deployments: usize) -> usize {
    32 + pods / 8 + 5 * replica_sets + 8 * deployments
}

/// The memory of the controllers. The [`resources!`](crate::resources!) macro names its type.
#[derive(Debug)]
pub struct Resources<
    const PODS: usize,
    const REPLICA_SETS: usize,
    const DEPLOYMENTS: usize,
    const GROUPS: usize,
    const TEXTS: usize,
> {
    texts: Interner<[Cell; TEXTS]>,
    groups: Groups<[Group; GROUPS]>,
    pods: Table<[Entry<Pod>; PODS]>,
    replica_sets: Table<[Entry<ReplicaSet>; REPLICA_SETS]>,
    deployments: Table<[Entry<Deployment>; DEPLOYMENTS]>,
    state: CacheState,
    replica_set_queue: Queue<[Item; REPLICA_SETS]>,
    deployment_queue: Queue<[Item; DEPLOYMENTS]>,
    expectations: Expectations<[Expected; REPLICA_SETS]>,
    status_pending: [u32; REPLICA_SETS],
    deployment_status_pending: [u32; DEPLOYMENTS],
    ranking: [Ranked; PODS],
}

/// Views of the parts of [`Resources`], whatever their capacities.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The cached cluster.
    pub cache: Cache<'a>,
    /// The ReplicaSet controller's queue, by slots of ReplicaSets.
    pub replica_set_queue: &'a mut Queue,
    /// The Deployment controller's queue, by slots of Deployments.
    pub deployment_queue: &'a mut Queue,
    /// What ReplicaSets await.
    pub expectations: &'a mut Expectations,
    /// Since when the status of each ReplicaSet waits to be written, in milliseconds; 0 if none.
    pub status_pending: &'a mut [u32],
    /// The same of each Deployment.
    pub deployment_status_pending: &'a mut [u32],
    /// Room to rank the pods of one ReplicaSet.
    pub ranking: &'a mut [Ranked],
}

impl<
    const PODS: usize,
    const REPLICA_SETS: usize,
    const DEPLOYMENTS: usize,
    const GROUPS: usize,
    const TEXTS: usize,
> Resources<PODS, REPLICA_SETS, DEPLOYMENTS, GROUPS, TEXTS>
{
    /// Empty memory: all bits zero.
    pub const fn new() -> Self {
        Self {
            texts: Interner::new(),
            groups: Groups::new(),
            pods: Table::new(),
            replica_sets: Table::new(),
            deployments: Table::new(),
            state: CacheState::new(),
            replica_set_queue: Queue::new(),
            deployment_queue: Queue::new(),
            expectations: Expectations::new(),
            status_pending: [0; REPLICA_SETS],
            deployment_status_pending: [0; DEPLOYMENTS],
            ranking: [Ranked::NONE; PODS],
        }
    }

    /// The parts, in the form that all logic works on.
    pub fn parts(&mut self) -> Parts<'_> {
        Parts {
            cache: Cache {
                texts: &mut self.texts,
                groups: &mut self.groups,
                pods: &mut self.pods,
                replica_sets: &mut self.replica_sets,
                deployments: &mut self.deployments,
                state: &mut self.state,
            },
            replica_set_queue: &mut self.replica_set_queue,
            deployment_queue: &mut self.deployment_queue,
            expectations: &mut self.expectations,
            status_pending: &mut self.status_pending,
            deployment_status_pending: &mut self.deployment_status_pending,
            ranking: &mut self.ranking,
        }
    }
}

impl<
    const PODS: usize,
    const REPLICA_SETS: usize,
    const DEPLOYMENTS: usize,
    const GROUPS: usize,
    const TEXTS: usize,
> Default for Resources<PODS, REPLICA_SETS, DEPLOYMENTS, GROUPS, TEXTS>
{
    fn default() -> Self {
        Self::new()
    }
}
