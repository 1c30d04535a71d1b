//! Upstream's health adaptor: ill is a leader whose lease ended long ago, and nobody else.

use picokube_core::leader_election::Step;

use crate::lease::{Election, Fate, OTHER};

#[test]
fn only_a_leader_is_ill_and_only_after_the_grace() {
    for (leads, millis, is_healthy) in [
        (false, 0, true),
        (false, 1_000_000, true),
        (true, 0, true),
        (true, 15_000, true),
        (true, 35_000, true),
        (true, 35_001, false),
    ] {
        let mut election = if leads { Election::led() } else { Election::of(Some((OTHER, 15))) };
        election.steps();
        election.wait(millis);
        // Somebody asks before anything else has happened, as after a long freeze.
        assert_eq!(election.elector.is_healthy(election.now), is_healthy, "{leads} {millis}");
    }
}

#[test]
fn who_has_lost_is_well_again() {
    let mut election = Election::led();
    election.wait(40_000);
    election.fates = vec![Fate::Lost];
    assert!(!election.elector.is_healthy(election.now));
    let steps = election.steps();
    assert_eq!(steps.first(), Some(&Step::Get));
    assert!(election.elector.is_healthy(election.now));
}
