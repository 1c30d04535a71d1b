//! The fixed memory of simulated controllers.

use picokube_core::manager::{Workspace, WorkspaceParts};
use picokube_core::resources;
use picokube_core::resources::Parts;

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
type Work = Workspace<MOST_LANES, 5, 48>;

/// How many objects a controller has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// For everything the workload makes.
    Roomy,
    /// For clusters of any size that can be asked for.
    Wide,
    /// For 24 pods, 12 ReplicaSets and 6 Deployments, and for 3 StatefulSets, 9 revisions and 16
    /// claims: it may get full.
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
}

impl Memory {
    /// Without StatefulSets there is no room for them, and no controller.
    pub(super) fn new(room: Room, with_stateful_sets: bool) -> Self {
        let resources = match room {
            Room::Tight if with_stateful_sets => {
                Resources::TightWithSets(Box::new(TightWithSets::new()))
            }
            _ if with_stateful_sets => Resources::RoomyWithSets(Box::new(RoomyWithSets::new())),
            Room::Roomy => Resources::Roomy(Box::new(Roomy::new())),
            Room::Wide => Resources::Wide(Box::new(Wide::new())),
            Room::Tight => Resources::Tight(Box::new(Tight::new())),
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
        };
        (parts, self.work.parts())
    }
}
