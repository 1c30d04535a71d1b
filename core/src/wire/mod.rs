//! Objects on the wire, and the typed records they become while they pass through.
//!
//! A [`FieldTable`] per kind says what is read of it; a projector walks the tokens along the table and
//! fills a record. A [`Decoder`] puts this together: bytes in, one record after the other out. A record
//! holds one object at a time, at Kubernetes' full limits; the store keeps a compact form.

mod annotations;
mod condition;
#[cfg(feature = "statefulset")]
mod controller_revision;
mod decode;
mod deployment;
mod envelope;
mod id;
pub(crate) mod meta;
mod object;
mod pairs;
#[cfg(feature = "statefulset")]
mod persistent_volume_claim;
mod pod;
mod project;
pub(crate) mod replicaset;
mod selector;
#[cfg(feature = "statefulset")]
mod stateful_set;
mod status;
mod table;
mod template;
mod value;

pub use crate::kind::OwnerKind;
pub(crate) use annotations::Annotation;
pub use annotations::{IntAnnotation, RevisionHistory, SharedAnnotations};
pub use condition::{Condition, ConditionStatus};
#[cfg(feature = "statefulset")]
pub use controller_revision::{ControllerRevision, ControllerRevisionState};
pub use decode::{Answer, Decoder, ListEvent, PausedList, WatchEvent};
pub use deployment::{
    Deployment, DeploymentCondition, DeploymentState, DeploymentStatus, IntOrPercent, Strategy,
};
pub use envelope::{EventType, KnownObjects, ListMeta, ObjectFault};
pub use id::{ResourceVersion, Uid};
pub use meta::{ControllerRef, Meta, MetaState};
pub use object::Object;
#[cfg(feature = "statefulset")]
pub use persistent_volume_claim::{
    OwnerReference, PersistentVolumeClaim, PersistentVolumeClaimState,
};
pub use pod::{Pod, PodPhase, PodState};
pub use project::{Fault, FieldFault, Value};
pub(crate) use project::{FieldSink, Projection, Projector};
pub use replicaset::{ReplicaSet, ReplicaSetState, ReplicaSetStatus};
#[cfg(feature = "statefulset")]
pub use stateful_set::{StatefulSet, StatefulSetState, StatefulSetStatus, UpdateStrategyType};
pub use status::{Status, StatusReason};
pub use table::{Field, FieldTable, Rule};
pub use template::{POD_TEMPLATE, POD_TEMPLATE_HASH};
