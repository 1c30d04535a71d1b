//! Reading a Lease: every split, every order, every lie.

use picokube_core::leader_election::{Lease, LeaseReader};
use picokube_core::time::Timestamp;
use serde_json::{Value, json};

const LEASE: &str = include_str!("../data/lease.json");

fn read(text: &str, chunk: usize) -> Option<Lease> {
    let mut reader = LeaseReader::new();
    text.as_bytes().chunks(chunk).for_each(|chunk| reader.feed(chunk));
    reader.lease().cloned()
}

fn time(text: &str) -> Option<Timestamp> {
    Some(Timestamp::parse_rfc3339(text.as_bytes()).unwrap())
}

#[test]
fn a_lease_has_its_holder_and_times_however_it_comes() {
    for chunk in 1..=LEASE.len() {
        let Lease { record, version, uid } = read(LEASE, chunk).unwrap();
        assert_eq!(
            (version.number(), uid.to_string().as_str()),
            (9_001, "1b2c3d4e-5f60-4718-8293-a4b5c6d7e8f9")
        );
        assert_eq!(record.holder(), "gateway-1_7f1e0a3c-9b2d-4c5e-8f60-0123456789ab");
        assert!(record.is_held_by("gateway-1_7f1e0a3c-9b2d-4c5e-8f60-0123456789ab"));
        assert_eq!((record.duration_seconds, record.transitions), (15, 4));
        assert_eq!(record.acquired, time("2026-03-02T08:00:00.000001Z"));
        assert_eq!(record.renewed, time("2026-03-02T08:15:30.123456Z"));
    }
}

#[test]
fn nothing_else_in_it_is_taken_for_it() {
    let mut lease: Value = serde_json::from_str(LEASE).unwrap();
    let plain = read(LEASE, 64);
    lease["metadata"]["managedFields"] =
        json!([{"fieldsV1": {"f:spec": {"f:holderIdentity": {}}}}]);
    lease["metadata"]["annotations"] = json!({"holderIdentity": "x", "resourceVersion": "1"});
    lease["metadata"]["spec"] = json!({"holderIdentity": "x"});
    lease["spec"]["metadata"] = json!({"resourceVersion": "2"});
    lease["spec"]["preferredHolder"] = json!("x");
    lease["spec"]["strategy"] = Value::Null;
    lease["holderIdentity"] = json!("x");
    lease["status"] = json!({"spec": [{"holderIdentity": "x"}]});
    for chunk in [1, 7, 64, 10_000] {
        assert_eq!(read(&lease.to_string(), chunk), plain);
    }
}

#[test]
fn what_is_missing_is_nothing_and_what_is_wrong_is_no_lease() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut lease: Value = serde_json::from_str(LEASE).unwrap();
        change(&mut lease);
        read(&lease.to_string(), 64)
    };
    let bare = with(&|lease| lease["spec"] = json!({"holderIdentity": null})).unwrap();
    assert!(bare.record.is_free() && bare.record.renewed.is_none());
    for wrong in [
        with(&|lease| lease["spec"] = json!("text")),
        with(&|lease| lease["spec"]["holderIdentity"] = json!({"a": 1})),
        with(&|lease| lease["spec"]["holderIdentity"] = json!(true)),
        with(&|lease| lease["spec"]["leaseDurationSeconds"] = json!("x")),
        with(&|lease| lease["spec"]["leaseTransitions"] = json!(4_294_967_296_i64)),
        with(&|lease| lease["spec"]["renewTime"] = json!("yesterday")),
        with(&|lease| lease["metadata"]["resourceVersion"] = json!("9".repeat(500))),
        with(&|lease| lease["metadata"] = Value::Null),
        read("[]", 1),
        read("7", 1),
        read("", 1),
        read("{\"metadata\":{\"resourceVersion\":\"1\"}", 5),
        read("{\"metadata\":{\"resourceVersion\":\"1\"}} x", 5),
    ] {
        assert_eq!(wrong, None);
    }
}
