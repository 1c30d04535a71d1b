//! A try to acquire or renew, from every state of the Lease: upstream's `TestTryAcquireOrRenew`.

use picokube_core::leader_election::{Leadership, Step};
use serde_json::json;

use crate::lease::{Election, Fate, ME, OTHER};

/// A Lease, how long it was looked at before without a change, and what comes of a try then.
struct Case {
    name: &'static str,
    lease: Option<(&'static str, i32)>,
    seen_millis: Option<u64>,
    fates: &'static [Fate],
    leads: bool,
    transitions: i64,
}

const CASES: [Case; 13] = [
    Case {
        name: "acquire from no object",
        lease: None,
        seen_millis: None,
        fates: &[],
        leads: true,
        transitions: 0,
    },
    Case {
        name: "acquire from an object that nobody holds, which is a transition",
        lease: Some(("", 15)),
        seen_millis: None,
        fates: &[],
        leads: true,
        transitions: 4,
    },
    Case {
        name: "acquire from a released object that was just seen",
        lease: Some(("", 1)),
        seen_millis: Some(0),
        fates: &[],
        leads: true,
        transitions: 4,
    },
    Case {
        name: "do not acquire from a led object, however old its times are",
        lease: Some((OTHER, 15)),
        seen_millis: None,
        fates: &[],
        leads: false,
        transitions: 3,
    },
    Case {
        name: "do not acquire from a led object within its duration",
        lease: Some((OTHER, 15)),
        seen_millis: Some(14_999),
        fates: &[],
        leads: false,
        transitions: 3,
    },
    Case {
        name: "acquire from a led object that has not changed for its duration",
        lease: Some((OTHER, 15)),
        seen_millis: Some(15_000),
        fates: &[],
        leads: true,
        transitions: 4,
    },
    Case {
        name: "the duration is the one that the object says, where it is shorter",
        lease: Some((OTHER, 3)),
        seen_millis: Some(3_000),
        fates: &[],
        leads: true,
        transitions: 4,
    },
    Case {
        name: "and where it is longer",
        lease: Some((OTHER, 60)),
        seen_millis: Some(30_000),
        fates: &[],
        leads: false,
        transitions: 3,
    },
    Case {
        name: "a negative duration is over",
        lease: Some((OTHER, -1)),
        seen_millis: Some(0),
        fates: &[],
        leads: true,
        transitions: 4,
    },
    Case {
        name: "renew what one holds already, without a transition",
        lease: Some((ME, 15)),
        seen_millis: None,
        fates: &[],
        leads: true,
        transitions: 3,
    },
    Case {
        name: "somebody else was faster to take it",
        lease: Some(("", 15)),
        seen_millis: None,
        fates: &[Fate::Answered, Fate::Overtaken],
        leads: false,
        transitions: 3,
    },
    Case {
        name: "the object cannot be read",
        lease: None,
        seen_millis: None,
        fates: &[Fate::Refused(403)],
        leads: false,
        transitions: 0,
    },
    Case {
        name: "the object cannot be created",
        lease: None,
        seen_millis: None,
        fates: &[Fate::Answered, Fate::Refused(409)],
        leads: false,
        transitions: 0,
    },
];

#[test]
fn a_try_comes_out_as_upstreams_does() {
    for Case { name, lease, seen_millis, fates, leads, transitions } in CASES {
        let mut election = Election::of(lease);
        if let Some(millis) = seen_millis {
            // It is seen while somebody else is faster, so that nothing comes of it.
            election.fates = vec![Fate::Answered, Fate::Refused(409)];
            election.try_once();
            assert!(!election.elector.leads(), "{name}");
            // No try comes sooner.
            election.wait(millis.max(2_400));
        }
        election.fates = fates.to_vec();
        election.try_once();
        assert_eq!(election.elector.leads(), leads, "{name}: {:?}", election.told);
        let spec = election.spec();
        assert_eq!(spec["leaseTransitions"].as_i64().unwrap_or(0), transitions, "{name}");
        if leads {
            assert_eq!(spec["holderIdentity"], ME, "{name}");
            assert_eq!(spec["leaseDurationSeconds"], 15, "{name}");
            assert_eq!(election.elector.take_news(), Some(Leadership::Gained), "{name}");
        }
    }
}

#[test]
fn times_have_six_digits_and_a_new_term_has_its_own() {
    let mut election = Election::of(Some(("", 15)));
    let wall = election.wall().rfc3339_micros().to_string();
    election.step();
    election.step();
    assert_eq!(wall.len(), "2026-01-31T23:59:59.000042Z".len());
    assert_eq!(election.spec()["acquireTime"], wall);
    assert_eq!(election.spec()["renewTime"], wall);
    assert_eq!(election.lease.unwrap()["metadata"]["labels"], json!({"kept": "by others"}));
}

#[test]
fn a_change_of_the_object_starts_the_wait_anew() {
    let mut election = Election::of(Some((OTHER, 15)));
    for _ in 0..20 {
        assert_eq!(election.try_once(), [Step::Get]);
        election.wait(2_000);
        election.write(OTHER, 15);
    }
    // The last change is seen now.
    assert_eq!(election.try_once(), [Step::Get]);
    election.wait(14_999);
    assert_eq!(election.try_once(), [Step::Get]);
    election.wait(2_000);
    assert_eq!(election.try_once(), [Step::Get, Step::Update, Step::Renew]);
    assert_eq!(election.holder(), ME);
}

#[test]
fn two_renewals_within_a_second_look_the_same() {
    let mut election = Election::of(Some((OTHER, 15)));
    election.try_once();
    election.wait(2_000);
    // Another version, and a time that differs in its fraction.
    let lease = election.lease.as_mut().unwrap();
    let time = lease["spec"]["renewTime"].as_str().unwrap().replace(".000000Z", ".999999Z");
    lease["spec"]["renewTime"] = json!(time);
    lease["metadata"]["resourceVersion"] = json!("1000");
    assert_eq!(election.try_once(), [Step::Get]);
    election.wait(13_000);
    assert_eq!(election.try_once().first(), Some(&Step::Get));
    assert!(election.elector.leads(), "the wait began when the Lease was seen first");
}

#[test]
fn who_stands_by_waits_between_tries_and_tells_who_leads() {
    let mut election = Election::of(Some((OTHER, 15)));
    assert_eq!(election.try_once(), [Step::Get]);
    assert_eq!(election.elector.holder(), OTHER);
    election.wait(1_999);
    assert_eq!(election.try_once(), []);
    assert!(election.elector.poll_at() > Some(election.now));
    election.wait(1);
    assert_eq!(election.try_once(), [Step::Get]);
}

#[test]
fn a_holder_with_an_endless_name_is_somebody_else() {
    let name: &'static str = "é".repeat(500).leak();
    let mut election = Election::of(Some((name, 15)));
    assert_eq!(election.try_once(), [Step::Get]);
    assert!(name.starts_with(election.elector.holder()) && election.elector.holder().len() > 200);
    election.wait(15_000);
    election.try_once();
    assert_eq!(election.holder(), ME);
}
