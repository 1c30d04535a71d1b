//! The fixed memory of simulated controllers.

use picokube_core::manager::{Workspace, WorkspaceParts};
use picokube_core::resources;
use picokube_core::resources::Parts;

/// Most connections for requests that a simulated controller may have.
pub(super) const MOST_LANES: usize = 4;

type Roomy = resources! { pods: 320, replica_sets: 96, deployments: 32 };
type Wide = resources! { pods: 1024, replica_sets: 768, deployments: 64 };
type Tight = resources! { pods: 24, replica_sets: 12, deployments: 6 };
type Work = Workspace<MOST_LANES, 5, 48>;

/// How many objects a controller has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// For everything the workload makes.
    Roomy,
    /// For clusters of any size that can be asked for.
    Wide,
    /// For 24 pods, 12 ReplicaSets and 6 Deployments: it may get full.
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
}

impl Memory {
    pub(super) fn new(room: Room) -> Self {
        let resources = match room {
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
        };
        (parts, self.work.parts())
    }
}
