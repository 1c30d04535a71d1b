//! Creations that are refused, and tried again after delays that double.
//!
//! How often that has happened is up to the moment at which somebody looks. The recorded player looked when
//! nothing had happened for so long, which a busy machine measures otherwise. What it saw then is in the
//! recording: so many refusals are waited for. If a busy machine has seen more, that is no difference
//! ([`Facets::without_counting_refusals`](super::facets::Facets)); in virtual time it is one.

use serde_json::Value;

use super::facets::REFUSED;
use super::recorder::Seen;
use super::resource::Resource;
use super::scenario::Recording;

/// How many refusals were told of until the step after this one began, if every run told of as many.
pub(super) fn recorded(recording: &Recording, step: usize) -> Option<u64> {
    let is_later = |row: &&Value| row["step"].as_u64().is_some_and(|number| number > step as u64);
    let until_then = recording.trace.iter().take_while(|row| !is_later(row));
    // An event that is told of again is one more.
    let refusals = until_then.filter(|row| row["kind"] == "Event" && row["reason"] == REFUSED);
    let count = refusals.count() as u64;
    let is_stable = recording.stable.iter().any(|facet| facet == "events");
    (is_stable && count > 0).then_some(count)
}

/// How many have been told of.
pub(super) fn seen(seen: &Seen) -> u64 {
    let events = seen.objects(Resource::Events).filter(|event| event["reason"] == REFUSED);
    events.map(|event| event["count"].as_u64().unwrap_or(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, directory};

    fn refusals(scenario: &str, step: usize) -> Option<u64> {
        let scenario = Scenario::load(&directory().join(scenario)).expect("a scenario");
        recorded(&scenario.recording, step)
    }

    #[test]
    fn those_that_were_recorded_before_the_next_step_count() {
        assert_eq!(refusals("s-quota", 0), None, "there is room for one");
        assert_eq!(refusals("s-quota", 2), Some(10));
        assert_eq!(refusals("s-quota", 5), Some(10), "no more after the quota is gone");
        assert_eq!(refusals("rs-quota", 3), Some(13));
        assert_eq!(refusals("d-quota-zero-deadline", 3), Some(11));
        assert_eq!(refusals("d-quota-failure", 3), None, "every run told of another number");
        assert_eq!(refusals("d-create-3", 2), None);
    }
}
