//! What is ours in a body: all that does not come from the source.

use super::{Make, Splice, Text};
use crate::json::{Place, Writer};
use crate::kind::{Info, Kind};
use crate::limits;
use crate::planted::{Bug, planted};
use crate::wire::Uid;

impl Text {
    /// Writes the text, the same each time; returns where the writer is then.
    pub(super) fn write(self, splice: &Splice, mut writer: Writer<'_>) -> Place {
        let w = &mut writer;
        match (self, &splice.make) {
            (Self::ReplicaSetHead, Make::ReplicaSet { name, owner, .. }) => {
                w.object().key("apiVersion").string("apps/v1").key("kind").string("ReplicaSet");
                w.key("metadata").object().key("name").string(name);
                owner_reference(w, splice.kind, owner, splice.uid);
            }
            (Self::ReplicaSetSpec, Make::ReplicaSet { replicas, min_ready_seconds, .. }) => {
                w.end_object().key("spec").object().key("replicas").int((*replicas).into());
                w.key("minReadySeconds").int((*min_ready_seconds).into());
            }
            (Self::PodHead, Make::Pod { owner, .. }) => {
                w.object().key("apiVersion").string("v1").key("kind").string("Pod");
                w.key("metadata").object().key("generateName");
                // Kubernetes leaves the dash out where the prefix would be no name with it.
                let dash = if owner.len() < limits::NAME { "-" } else { "" };
                w.display(format_args!("{owner}{dash}"));
                owner_reference(w, splice.kind, owner, splice.uid);
            }
            (Self::PodSpec, _) => {
                w.end_object();
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
            (Self::PodTail, _) => {
                w.end_object();
            }
            // A splicer has only the texts of its own sort of body.
            _ => {}
        }
        writer.place()
    }
}

fn owner_reference(writer: &mut Writer<'_>, kind: Kind, name: &str, uid: Uid) {
    if planted(Bug::OwnerAddedLater) {
        return;
    }
    let Info { name: kind, api_version, .. } = kind.info();
    writer.key("ownerReferences").array().object().key("apiVersion").string(api_version);
    writer.key("kind").string(kind).key("name").string(name).key("uid");
    writer.display(format_args!("{uid}")).key("controller").bool(true);
    writer.key("blockOwnerDeletion").bool(true).end_object().end_array();
}
