//! Lists and watches: pages, every type of event, and what happens to those that are broken.

use picokube_core::json::Digest;
use picokube_core::text::{Fingerprint, Label};
use picokube_core::wire::{
    Decoder, Deployment, EventType, KnownObjects, ListEvent, Meta, PausedList, Pod, ReplicaSet,
    StatusReason, WatchEvent,
};
use serde_json::{Value, json};

const POD: &str = include_str!("data/pod.json");
const STATUS: &str = include_str!("data/status.json");

/// What a list gives, as short texts.
fn list(text: &str, chunk: usize) -> Vec<String> {
    let mut decoder = Box::new(Decoder::<Pod>::new());
    let events = list_with(&mut decoder, text, chunk);
    assert!(decoder.is_done());
    events
}

fn list_with(decoder: &mut Decoder<Pod>, text: &str, chunk: usize) -> Vec<String> {
    decoder.reset();
    let mut events = Vec::new();
    for mut rest in text.as_bytes().chunks(chunk) {
        while !rest.is_empty() {
            let (read, event) = decoder.feed_list(rest).unwrap();
            rest = &rest[read..];
            events.extend(event.map(list_event));
        }
    }
    events
}

fn list_event(event: ListEvent<'_, Pod>) -> String {
    match event {
        ListEvent::Item(pod) => format!("{} {}", pod.meta.name, pod.restarts),
        ListEvent::Faulty(fault) => fault.to_string(),
        ListEvent::End(meta) => format!(
            "end at {}, continue {:?}, remaining {:?}",
            meta.resource_version, meta.continue_token, meta.remaining
        ),
        ListEvent::FaultyEnd(fault) => format!("end: {fault}"),
        ListEvent::Status(status) => format!("{} {:?}", status.code, status.reason),
    }
}

/// What a watch gives, as short texts.
fn watch(text: &str, chunk: usize) -> Vec<String> {
    let mut decoder = Box::new(Decoder::<Pod>::new());
    let mut events = Vec::new();
    for mut rest in text.as_bytes().chunks(chunk) {
        while !rest.is_empty() {
            let (read, event) = decoder.feed_watch(rest, None).unwrap();
            rest = &rest[read..];
            events.extend(event.map(|event| match event {
                WatchEvent::Added(pod) => format!("added {}", pod.meta.name),
                WatchEvent::Modified(pod) => format!("modified {}", pod.meta.name),
                WatchEvent::Metadata(_, meta) => format!("metadata of {}", meta.name),
                WatchEvent::Deleted(pod) => format!("deleted {}", pod.meta.name),
                WatchEvent::Bookmark { resource_version, ends_initial_events } => {
                    format!("bookmark {resource_version} {ends_initial_events}")
                }
                WatchEvent::Error(status) => format!("error {} {:?}", status.code, status.reason),
                WatchEvent::Faulty(change, fault) => format!("{change:?} {fault}"),
                WatchEvent::Unknown => "unknown".to_owned(),
            }));
        }
    }
    assert!(decoder.is_between_events());
    events
}

fn pod(name: &str) -> Value {
    let mut pod: Value = serde_json::from_str(POD).unwrap();
    pod["metadata"]["name"] = json!(name);
    pod
}

fn frame(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

#[test]
fn a_list_gives_its_items_and_then_its_version() {
    let token = "t".repeat(picokube_core::limits::CONTINUE);
    let page = json!({
        "kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "77", "continue": token, "remainingItemCount": 12},
        "items": [pod("a"), pod("b"), pod("c")],
    });
    let expected = [
        "a 2".to_owned(),
        "b 2".to_owned(),
        "c 2".to_owned(),
        format!("end at 77, continue {token:?}, remaining Some(12)"),
    ];
    for chunk in [1, 2, 7, 64, 1460, 100_000] {
        assert_eq!(list(&page.to_string(), chunk), expected, "in chunks of {chunk}");
    }
    // The same with the items first.
    let items = page["items"].to_string();
    let meta = page["metadata"].to_string();
    let turned = format!("{{\"items\":{items},\"metadata\":{meta},\"kind\":\"PodList\"}}\n");
    assert_eq!(list(&turned, 1000), expected);
}

#[test]
fn an_empty_list_is_a_list() {
    for items in [json!([]), Value::Null] {
        let page = json!({"metadata": {"resourceVersion": "5"}, "items": items});
        assert_eq!(list(&page.to_string(), 9), ["end at 5, continue \"\", remaining None"]);
    }
}

#[test]
fn a_broken_item_does_not_hide_the_others() {
    let mut broken = pod("b");
    broken["spec"]["nodeName"] = json!(5);
    let page =
        json!({"metadata": {"resourceVersion": "5"}, "items": [pod("a"), broken, pod("c"), 7]});
    assert_eq!(
        list(&page.to_string(), 100),
        [
            "a 2",
            "Pod shop/b: spec.nodeName: has the wrong type",
            "c 2",
            "end: items[]: has the wrong type",
        ]
    );
}

#[test]
fn an_item_that_is_no_object_does_not_harm_the_next() {
    let page = json!({"metadata": {"resourceVersion": "5"}, "items": [7, pod("a")]});
    assert_eq!(list(&page.to_string(), 100), ["a 2", "end: items[]: has the wrong type"]);
}

#[test]
fn a_list_that_fails_is_a_status() {
    let gone = r#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"again"},"status":"Failure",
        "message":"The provided continue parameter is too old","reason":"Expired","code":410}"#;
    assert_eq!(list(gone, 8), ["410 Expired"]);
    assert_eq!(list(STATUS, 8), ["403 Forbidden"]);
}

