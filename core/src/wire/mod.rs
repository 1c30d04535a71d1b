//! Objects on the wire, and the typed records they become while they pass through.
//!
//! A record holds one object at a time, at Kubernetes' full limits; the store keeps a compact form.

mod annotations;
mod condition;
mod deployment;
mod id;
mod lease;
mod meta;
mod pod;
mod replicaset;
mod status;
mod template;

pub use annotations::{IntAnnotation, RevisionHistory, SharedAnnotations};
pub use condition::{Condition, ConditionStatus};
pub use deployment::{Deployment, DeploymentStatus, IntOrPercent, Strategy};
pub use id::{ResourceVersion, Uid};
pub use lease::Lease;
pub use meta::{ControllerRef, Meta, OwnerKind};
pub use pod::{Phase, Pod};
pub use replicaset::{ReplicaSet, ReplicaSetStatus};
pub use status::{Reason, Status};
pub use template::{POD_TEMPLATE, POD_TEMPLATE_HASH};
