//! A ReplicaSet deletes only pods that are its own, and only as many as are too many.

use picokube_core::kind::Kind;

use super::super::operation::{Operation, Verb};
use super::wanted::Wanted;
use super::{Flights, Issued, KEEPERS, Keeper, Tables, Verdict};

pub(super) const OWNED: &str = "only own pods are deleted";
pub(super) const SURPLUS: &str = "only surplus pods are deleted";

pub(super) fn check(wanted: &Wanted, flights: &Flights, issued: &Issued<'_, '_>) -> Verdict {
    if !issued.operation.is(Verb::Delete, "pods") {
        return Ok(());
    }
    let cache = issued.cache;
    if is_of_stateful_set(issued) {
        return Ok(());
    }
    let set = owner_of_pod(issued);
    let set = set.and_then(|set| Some((set, cache.table_of(set.0).get(set.1)?.uid())));
    let Some((set, uid)) = set else {
        return Err((OWNED, "no ReplicaSet in the cache owns the pod".to_owned()));
    };
    let claimed: Vec<String> =
        issued.claimed(set).map(|(_, pod)| pod.display_name(cache.texts).to_string()).collect();
    let others = flights.of_owner(issued.device, Verb::Delete, uid);
    let under_way = others.filter(|flight| claimed.contains(&flight.operation.name)).count();
    let wanted = wanted.least(issued.device, uid);
    let active = claimed.len();
    if active - under_way <= wanted && claimed.contains(&issued.operation.name) {
        let detail = format!("{active} active, {under_way} of them going, {wanted} wanted");
        return Err((SURPLUS, detail));
    }
    Ok(())
}

/// Whether a request is about the pod of a StatefulSet, which has rules of its own.
fn is_of_stateful_set(issued: &Issued<'_, '_>) -> bool {
    let Operation { namespace, name, .. } = issued.operation;
    let pod = issued.cache.pods.find(issued.cache.texts, namespace, name);
    pod.is_some_and(|pod| issued.cache.owner_of(Kind::Pod, pod).of(Kind::StatefulSet).is_some())
}

/// The ReplicaSet or ReplicationController whose pod a request is about.
pub(super) fn owner_of_pod(issued: &Issued<'_, '_>) -> Option<Keeper> {
    let cache = issued.cache;
    let operation = issued.operation;
    let pod = cache.pods.find(cache.texts, &operation.namespace, &operation.name)?;
    let owner = cache.owner_of(Kind::Pod, pod);
    KEEPERS.into_iter().find_map(|kind| Some((kind, owner.of(kind)?)))
}
