//! At most one worker processes a key at a time: no object is patched twice at once.

use super::super::operation::Verb;
use super::{Flights, Issued, Model, Verdict};

pub(super) const PROPERTY: &str = "one worker per key";

/// An object that has gone is excused: a watch may tell of it again, and it gets another worker
/// while the last request of the first one is under way.
pub(super) fn check(flights: &Flights, issued: &Issued<'_, '_>, model: &Model) -> Verdict {
    let operation = issued.operation;
    let has_gone = uid(issued.document).is_some_and(|uid| model.gone.contains_key(uid));
    if operation.verb != Verb::Patch || operation.resource == "events" || has_gone {
        return Ok(());
    }
    // Patches name the object by its uid: another one may have the same name.
    let mut others = flights.of(issued.device).filter(|flight| flight.operation == *operation);
    if others.any(|flight| uid(&flight.document) == uid(issued.document)) {
        return Err((PROPERTY, "the object is being patched already".to_owned()));
    }
    Ok(())
}

fn uid(document: &str) -> Option<&str> {
    let (_, rest) = document.split_once("\"uid\":\"")?;
    rest.split('"').next()
}
