//! The fixed memory of simulated controllers.

use picokube_core::manager::{Workspace, WorkspaceParts};
use picokube_core::resources;
use picokube_core::resources::Parts;
use serde::{Deserialize, Serialize};

use super::plan::Shape;

/// Most connections for requests that a simulated controller may have.
pub(super) const MOST_LANES: usize = 4;

type Roomy = resources! { pods: 320, replica_sets: 96, deployments: 32 };
type Wide = resources! { pods: 1024, replica_sets: 768, deployments: 64 };
type Tight = resources! { pods: 24, replica_sets: 12, deployments: 6 };
type RoomyWithSets = resources! {
    pods: 192, replica_sets: 96, deployments: 32,
    stateful_sets: 8, controller_revisions: 96, persistent_volume_claims: 128,
};
type TightWithSets = resources! {
    pods: 24, replica_sets: 12, deployments: 6,
    stateful_sets: 3, controller_revisions: 9, persistent_volume_claims: 16,
};
type RoomyWithControllers = resources! {
    pods: 320, replica_sets: 96, deployments: 32, replication_controllers: 8,
};
type TightWithControllers = resources! {
    pods: 24, replica_sets: 12, deployments: 6, replication_controllers: 2,
};
type RoomyWithAll = resources! {
    pods: 192, replica_sets: 96, deployments: 32, replication_controllers: 8,
    stateful_sets: 8, controller_revisions: 96, persistent_volume_claims: 128,
};
type TightWithAll = resources! {
    pods: 24, replica_sets: 12, deployments: 6, replication_controllers: 2,
    stateful_sets: 3, controller_revisions: 9, persistent_volume_claims: 16,
};
type Work = Workspace<MOST_LANES, 5, 48>;

/// How many objects a controller has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Room {
    /// For everything the workload makes.
    Roomy,
    /// For clusters of any size that can be asked for.
    Wide,
    /// For 24 pods, 12 ReplicaSets and 6 Deployments, for 2 ReplicationControllers, and for 3
    /// StatefulSets, 9 revisions and 16 claims: it may get full.
    Tight,
}

/// What one boot of a controller works in. Empty, as RAM after a reset.
pub(super) struct Memory {
    resources: Resources,
    work: Box<Work>,
}

enum Resources {
    Roomy(Box<Roomy>),
    Wide(Box<Wide>),
    Tight(Box<Tight>),
    RoomyWithSets(Box<RoomyWithSets>),
    TightWithSets(Box<TightWithSets>),
    RoomyWithControllers(Box<RoomyWithControllers>),
    TightWithControllers(Box<TightWithControllers>),
    RoomyWithAll(Box<RoomyWithAll>),
    TightWithAll(Box<TightWithAll>),
}

impl Memory {
    /// Without StatefulSets there is no room for them, and no controller; nor without
    /// ReplicationControllers.
    pub(super) fn new(shape: &Shape) -> Self {
        let with = (shape.with_stateful_sets, shape.replication_controllers > 0);
        let resources = match (shape.room, with) {
            (Room::Tight, (true, true)) => Resources::TightWithAll(Box::new(TightWithAll::new())),
            (_, (true, true)) => Resources::RoomyWithAll(Box::new(RoomyWithAll::new())),
            (Room::Tight, (true, false)) => {
                Resources::TightWithSets(Box::new(TightWithSets::new()))
            }
            (_, (true, false)) => Resources::RoomyWithSets(Box::new(RoomyWithSets::new())),
            (Room::Tight, (false, true)) => {
                Resources::TightWithControllers(Box::new(TightWithControllers::new()))
            }
            (_, (false, true)) => {
                Resources::RoomyWithControllers(Box::new(RoomyWithControllers::new()))
            }
            (Room::Roomy, _) => Resources::Roomy(Box::new(Roomy::new())),
            (Room::Wide, _) => Resources::Wide(Box::new(Wide::new())),
            (Room::Tight, _) => Resources::Tight(Box::new(Tight::new())),
        };
        Self { resources, work: Box::new(Work::new()) }
    }

    pub(super) fn parts(&mut self) -> (Parts<'_>, WorkspaceParts<'_>) {
        let parts = match &mut self.resources {
            Resources::Roomy(memory) => memory.parts(),
            Resources::Wide(memory) => memory.parts(),
            Resources::Tight(memory) => memory.parts(),
            Resources::RoomyWithSets(memory) => memory.parts(),
            Resources::TightWithSets(memory) => memory.parts(),
            Resources::RoomyWithControllers(memory) => memory.parts(),
            Resources::TightWithControllers(memory) => memory.parts(),
            Resources::RoomyWithAll(memory) => memory.parts(),
            Resources::TightWithAll(memory) => memory.parts(),
        };
        (parts, self.work.parts())
    }
}