#[test]
fn metadata_that_cannot_be_used_is_told() {
    let metadata = json!({"resourceVersion": "5", "continue": "t".repeat(5_000)});
    let long = json!({"metadata": metadata, "items": [pod("a")]});
    assert_eq!(list(&long.to_string(), 100), ["a 2", "end: metadata.continue: is too long"]);
    let none = json!({"items": [], "metadata": {}});
    assert_eq!(list(&none.to_string(), 100), ["end: metadata.resourceVersion: is missing"]);
    let bad = json!({"items": [], "metadata": {"resourceVersion": "x"}});
    assert_eq!(list(&bad.to_string(), 100), ["end: metadata.resourceVersion: is malformed"]);
}

#[test]
fn between_items_of_a_list_something_else_can_be_read() {
    let items: Vec<Value> = ["a", "b", "c"].map(pod).to_vec();
    let metadata = json!({"resourceVersion": "5", "continue": "next", "remainingItemCount": 4});
    let first = format!("{{\"metadata\":{metadata},\"items\":{}}}", json!(items));
    let last = format!("{{\"items\":{},\"metadata\":{metadata}}}", json!(items));
    let odd = json!({"metadata": metadata, "items": [pod("a"), 7, pod("b")]}).to_string();
    for text in [first, last, odd] {
        let expected = list(&text, text.len());
        for chunk in [1, 7, 333, text.len()] {
            let mut decoder = Box::new(Decoder::<Pod>::new());
            let mut paused = PausedList::EMPTY;
            let (mut events, mut pauses) = (Vec::new(), 0);
            for mut rest in text.as_bytes().chunks(chunk) {
                while !rest.is_empty() {
                    if decoder.pause_list(&mut paused) {
                        pauses += 1;
                        decoder.restart();
                        let event = frame("MODIFIED", &pod("other"));
                        let half = decoder.feed_watch(&event.as_bytes()[..event.len() / 2], None);
                        assert!(half.unwrap().1.is_none());
                        decoder.resume_list(&paused);
                    }
                    let (read, event) = decoder.feed_list(rest).unwrap();
                    rest = &rest[read..];
                    events.extend(event.map(list_event));
                }
            }
            assert_eq!(events, expected, "in chunks of {chunk}");
            assert!(pauses >= 2, "in chunks of {chunk}: {pauses}");
        }
    }
}

#[test]
fn a_decoder_reads_page_after_page() {
    let mut decoder = Box::new(Decoder::<Pod>::new());
    for name in ["a", "b"] {
        let page =
            json!({"metadata": {"resourceVersion": "5", "continue": name}, "items": [pod(name)]});
        let end = format!("end at 5, continue {name:?}, remaining None");
        assert_eq!(list_with(&mut decoder, &page.to_string(), 50), [format!("{name} 2"), end]);
    }
}

