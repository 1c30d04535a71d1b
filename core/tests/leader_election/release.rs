//! An orderly end: upstream's `TestReleaseLease`, `TestReleaseRetriesOnConflict` and their like.

use picokube_core::leader_election::{Leadership, Step};
use serde_json::{Value, json};

use crate::lease::{Election, Fate, ME, OTHER};

const LOST: Step = Step::Announce(Leadership::Lost);

#[test]
fn a_leader_gives_the_lease_back() {
    let mut election = Election::led();
    election.wait(500);
    election.elector.release(election.now);
    assert!(!election.elector.leads());
    assert_eq!(election.steps(), [Step::Get, Step::Release, LOST]);
    assert!(election.elector.has_ended());
    let spec = election.spec();
    assert_eq!(spec["holderIdentity"], Value::Null);
    assert_eq!(spec["leaseDurationSeconds"], 1);
    assert_eq!(spec["leaseTransitions"], 0, "as before");
    assert_eq!(
        (&spec["acquireTime"], &spec["renewTime"]),
        (&spec["renewTime"], &json!(election.wall().rfc3339_micros().to_string()))
    );
    election.wait(60_000);
    assert_eq!(election.steps(), [], "it takes part no more");
}

#[test]
fn the_next_one_takes_over_at_its_next_try() {
    let mut election = Election::led();
    election.elector.release(election.now);
    election.steps();
    let lease = election.lease.clone();
    let mut other = Election::of(None);
    other.lease = lease;
    assert_eq!(other.try_once(), [Step::Get, Step::Update, Step::Renew]);
    assert_eq!(other.spec()["leaseTransitions"], 1);
}

#[test]
fn a_conflict_begins_the_release_again() {
    let mut election = Election::led();
    election.elector.release(election.now);
    election.fates = vec![Fate::Answered, Fate::Overtaken, Fate::Answered, Fate::Overtaken];
    assert_eq!(
        election.try_once(),
        [Step::Get, Step::Release, Step::Get, Step::Release, Step::Get, Step::Release]
    );
    assert_eq!(election.holder(), "");
}

#[test]
fn any_other_failure_gives_up() {
    for fates in [
        vec![Fate::Lost],
        vec![Fate::Refused(500)],
        vec![Fate::Answered, Fate::Refused(403)],
        vec![Fate::Answered, Fate::Lost],
    ] {
        let mut election = Election::led();
        election.elector.release(election.now);
        election.fates = fates.clone();
        election.steps();
        assert!(election.elector.has_ended(), "{fates:?}");
        assert_eq!(election.holder(), ME, "{fates:?}");
    }
}

#[test]
fn what_somebody_else_holds_is_left_alone() {
    let mut election = Election::led();
    election.wait(1_000);
    election.write(OTHER, 15);
    election.elector.release(election.now);
    assert_eq!(election.try_once(), [Step::Get]);
    assert!(election.elector.has_ended());
    assert_eq!(election.holder(), OTHER);
}

#[test]
fn who_stands_by_ends_at_once() {
    let mut election = Election::of(Some((OTHER, 15)));
    election.steps();
    election.elector.release(election.now);
    assert!(election.elector.has_ended());
    assert_eq!(election.steps(), []);
}

#[test]
fn who_was_about_to_become_the_leader_gives_back_what_it_may_have_got() {
    let mut election = Election::of(None);
    election.step();
    let wall = Some(election.wall());
    assert_eq!(election.elector.poll(election.now, wall, 0, false), Some(Step::Create));
    // It is carried out, and the end comes before the answer.
    election.write(ME, 15);
    let lease = election.lease.clone().unwrap().to_string();
    election.elector.release(election.now);
    election.elector.body(lease.as_bytes());
    election.elector.answered(Ok(201), election.now, 0);
    assert!(!election.elector.leads());
    assert_eq!(election.steps(), [Step::Get, Step::Release]);
    assert_eq!(election.holder(), "");
    assert!(election.elector.has_ended());
}

#[test]
fn nothing_is_given_back_while_writes_are_under_way_but_not_for_ever() {
    let mut election = Election::led();
    election.elector.release(election.now);
    let wall = Some(election.wall());
    assert_eq!(election.elector.poll(election.now, wall, 0, true), None);
    assert!(!election.elector.has_ended());
    election.wait(10_000);
    let wall = Some(election.wall());
    assert_eq!(election.elector.poll(election.now, wall, 0, true), Some(LOST));
    assert_eq!(election.holder(), ME, "the budget is used up");
}
