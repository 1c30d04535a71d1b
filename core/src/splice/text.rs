//! What is ours in a body: all that does not come from the source.

#[cfg(feature = "statefulset")]
use super::stateful_set_pod::{POD_INDEX_LABEL, POD_NAME_LABEL, REVISION_LABEL};
use super::{Make, Splice, Text};
use crate::json::{Place, Writer};
use crate::kind::{Info, Kind};
use crate::limits;
use crate::planted::{Bug, planted};
#[cfg(feature = "statefulset")]
use crate::statefulset::identity::{ClaimName, PodName};
use crate::wire::Uid;

impl Text {
    /// Writes the text, the same each time; returns where the writer is then.
    pub(super) fn write(self, splice: &Splice, mut writer: Writer<'_>) -> Place {
        let w = &mut writer;
        match (self, &splice.make) {
            (Self::ReplicaSetHead, Make::ReplicaSet { name, owner, .. }) => {
                w.object().key("apiVersion").string("apps/v1").key("kind").string("ReplicaSet");
                w.key("metadata").object().key("name").string(name);
                owner_reference(w, api_kind(splice.kind), owner, splice.uid);
            }
            (Self::ReplicaSetSpec, Make::ReplicaSet { replicas, min_ready_seconds, .. }) => {
                w.end_object().key("spec").object().key("replicas").int((*replicas).into());
                w.key("minReadySeconds").int((*min_ready_seconds).into());
            }
            (Self::PodHead, Make::Pod { owner, .. }) => {
                w.object().key("apiVersion").string("v1").key("kind").string("Pod");
                w.key("metadata").object();
                generate_name(w, owner);
                owner_reference(w, api_kind(splice.kind), owner, splice.uid);
            }
            (Self::AnnotationsHead, Make::Annotations { target_uid, target_version, .. }) => {
                w.object().key("metadata").object().key("uid");
                w.display(format_args!("{target_uid}")).key("resourceVersion");
                w.display(format_args!("{target_version}"));
            }
            (Self::AnnotationsTail, Make::Annotations { min_ready_seconds, .. }) => {
                w.end_object().key("spec").object().key("minReadySeconds");
                w.int((*min_ready_seconds).into()).end_object().end_object();
            }
            (Self::RollbackHead, Make::Rollback { target_uid, target_version, .. }) => {
                w.array().object().key("op").string("test").key("path").string("/metadata/uid");
                w.key("value").display(format_args!("{target_uid}")).end_object();
                w.object().key("op").string("test");
                w.key("path").string("/metadata/resourceVersion");
                w.key("value").display(format_args!("{target_version}")).end_object();
            }
            (Self::RollbackTail, _) => {
                w.end_array();
            }
            (Self::ReplicaSetTail, _) => {
                w.end_object().end_object();
            }
            (Self::MetadataEnd | Self::End, _) => {
                w.end_object();
            }
            #[cfg(feature = "statefulset")]
            (Self::ControllerRevisionHead, Make::ControllerRevision { name, owner, .. }) => {
                w.object().key("apiVersion").string("apps/v1");
                w.key("kind").string("ControllerRevision");
                w.key("metadata").object().key("name").string(name);
                owner_reference(w, STATEFUL_SET, owner, splice.uid);
            }
            #[cfg(feature = "statefulset")]
            (Self::ControllerRevisionData, _) => {
                w.end_object().key("data").object().key("spec").object();
            }
            #[cfg(feature = "statefulset")]
            (Self::ControllerRevisionTail, Make::ControllerRevision { revision, .. }) => {
                w.end_object().end_object().key("revision").int(*revision).end_object();
            }
            #[cfg(feature = "statefulset")]
            (
                Self::StatefulSetPodHead,
                Make::StatefulSetPod { owner, owner_uid, ordinal, revision, .. },
            ) => {
                let name = PodName { set: owner, ordinal: *ordinal };
                w.object().key("apiVersion").string("v1").key("kind").string("Pod");
                w.key("metadata").object().key("name");
                if planted(Bug::OrdinalPadded) {
                    w.display(format_args!("{owner}-0{ordinal}"));
                } else {
                    w.display(format_args!("{name}"));
                }
                generate_name(w, owner);
                owner_reference(w, STATEFUL_SET, owner, *owner_uid);
                w.key("labels").object().key(POD_NAME_LABEL).display(format_args!("{name}"));
                w.key(POD_INDEX_LABEL).display(format_args!("{ordinal}"));
                w.key(REVISION_LABEL).string(revision);
            }
            #[cfg(feature = "statefulset")]
            (Self::LabelsEnd, _) => {
                w.end_object();
            }
            #[cfg(feature = "statefulset")]
            (Self::PodIdentity, Make::StatefulSetPod { owner, ordinal, subdomain, claims, .. }) => {
                pod_identity(w, PodName { set: owner, ordinal: *ordinal }, subdomain, claims);
            }
            #[cfg(feature = "statefulset")]
            (Self::ClaimHead, Make::Claim { name, .. }) => {
                w.object().key("apiVersion").string("v1");
                w.key("kind").string("PersistentVolumeClaim");
                w.key("metadata").object().key("name").string(name).key("labels").object();
            }
            // A splicer has only the texts of its own sort of body.
            _ => {}
        }
        writer.place()
    }
}

/// Kubernetes leaves the dash out where the prefix would be no name with it.
fn generate_name(w: &mut Writer<'_>, owner: &str) {
    let dash = if owner.len() < limits::NAME { "-" } else { "" };
    w.key("generateName").display(format_args!("{owner}{dash}"));
}

/// The volumes are left open, if there are claims: those of the template follow.
#[cfg(feature = "statefulset")]
fn pod_identity(w: &mut Writer<'_>, name: PodName<'_>, subdomain: &str, claims: &str) {
    w.key("hostname").display(format_args!("{name}"));
    if !subdomain.is_empty() {
        w.key("subdomain").string(subdomain);
    }
    if claims.is_empty() {
        return;
    }
    w.key("volumes").array();
    for template in claims.split(',') {
        let claim = ClaimName { template, set: name.set, ordinal: name.ordinal };
        w.object().key("name").string(template).key("persistentVolumeClaim").object();
        w.key("claimName").display(format_args!("{claim}")).end_object().end_object();
    }
}

#[cfg(feature = "statefulset")]
const STATEFUL_SET: (&str, &str) = ("apps/v1", "StatefulSet");

fn api_kind(kind: Kind) -> (&'static str, &'static str) {
    let Info { name, api_version, .. } = kind.info();
    (api_version, name)
}

fn owner_reference(
    writer: &mut Writer<'_>,
    (api_version, kind): (&str, &str),
    name: &str,
    uid: Uid,
) {
    if planted(Bug::OwnerAddedLater) {
        return;
    }
    writer.key("ownerReferences").array().object().key("apiVersion").string(api_version);
    writer.key("kind").string(kind).key("name").string(name).key("uid");
    writer.display(format_args!("{uid}")).key("controller").bool(true);
    writer.key("blockOwnerDeletion").bool(true).end_object().end_array();
}