#[test]
fn a_watch_gives_events_of_every_type() {
    let bookmark = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "99",
        "creationTimestamp": null}, "spec": {"containers": null}, "status": {}});
    let mut last = bookmark.clone();
    last["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old",
        "metadata": {}, "status": "Failure"});
    let stream = [
        frame("ADDED", &pod("a")),
        frame("MODIFIED", &pod("b")),
        frame("BOOKMARK", &bookmark),
        frame("DELETED", &pod("c")),
        frame("BOOKMARK", &last),
        frame("RENAMED", &pod("d")),
        frame("ADDED", &pod("e")).trim_end().to_owned(),
        frame("ERROR", &gone),
    ]
    .concat();
    let expected = [
        "added a",
        "modified b",
        "bookmark 99 false",
        "deleted c",
        "bookmark 99 true",
        "unknown",
        "added e",
        "error 410 Expired",
    ];
    for chunk in [1, 2, 3, 8, 100, 1460, 1_000_000] {
        assert_eq!(watch(&stream, chunk), expected, "in chunks of {chunk}");
    }
}

#[test]
fn the_object_may_come_before_the_type() {
    let stream = format!("{{\"object\":{},\"type\":\"DELETED\"}}", pod("a"));
    assert_eq!(watch(&stream, 77), ["deleted a"]);
    let status = STATUS.trim();
    let stream = format!(
        "{{\"object\":{status},\"type\":\"ERROR\"}}\n{{\"object\":{},\"type\":\"ADDED\"}}",
        pod("a")
    );
    assert_eq!(watch(&stream, 77), ["error 403 Forbidden", "added a"]);
}

#[test]
fn a_broken_object_does_not_end_the_watch() {
    let mut broken = pod("b");
    broken["metadata"]["uid"] = json!("?");
    let stream =
        [frame("ADDED", &pod("a")), frame("MODIFIED", &broken), frame("ADDED", &pod("c"))].concat();
    assert_eq!(
        watch(&stream, 333),
        ["added a", "Modified Pod shop/b: metadata.uid: is malformed", "added c"]
    );
    let stream = [frame("BOOKMARK", &json!({"metadata": {}})), frame("ADDED", &pod("c"))].concat();
    assert_eq!(watch(&stream, 333), ["Bookmark Pod /: metadata.name: is missing", "added c"]);
    let stream = [frame("ADDED", &json!(7)), "{}\n".to_owned(), frame("ADDED", &pod("c"))].concat();
    assert_eq!(
        watch(&stream, 333),
        ["Added Pod /: object: has the wrong type", "unknown", "added c"]
    );
}

#[test]
fn a_watch_that_is_cut_off_or_garbled_says_so() {
    let mut decoder = Box::new(Decoder::<Deployment>::new());
    assert!(decoder.is_between_events());
    let (read, event) = decoder.feed_watch(b"{\"type\":\"ADDED\",\"obj", None).unwrap();
    assert!(read == 20 && event.is_none() && !decoder.is_between_events());
    decoder.reset();
    assert!(decoder.is_between_events());
    let error = decoder.feed_watch(b"<html>", None).err().unwrap();
    assert_eq!(error.to_string(), "invalid JSON at byte 0: expected a value");
}

#[test]
fn what_is_known_is_not_read_again_but_must_be_json() {
    struct Knows(fn(Option<EventType>, &Meta) -> bool);
    impl KnownObjects<Pod> for Knows {
        fn suffices(&self, change: Option<EventType>, meta: &Meta) -> bool {
            self.0(change, meta)
        }
    }
    let told = |text: &str, chunk: usize, memory: &Knows| {
        let mut decoder = Box::new(Decoder::<Pod>::new());
        let mut events = Vec::new();
        for mut rest in text.as_bytes().chunks(chunk) {
            while !rest.is_empty() {
                let (read, event) =
                    decoder.feed_watch(rest, Some(memory)).map_err(|_| "no JSON")?;
                rest = &rest[read..];
                events.extend(event.map(|event| match event {
                    WatchEvent::Metadata(change, meta) => {
                        format!("{change:?}, metadata of {}", meta.name)
                    }
                    WatchEvent::Modified(pod) => {
                        format!("{} restarts {}", pod.meta.name, pod.restarts)
                    }
                    WatchEvent::Deleted(pod) => format!("deleted {}", pod.meta.name),
                    other => format!("{other:?}"),
                }));
            }
        }
        Ok::<_, &str>(events)
    };
    let knows_b = Knows(|change, meta| {
        matches!(change, Some(EventType::Added | EventType::Modified)) && meta.name == "b"
    });
    let mut faulty = pod("b");
    faulty["metadata"]["labels"] = json!(7);
    // In the order in which Kubernetes writes it; only the last one has its type at the end.
    let event = |kind, object| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    let stream = [
        event("MODIFIED", pod("a")),
        event("ADDED", pod("b")),
        event("MODIFIED", faulty),
        event("DELETED", pod("b")),
        event("MODIFIED", pod("c")),
        format!("{{\"object\":{},\"type\":\"MODIFIED\"}}", pod("b")),
    ]
    .concat();
    for chunk in [stream.len(), 333, 7] {
        assert_eq!(
            told(&stream, chunk, &knows_b).unwrap(),
            [
                "a restarts 2",
                "Added, metadata of b",
                "Modified, metadata of b",
                "deleted b",
                "c restarts 2",
                "b restarts 2"
            ]
        );
    }
    let broken = event("MODIFIED", pod("b")).replace("\"spec\":{", "\"spec\":{,");
    assert_eq!(told(&broken, broken.len(), &Knows(|_, _| true)), Err("no JSON"));
}

