//! What a splice is to make, and of what.

use heapless::String;

use crate::json::{Digest, ShortHash};
use crate::kind::Kind;
use crate::limits::{self, ObjectName, Target};
use crate::wire::{ResourceVersion, Uid};

/// A body that is made of a source object.
///
/// The driver GETs the source, feeds its bytes to a splicer for this value and sends what comes
/// out. Nothing must be sent to its end unless the source turned out to be the one named here:
/// the splicer checks uid and template. A body once made may be used again for requests that
/// want the same [`Splice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// The object to GET.
    pub source: Target,
    /// Its kind.
    pub kind: Kind,
    /// Its uid.
    pub uid: Uid,
    /// The digest its pod template must have.
    pub template: Digest,
    /// What to make of it.
    pub make: Make,
}

impl Splice {
    /// Whether the body of `other` would be the same, byte for byte.
    pub fn makes_the_same(&self, other: &Self) -> bool {
        let same_source = self.source == other.source && self.uid == other.uid;
        match (&self.make, &other.make) {
            (Make::Pod { owner: this, .. }, Make::Pod { owner: that, .. }) => {
                same_source && self.template == other.template && this == that
            }
            _ => self == other,
        }
    }
}

/// What a [`Splice`] makes of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Make {
    /// A ReplicaSet of a Deployment.
    ReplicaSet {
        /// Its name.
        name: ObjectName,
        /// The name of the source, which becomes its owner.
        owner: ObjectName,
        /// Value of the `pod-template-hash` label in labels, selector and template.
        hash: ShortHash,
        /// `spec.replicas`
        replicas: i32,
        /// `spec.minReadySeconds`
        min_ready_seconds: i32,
        /// `deployment.kubernetes.io/revision`
        revision: i64,
        /// `deployment.kubernetes.io/desired-replicas`
        desired_replicas: i32,
        /// `deployment.kubernetes.io/max-replicas`
        max_replicas: i32,
    },
    /// A pod of a ReplicaSet, named by the server.
    Pod {
        /// The name of the source, which becomes its owner.
        owner: ObjectName,
        /// Further pods of the same source that are wanted right after this one: worth keeping
        /// the body for.
        more: u16,
    },
    /// A merge patch of a ReplicaSet that takes over its Deployment's annotations.
    Annotations {
        /// uid of the ReplicaSet, as a precondition.
        target_uid: Uid,
        /// Version of the ReplicaSet, as a precondition.
        target_version: ResourceVersion,
        /// `deployment.kubernetes.io/revision`, if that is to change.
        revision: Option<i64>,
        /// `deployment.kubernetes.io/revision-history`, if that is to change.
        revision_history: Option<String<{ limits::REVISION_HISTORY }>>,
        /// `spec.minReadySeconds`
        min_ready_seconds: i32,
    },
    /// A JSON patch of a Deployment that takes over template and annotations of the source, a
    /// ReplicaSet, in place of its own.
    Rollback {
        /// The Deployment to GET before the source: which of its annotations have to go, is only
        /// known from itself.
        target: Target,
        /// uid of the Deployment, as a precondition.
        target_uid: Uid,
        /// Version of the Deployment, as a precondition.
        target_version: ResourceVersion,
    },
    /// A ControllerRevision of a StatefulSet, the source.
    #[cfg(feature = "statefulset")]
    ControllerRevision {
        /// Its name.
        name: ObjectName,
        /// The name of the source, which becomes its owner.
        owner: ObjectName,
        /// Value of the label `controller.kubernetes.io/hash`.
        hash: ShortHash,
        /// `revision`
        revision: i64,
    },
    /// A pod of a StatefulSet. The source is a ControllerRevision: the digest is that of its
    /// `data.spec.template`.
    #[cfg(feature = "statefulset")]
    StatefulSetPod {
        /// The name of the StatefulSet, which becomes its owner.
        owner: ObjectName,
        /// uid of the StatefulSet.
        owner_uid: Uid,
        /// Its ordinal.
        ordinal: i32,
        /// The name of the source, value of the label `controller-revision-hash`.
        revision: String<{ limits::REVISION_NAME }>,
        /// `spec.serviceName` of the StatefulSet, which becomes `spec.subdomain`; empty for none.
        subdomain: String<{ limits::LABEL_VALUE }>,
        /// The names of the claim templates, with commas between; empty for none.
        claims: String<{ limits::CLAIM_TEMPLATES }>,
    },
    /// A PersistentVolumeClaim of a StatefulSet's pod. The source is the StatefulSet, whose pod
    /// template may have changed meanwhile: its digest is not looked at.
    #[cfg(feature = "statefulset")]
    Claim {
        /// Its name.
        name: ObjectName,
        /// Which of `spec.volumeClaimTemplates` it is made of, from 0.
        index: u16,
    },
}
