//! Tests of the store against a plain model of what it should hold.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const PODS: ResourceId = ResourceId(0);

fn store(changes: usize) -> Store {
    Store::new(1, HistoryLimits { changes, bytes: 1 << 20 })
}

fn put(store: &mut Store, key: &str, value: u32) -> Change {
    store.put(PODS, key, &mut json!({"metadata": {"uid": key}, "value": value}))
}

fn remove(store: &mut Store, key: &str) -> Option<Change> {
    let mut object = store.get(PODS, key)?.parse();
    store.remove(PODS, key, &mut object)
}

fn keys(entries: &[&Arc<Entry>]) -> Vec<String> {
    entries.iter().map(|entry| entry.key.to_string()).collect()
}

#[test]
fn revisions_grow_by_one_and_are_written_into_the_object() {
    let mut store = store(10);
    let first = put(&mut store, "a/x", 1);
    let second = put(&mut store, "a/x", 2);
    assert_eq!((first.kind, second.kind), (ChangeKind::Added, ChangeKind::Modified));
    assert_eq!(second.entry.revision, first.entry.revision + 1);
    assert_eq!(
        second.entry.parse()["metadata"]["resourceVersion"],
        second.entry.revision.to_string()
    );
    assert!(Arc::ptr_eq(&first.entry, second.previous.as_ref().unwrap()));
}

#[test]
fn a_range_stays_within_its_namespace() {
    let mut store = store(10);
    for key in ["a/x", "a/y", "a-b/x", "b/x"] {
        put(&mut store, key, 0);
    }
    let resource = store.resource(PODS);
    assert_eq!(keys(&resource.range("a/", None).collect::<Vec<_>>()), ["a/x", "a/y"]);
    assert_eq!(keys(&resource.range("a/", Some("a/x")).collect::<Vec<_>>()), ["a/y"]);
    assert_eq!(keys(&resource.range("a/", Some("a/y")).collect::<Vec<_>>()), [""; 0]);
    assert_eq!(keys(&resource.range("a/", Some("b/x")).collect::<Vec<_>>()), [""; 0]);
    assert_eq!(keys(&resource.range("a/", Some("a")).collect::<Vec<_>>()), ["a/x", "a/y"]);
    assert_eq!(resource.range("", None).count(), 4);
}

#[test]
fn what_only_the_history_holds_is_bounded() {
    let mut store = Store::new(1, HistoryLimits { changes: 1000, bytes: 500 });
    for value in 0..100 {
        put(&mut store, "a/x", value);
    }
    let kept = store.resource(PODS).changes_after(store.revision() - 5).unwrap().count();
    assert_eq!(kept, 5);
    assert!(store.resource(PODS).changes_after(2).is_err());
}

#[test]
fn dependents_follow_their_owner_references() {
    let mut store = store(10);
    let owned = |uid: &str| json!({"metadata": {"ownerReferences": [{"uid": uid}]}});
    store.put(PODS, "a/x", &mut owned("one"));
    store.put(PODS, "a/y", &mut owned("one"));
    store.put(PODS, "a/y", &mut owned("two"));
    let of = |store: &Store, uid: &str| {
        store.dependents_of(uid).map(|(_, key)| key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((of(&store, "one"), of(&store, "two")), (vec!["a/x".into()], vec!["a/y".into()]));
    remove(&mut store, "a/y");
    assert!(of(&store, "two").is_empty());
}

#[test]
fn a_journal_decides_what_is_durable() {
    let mut store = store(10);
    put(&mut store, "a/x", 1);
    assert_eq!(store.durable(), store.revision());
    store.follow_with_journal();
    put(&mut store, "a/x", 2);
    assert_eq!(store.durable(), store.revision() - 1);
    assert_eq!(store.take_unsaved().changes.len(), 1);
    store.saved(store.revision());
    assert_eq!(store.durable(), store.revision());
}

proptest! {
    /// Whatever happened, the state at any revision that is still known can be read back, and the
    /// changes after it lead from there to now.
    #[test]
    fn the_past_can_be_read_back(
        steps in prop::collection::vec((0u8..6, any::<bool>()), 1..80),
        limit in 1usize..60,
        after in 0u8..6,
    ) {
        let mut store = store(limit);
        let mut model: BTreeMap<String, u64> = BTreeMap::new();
        let mut versions = vec![(store.revision(), model.clone())];
        for (step, (name, delete)) in steps.into_iter().enumerate() {
            let key = format!("{}/{name}", ["a", "b"][usize::from(name % 2)]);
            if delete {
                if remove(&mut store, &key).is_some() {
                    model.remove(&key);
                }
            } else {
                put(&mut store, &key, step as u32);
                model.insert(key, store.revision());
            }
            versions.push((store.revision(), model.clone()));
        }
        let resource = store.resource(PODS);
        for (revision, expected) in versions {
            let known = revision >= resource.compacted();
            let past = resource.range_at(revision, "", None);
            let changes = resource.changes_after(revision);
            prop_assert_eq!(past.is_ok(), known);
            prop_assert_eq!(changes.is_ok(), known);
            let (Ok(past), Ok(changes)) = (past, changes) else { continue };
            let seen: Vec<(String, u64)> =
                past.map(|entry| (entry.key.to_string(), entry.revision)).collect();
            prop_assert_eq!(&seen, &expected.clone().into_iter().collect::<Vec<_>>());
            let after = format!("a/{after}");
            let page = resource.range_at(revision, "a/", Some(&after));
            let page: Vec<String> =
                page.into_iter().flatten().map(|entry| entry.key.to_string()).collect();
            let rest = expected.into_keys().filter(|key| key.starts_with("a/") && *key > after);
            prop_assert_eq!(page, rest.collect::<Vec<_>>());
            let seen: BTreeMap<String, u64> = seen.into_iter().collect();
            let mut replayed = seen;
            let mut last = revision;
            for change in changes {
                prop_assert!(change.entry.revision > last);
                last = change.entry.revision;
                if change.kind == ChangeKind::Deleted {
                    prop_assert!(replayed.remove(&*change.entry.key).is_some());
                } else {
                    let before = replayed.insert(change.entry.key.to_string(), last);
                    prop_assert_eq!(before.is_some(), change.kind == ChangeKind::Modified);
                }
            }
            prop_assert_eq!(&replayed, &model);
        }
    }
}