#[test]
fn a_template_that_is_known_is_not_read() {
    /// Knows the templates of first generations.
    struct FirstGeneration;
    impl KnownObjects<ReplicaSet> for FirstGeneration {
        fn suffices(&self, _: Option<EventType>, _: &Meta) -> bool {
            false
        }

        fn recall_template(&self, object: &mut ReplicaSet) -> Option<Digest> {
            let is_first = object.meta.generation == 1;
            is_first.then(|| {
                object.template_labels.insert_text("recalled", "yes");
                Digest::from_bits(7)
            })
        }
    }
    let set = |generation: u64, template: &str| {
        format!(
            r#"{{"type":"MODIFIED","object":{{"metadata":{{"name":"a","namespace":"b","uid":
            "00000000-0000-0000-0000-000000000001","resourceVersion":"5","generation":{generation}
            }},"spec":{{"template":{template},"replicas":3}}}}}}"#
        )
    };
    let template = r#"{"metadata":{"labels":{"app":"a"}},"spec":{"hostname":"x"}}"#;
    let read = |stream: &str, chunk: usize| {
        let mut decoder = Box::new(Decoder::<ReplicaSet>::new());
        let mut events = Vec::new();
        for mut rest in stream.as_bytes().chunks(chunk) {
            while !rest.is_empty() {
                let (read, event) = decoder.feed_watch(rest, Some(&FirstGeneration)).unwrap();
                rest = &rest[read..];
                events.extend(event.map(|event| match event {
                    WatchEvent::Modified(set) => (
                        set.template,
                        set.template_labels.as_slice().unwrap().to_vec(),
                        set.replicas,
                    ),
                    other => panic!("{other:?}"),
                }));
            }
        }
        events
    };
    // Too deep to be digested: it must not even be looked at.
    let deep = [r#"{"a":"#.repeat(40), "1".to_owned(), "}".repeat(40)].concat();
    let stream = [set(1, template), set(2, template), set(1, &deep), set(2, template)].concat();
    let whole = read(&stream, stream.len());
    let label =
        |key: &str, value: &str| Label { key: Fingerprint::of(key), value: Fingerprint::of(value) };
    let recalled = (Digest::from_bits(7), vec![label("recalled", "yes")], 3);
    let itself = (whole[1].0, vec![label("app", "a")], 3);
    assert_eq!(whole, [&recalled, &itself, &recalled, &itself].map(Clone::clone));
    assert_ne!(itself.0, recalled.0);
    for chunk in [1, 7, 64, 333] {
        assert_eq!(read(&stream, chunk), whole, "in chunks of {chunk}");
    }
}

#[test]
fn bookmarks_are_read_for_every_kind() {
    let text = frame(
        "BOOKMARK",
        &json!({"kind": "X", "metadata": {"resourceVersion": "7",
        "annotations": {"k8s.io/initial-events-end": "true"}}}),
    );
    let mut deployments = Box::new(Decoder::<Deployment>::new());
    let mut replica_sets = Box::new(Decoder::<ReplicaSet>::new());
    let (_, event) = deployments.feed_watch(text.as_bytes(), None).unwrap();
    assert!(matches!(event, Some(WatchEvent::Bookmark { ends_initial_events: true, .. })));
    let (_, event) = replica_sets.feed_watch(text.as_bytes(), None).unwrap();
    assert!(matches!(event, Some(WatchEvent::Bookmark { ends_initial_events: true, .. })));
}

#[test]
fn reasons_and_changes_have_names() {
    assert_eq!(StatusReason::parse("Gone"), StatusReason::Gone);
    assert_eq!(StatusReason::parse("SomethingNew"), StatusReason::Unknown);
    assert_ne!(EventType::Added, EventType::Deleted);
}
