//! The ReplicationController controller: that of ReplicaSets, for what came before them.
//!
//! As in Kubernetes, there is no code of its own behind it: a ReplicationController is kept like a
//! ReplicaSet, and only read and called otherwise. It is the example of
//! `docs/adding-a-controller.md`.

mod object;

pub use crate::replicaset::{Memory, Parts};
pub use object::ReplicationController;

use crate::control::ControllerInfo;
use crate::kind::Kind;
use crate::replicaset::controller::ReplicaSetLike;
pub(crate) use crate::replicaset::{ReplicaSetController, WorkerParts, Workers};

/// What is fixed about the ReplicationController controller.
pub static INFO: ControllerInfo = ControllerInfo {
    name: "replicationcontroller-controller",
    alias: "replicationcontroller",
    component: "replication-controller",
    queue: "replicationmanager",
    key: Kind::ReplicationController,
    watches: &[Kind::Pod, Kind::ReplicationController],
};

/// Begins with nothing done.
pub(crate) fn start<'a>(parts: Parts<'a>, workers: WorkerParts<'a>) -> ReplicaSetController<'a> {
    static REPLICATION_CONTROLLERS: ReplicaSetLike =
        ReplicaSetLike { table: |cache| &cache.replication_controllers, counts_terminating: false };
    REPLICATION_CONTROLLERS.start(parts, workers)
}
