//! A Deployment that recreates starts no new pod while an old one is still there.

use picokube_core::kind::Kind;
use picokube_core::manager::{Body, Make};
use picokube_core::wire::Strategy;

use super::super::operation::Verb;
use super::rolling::Rolling;
use super::{Issued, Verdict};

pub(super) const PROPERTY: &str = "recreating starts nothing new before the old is gone";

pub(super) fn check(rolling: &Rolling, issued: &Issued<'_, '_>) -> Verdict {
    let cache = issued.cache;
    let deployment = match rolling.scaling(issued) {
        Some(scaling) if scaling.to > scaling.rs.record.replicas => {
            let is_new = scaling.rs.record.template() == scaling.d.record.template();
            if !is_new || scaling.is_resizing() {
                return Ok(());
            }
            scaling.deployment
        }
        Some(_) => return Ok(()),
        None => match &issued.request.body {
            Body::Splice(splice) if issued.operation.is(Verb::Create, "replicasets") => {
                let wants =
                    matches!(splice.make, Make::ReplicaSet { replicas, .. } if replicas > 0);
                match cache.deployments.find_uid(splice.uid) {
                    Some(deployment) if wants => deployment,
                    _ => return Ok(()),
                }
            }
            _ => return Ok(()),
        },
    };
    let Some(d) = cache.deployments.get(deployment) else { return Ok(()) };
    // Kubernetes creates the new ReplicaSet at once when it is asked to roll back.
    let rolls_back = d.record.rollback_to().value().is_some();
    if d.record.strategy() != Strategy::Recreate || d.record.is_paused() || rolls_back {
        return Ok(());
    }
    let template = d.record.template();
    let old = cache.pods.iter().filter(|(_, pod)| !pod.record.phase().is_terminal());
    let is_old = |set| {
        cache.owner_of(Kind::ReplicaSet, set).of(Kind::Deployment) == Some(deployment)
            && cache.replica_sets.get(set).is_some_and(|rs| rs.record.template() != template)
    };
    let old = old.filter(|(slot, _)| {
        cache.owner_of(Kind::Pod, *slot).of(Kind::ReplicaSet).is_some_and(is_old)
    });
    match old.count() {
        0 => Ok(()),
        count => Err((PROPERTY, format!("{count} old pods are still there"))),
    }
}
