//! A leader: how it renews, and how it notices that it does not lead any more.

use picokube_core::leader_election::{Leadership, Step};
use picokube_core::time::Duration;
use serde_json::json;

use crate::lease::{Election, Fate, ME, OTHER};

#[test]
fn who_has_become_the_leader_renews_at_once_and_then_every_period() {
    let mut election = Election::of(None);
    assert_eq!(election.try_once(), [Step::Get, Step::Create, Step::Renew]);
    for _ in 0..50 {
        election.wait(1_999);
        assert_eq!(election.try_once(), []);
        election.wait(1);
        assert_eq!(election.try_once(), [Step::Renew], "one request is enough");
    }
    assert_eq!(election.spec()["leaseTransitions"], 0);
}

#[test]
fn a_renewal_says_no_more_than_it_must() {
    let mut election = Election::led();
    election.wait(2_000);
    let wall = Some(election.wall());
    assert_eq!(election.elector.poll(election.now, wall, 0, false), Some(Step::Renew));
    let mut body = String::new();
    election.elector.write_body(&mut body).unwrap();
    let time = election.wall().rfc3339_micros();
    let version = election.lease.unwrap()["metadata"]["resourceVersion"].clone();
    assert_eq!(
        body,
        format!(
            r#"{{"metadata":{{"resourceVersion":{version}}},"spec":{{"renewTime":"{time}"}}}}"#
        )
    );
}

#[test]
fn a_conflict_leads_to_the_slow_path_and_the_term_goes_on() {
    for fate in [Fate::Overtaken, Fate::Lost, Fate::AnswerLost, Fate::Refused(500)] {
        let mut election = Election::led();
        let began = election.spec()["acquireTime"].clone();
        election.wait(2_000);
        election.fates = vec![fate];
        assert_eq!(election.try_once(), [Step::Renew, Step::Get, Step::Update], "{fate:?}");
        assert!(election.elector.leads());
        assert_eq!(election.elector.slow_paths(), 1);
        assert_eq!(election.elector.take_news(), Some(Leadership::Gained), "of the beginning");
        assert_eq!(election.elector.take_news(), None, "{fate:?}");
        assert_eq!(
            (&election.spec()["acquireTime"], &election.spec()["leaseTransitions"]),
            (&began, &json!(0))
        );
        election.wait(2_000);
        assert_eq!(election.try_once(), [Step::Renew], "{fate:?}");
    }
}

#[test]
fn a_leader_tries_every_period_until_the_deadline() {
    let mut election = Election::led();
    let renewed_at = election.now;
    let writes_until = election.elector.may_write_until();
    assert_eq!(writes_until, renewed_at + Duration::from_secs(10));
    election.wait(2_000);
    election.fates = vec![Fate::Lost; 100];
    for _ in 0..5 {
        assert!(election.elector.leads());
        assert_eq!(election.try_once(), [Step::Renew, Step::Get]);
        election.wait(2_000);
    }
    // Since the renewal was due, ten seconds have passed; writing ended two before.
    assert_eq!(election.now, writes_until + Duration::from_secs(2));
    assert_eq!(election.elector.may_write_until(), writes_until);
    election.try_once();
    assert!(!election.elector.leads());
    assert_eq!(election.holder(), ME, "it still says so, and nobody else may take it yet");
    // Back in time: nobody else has led.
    election.fates.clear();
    election.wait(4_400);
    assert_eq!(
        election.try_once().first(),
        Some(&Step::Get),
        "more than a lease duration has passed"
    );
    assert!(election.elector.leads());
    assert_eq!(election.spec()["leaseTransitions"], 0);
}

#[test]
fn a_renewal_that_works_at_the_last_moment_counts_from_when_it_was_sent() {
    let mut election = Election::led();
    election.wait(2_000);
    election.fates = vec![Fate::Lost; 8];
    for _ in 0..4 {
        election.try_once();
        election.wait(2_000);
    }
    let wall = Some(election.wall());
    let sent_at = election.now;
    assert_eq!(election.elector.poll(sent_at, wall, 0, false), Some(Step::Renew));
    assert_eq!(election.elector.expires_at(), sent_at + Duration::from_secs(2), "the deadline");
    let lease = election.lease.clone().unwrap().to_string();
    election.wait(1_500);
    election.elector.body(lease.as_bytes());
    election.elector.answered(Ok(200), election.now, 0);
    assert!(election.elector.leads());
    assert_eq!(election.elector.may_write_until(), sent_at + Duration::from_secs(10));
}

#[test]
fn whoever_sees_another_leader_stops_at_once() {
    for change in ["taken", "released", "deleted", "taken and given back"] {
        let mut election = Election::led();
        assert_eq!(election.elector.take_news(), Some(Leadership::Gained));
        election.wait(2_000);
        match change {
            "taken" => election.write(OTHER, 15),
            "released" => election.write("", 1),
            "deleted" => election.lease = None,
            _ => election.write(ME, 15),
        }
        assert_eq!(election.step(), Some(Step::Renew), "{change}");
        assert!(election.elector.leads(), "{change}: nothing is known yet");
        assert_eq!(election.step(), Some(Step::Get), "{change}");
        assert!(!election.elector.leads(), "{change}");
        assert!(election.elector.may_write_until() < election.now);
        assert_eq!(election.elector.take_news(), Some(Leadership::Lost), "{change}");
        election.try_once();
        assert_eq!(election.elector.leads(), change != "taken", "{change}");
    }
}

#[test]
fn a_server_that_does_not_tell_the_time_is_not_written_to() {
    let mut election = Election::of(None);
    assert_eq!(election.elector.poll(election.now, None, 0, false), Some(Step::Get));
    election.elector.answered(Ok(404), election.now, 0);
    assert_eq!(election.elector.poll(election.now, None, 0, false), None);
    assert!(election.elector.poll_at() > Some(election.now));
    election.wait(4_400);
    assert_eq!(election.try_once(), [Step::Get, Step::Create, Step::Renew]);
}

#[test]
fn events_tell_who_leads() {
    let mut election = Election::of(None);
    assert_eq!(
        election.steps(),
        [Step::Get, Step::Create, Step::Renew, Step::Announce(Leadership::Gained)]
    );
    election.wait(2_000);
    election.write(OTHER, 15);
    assert_eq!(election.steps(), [Step::Renew, Step::Get, Step::Announce(Leadership::Lost)]);
    // An event that the server refuses is not sent again.
    election.wait(15_000);
    election.fates = vec![Fate::Answered, Fate::Answered, Fate::Answered, Fate::Refused(403)];
    let gained = Step::Announce(Leadership::Gained);
    assert_eq!(election.steps(), [Step::Get, Step::Update, Step::Renew, gained]);
    election.wait(2_000);
    assert_eq!(election.steps(), [Step::Renew]);
}

#[test]
fn an_event_is_as_kubernetes_writes_it() {
    let mut election = Election::of(None);
    for _ in 0..3 {
        election.step();
    }
    let wall = Some(election.wall());
    election.elector.poll(election.now, wall, 0, false);
    let mut body = String::new();
    election.elector.write_body(&mut body).unwrap();
    let event: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(event["message"], "me became leader");
    assert_eq!((&event["reason"], &event["type"]), (&json!("LeaderElection"), &json!("Normal")));
    assert_eq!(event["involvedObject"]["kind"], "Lease");
    assert_eq!(event["involvedObject"]["name"], "picokube");
    assert_eq!(event["metadata"]["namespace"], "kube-system");
    assert_eq!((&event["count"], &event["firstTimestamp"]), (&json!(1), &event["lastTimestamp"]));
}
