//! Watches: order, selectors, resumption and endings.

use proptest::prelude::*;

use super::*;

#[test]
fn a_watch_without_a_version_begins_with_what_is_there() {
    let mut cluster = Cluster::new();
    cluster.make(PODS, pod("a"));
    let mut watch = cluster.watch(&format!("{PODS}?watch=1")).ok().unwrap();
    assert_eq!(watch.summary(&cluster), ["ADDED a"]);
    cluster.make(PODS, pod("b"));
    cluster.delete(&format!("{PODS}/a"), json!({}));
    let expected = ["ADDED b", "MODIFIED a", "DELETED a"];
    assert_eq!(watch.summary(&cluster), expected);
}

#[test]
fn a_deletion_carries_the_final_state_under_its_own_version() {
    let mut cluster = Cluster::new();
    let made = cluster.make(CONFIG_MAPS, config_map("c"));
    let version = cluster.server.store().revision();
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}");
    let mut watch = cluster.watch(&path).ok().unwrap();
    cluster.delete(&format!("{CONFIG_MAPS}/c"), json!({}));
    let events = watch.events(&cluster);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].1["metadata"]["uid"], made["metadata"]["uid"]);
    let version = cluster.server.store().revision().to_string();
    assert_eq!(events[0].1["metadata"]["resourceVersion"], version);
}

#[test]
fn selectors_turn_changes_into_arrivals_and_departures() {
    let mut cluster = Cluster::new();
    cluster.make(PODS, pod("a"));
    let version = cluster.server.store().revision();
    let path = format!("{PODS}?watch=1&labelSelector=tier%3Dfront&resourceVersion={version}");
    let mut watch = cluster.watch(&path).ok().unwrap();
    let tier = |tier: Value| json!({"metadata": {"labels": {"tier": tier}}});
    let pod_path = format!("{PODS}/a");
    cluster.merge(&pod_path, tier(json!("front")));
    cluster.merge(&pod_path, json!({"metadata": {"annotations": {"x": "1"}}}));
    cluster.merge(&pod_path, tier(json!("back")));
    cluster.merge(&pod_path, tier(json!("side")));
    let events = watch.events(&cluster);
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED"]);
    let departed = &events[2].1["metadata"];
    assert_eq!(departed["labels"]["tier"], "front", "the state before it left");
    let left_at = (cluster.server.store().revision() - 1).to_string();
    assert_eq!(departed["resourceVersion"], left_at, "under the version at which it left");
}

#[test]
fn a_streaming_list_ends_with_a_marked_bookmark_and_goes_on() {
    let mut cluster = Cluster::new();
    cluster.make(PODS, pod("a"));
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
        &allowWatchBookmarks=true";
    let mut watch = cluster.watch(&format!("{PODS}?{query}")).ok().unwrap();
    let events = watch.events(&cluster);
    assert_eq!(events.len(), 2);
    let (kind, object) = &events[1];
    assert_eq!((kind.as_str(), &object["kind"]), ("BOOKMARK", &json!("Pod")));
    assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    cluster.make(PODS, pod("b"));
    assert_eq!(watch.summary(&cluster), ["ADDED b"]);
    let refused = cluster.watch(&format!("{PODS}?watch=1&sendInitialEvents=true"));
    assert_eq!(refused.err().map(|response| response.status), Some(422));
}

#[test]
fn bookmarks_come_every_minute_and_before_the_end() {
    let mut cluster = Cluster::new();
    let query = "watch=1&allowWatchBookmarks=true&timeoutSeconds=100";
    let mut watch = cluster.watch(&format!("{PODS}?{query}")).ok().unwrap();
    assert!(watch.events(&cluster).is_empty());
    cluster.make(CONFIG_MAPS, config_map("elsewhere"));
    cluster.advance(60);
    let events = watch.events(&cluster);
    let version = cluster.server.store().revision().to_string();
    assert_eq!(events[0].1["metadata"]["resourceVersion"], version);
    cluster.advance(38);
    assert_eq!(watch.events(&cluster).len(), 1);
    cluster.advance(1);
    assert!(watch.events(&cluster).is_empty());
    cluster.advance(1);
    let (events, state) = watch.events_and_state(&cluster);
    assert_eq!((events.len(), state), (0, WatchState::Ended));
}

