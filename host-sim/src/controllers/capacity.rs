//! How many objects the controllers can hold.

use clap::ValueEnum;
use picokube_core::resources;
use picokube_core::resources::Parts;
use static_cell::ConstStaticCell;

/// A size of the controllers' memory, fixed at build time as on a microcontroller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Capacity {
    /// 50 pods, 16 ReplicaSets, 8 Deployments, 4 ReplicationControllers, 8 StatefulSets with 24 revisions
    /// and 24 claims: to see what happens when they are full
    Tiny,
    /// 512 pods, 128 ReplicaSets, 64 Deployments: what the reference firmware has; and 16
    /// ReplicationControllers, 32 StatefulSets with 64 revisions and 64 claims
    Reference,
    /// 8,192 pods, 2,048 ReplicaSets, 1,024 Deployments, 128 ReplicationControllers, 256 StatefulSets
    /// with 1,024 revisions and 1,024 claims: 500 rolling updates of 10 pods at once
    Medium,
    /// 16,384 pods, 4,096 ReplicaSets, 2,048 Deployments, 256 ReplicationControllers, 512
    /// StatefulSets with 2,048 revisions and 2,048 claims
    Host,
}

impl Capacity {
    /// The memory of this size; `None` if it is in use.
    pub(super) fn take(self) -> Option<Parts<'static>> {
        type Tiny = resources! {
            pods: 50, replica_sets: 16, deployments: 8, replication_controllers: 4,
            stateful_sets: 8, controller_revisions: 24, persistent_volume_claims: 24,
        };
        type Reference = resources! {
            pods: 512, replica_sets: 128, deployments: 64, replication_controllers: 16,
            stateful_sets: 32, controller_revisions: 64, persistent_volume_claims: 64,
        };
        type Medium = resources! {
            pods: 8_192, replica_sets: 2_048, deployments: 1_024, replication_controllers: 128,
            stateful_sets: 256, controller_revisions: 1_024, persistent_volume_claims: 1_024,
        };
        type Host = resources! {
            pods: 16_384, replica_sets: 4_096, deployments: 2_048, replication_controllers: 256,
            stateful_sets: 512, controller_revisions: 2_048, persistent_volume_claims: 2_048,
        };
        static TINY: ConstStaticCell<Tiny> = ConstStaticCell::new(Tiny::new());
        static REFERENCE: ConstStaticCell<Reference> = ConstStaticCell::new(Reference::new());
        static MEDIUM: ConstStaticCell<Medium> = ConstStaticCell::new(Medium::new());
        static HOST: ConstStaticCell<Host> = ConstStaticCell::new(Host::new());
        match self {
            Self::Tiny => TINY.try_take().map(Tiny::parts),
            Self::Reference => REFERENCE.try_take().map(Reference::parts),
            Self::Medium => MEDIUM.try_take().map(Medium::parts),
            Self::Host => HOST.try_take().map(Host::parts),
        }
    }
}
