//! A ReplicaSet creates no more pods than it lacks, by what it knows and by what is under way.

use picokube_core::manager::Body;

use super::super::operation::Verb;
use super::born::Born;
use super::wanted::Wanted;
use super::{Flights, Issued, Verdict};

pub(super) const PROPERTY: &str = "no more pods are created than are missing";

pub(super) fn check(
    wanted: &Wanted,
    flights: &Flights,
    born: &Born,
    issued: &Issued<'_, '_>,
) -> Verdict {
    if !issued.operation.is(Verb::Create, "pods") {
        return Ok(());
    }
    let Body::Splice(splice) = &issued.request.body else { return Ok(()) };
    let Some(set) = issued.keeper(splice.uid) else {
        return Err((PROPERTY, "the ReplicaSet is not in the cache".to_owned()));
    };
    // Those under way may be there already: the watch can be faster than the answer.
    let cached = issued.claimed(set).count();
    let unseen = born.unseen(issued.device, &splice.uid.to_string());
    let under_way = flights.of_owner(issued.device, Verb::Create, splice.uid).count();
    let wanted = wanted.most(issued.device, splice.uid);
    if cached + unseen >= wanted || under_way >= wanted {
        let detail = format!(
            "of {wanted} wanted, {cached} are in the cache, {unseen} were created and {under_way} \
             are under way"
        );
        return Err((PROPERTY, detail));
    }
    Ok(())
}