#[test]
fn a_version_that_is_no_longer_known_is_expired() {
    let mut cluster = Cluster::new();
    cluster.make(PODS, pod("a"));
    let old = cluster.server.store().revision();
    let mut slow = cluster.watch(&format!("{PODS}?watch=1&resourceVersion={old}")).ok().unwrap();
    cluster.make(PODS, pod("b"));
    cluster.make(PODS, pod("c"));
    let newest = cluster.server.store().revision();
    cluster.server.store_mut().compact(newest);
    let (events, state) = slow.events_and_state(&cluster);
    assert_eq!(state, WatchState::Ended);
    assert_eq!((events[0].0.as_str(), &events[0].1["code"]), ("ERROR", &json!(410)));
    let refused = cluster.watch(&format!("{PODS}?watch=1&resourceVersion={old}")).err().unwrap();
    assert_eq!(refused.status, 410);
    let message = refused.into_value()["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(message, format!("too old resource version: {old} ({newest})"));
    assert!(cluster.watch(&format!("{PODS}?watch=1&resourceVersion={newest}")).is_ok());
}

/// What watches are told is what is stored, byte for byte: nothing is serialised for them.
#[test]
fn all_watches_are_given_the_bytes_that_are_stored() {
    let mut cluster = Cluster::new();
    let mut watchers: Vec<Watch> =
        (0..10).map(|_| cluster.watch(&format!("{PODS}?watch=1")).ok().unwrap().watch).collect();
    cluster.make(PODS, pod("a"));
    let pods = cluster.server.resources.pods;
    let stored = cluster.server.store().get(pods, "default/a").unwrap().json.clone();
    let stored = String::from_utf8(stored.to_vec()).unwrap();
    for watch in &mut watchers {
        let mut told = Vec::new();
        watch.fill(cluster.server.store(), cluster.now, &mut told, usize::MAX);
        let told = String::from_utf8(told).unwrap();
        assert_eq!(told, format!("{{\"type\":\"ADDED\",\"object\":{stored}}}\n"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A client that lists, watches, loses its connection after any number of events and resumes
    /// at the last version it saw ends up with exactly what is there, and sees each change once.
    #[test]
    fn a_resumed_watch_misses_and_repeats_nothing(
        steps in prop::collection::vec((0u8..5, 0u8..4), 1..60),
        cuts in prop::collection::vec(0usize..6, 1..12),
        selector in prop_oneof![Just(""), Just("&labelSelector=color%3Dred")],
    ) {
        let mut cluster = Cluster::new();
        let start = cluster.server.store().revision();
        for (name, action) in steps {
            let path = format!("{CONFIG_MAPS}/c{name}");
            match action {
                0 => { cluster.delete(&path, json!({})); }
                1 => { cluster.post(CONFIG_MAPS, config_map(&format!("c{name}"))); }
                color => {
                    let color = if color == 2 { "red" } else { "blue" };
                    let labels = json!({"metadata": {"labels": {"color": color}}});
                    cluster.merge(&path, labels);
                }
            }
        }
        let mut seen: std::collections::BTreeMap<String, Value> = Default::default();
        let mut version = start;
        let mut cuts = cuts.into_iter();
        loop {
            let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={version}{selector}");
            let mut events = cluster.watch(&path).ok().unwrap().events(&cluster);
            let cut = cuts.next();
            let complete = cut.is_none();
            events.truncate(cut.unwrap_or(usize::MAX));
            for (kind, object) in events {
                let at: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                prop_assert!(at > version, "{} repeats {}", at, version);
                version = at;
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                let known = seen.contains_key(&name);
                match kind.as_str() {
                    "ADDED" => { prop_assert!(!known); seen.insert(name, object); }
                    "MODIFIED" => { prop_assert!(known); seen.insert(name, object); }
                    _ => { prop_assert!(seen.remove(&name).is_some()); }
                }
            }
            if complete {
                break;
            }
        }
        let selector = selector.replacen('&', "?", 1);
        let (_, list) = cluster.get(&format!("{CONFIG_MAPS}{selector}"));
        let seen: Vec<Value> = seen.into_values().collect();
        prop_assert_eq!(&Value::Array(seen), &list["items"]);
    }
}
