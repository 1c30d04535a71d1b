//! Any bytes as the selector of a ReplicaSet: matches what Kubernetes' definition says about the
//! same JSON read by serde, and leaves nothing behind in the table of texts.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::fuzz_target;
use picokube_core::text::{Interner, LabelSet, Labels, Selector, StoredSelector};
use picokube_core::wire::{Answer, Decoder, ReplicaSet};
use serde::Deserialize;

type Map = BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    match_labels: Option<Map>,
    match_expressions: Option<Vec<Requirement>>,
}

#[derive(Deserialize)]
struct Requirement {
    key: Option<String>,
    operator: Option<String>,
    values: Option<Vec<String>>,
}

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk, text) = input;
    let Some(selector) = decode(text, usize::from(chunk) + 1) else { return };
    let mut memory = Box::new(Interner::<[_; 400]>::new());
    let texts: &mut Interner = &mut *memory;
    let Ok(stored) = StoredSelector::intern(texts, &selector) else {
        assert_eq!(texts.used(), 0, "a refused selector left something");
        return;
    };
    assert_eq!(stored.validate(), selector.validate());
    if let Ok(plain) = serde_json::from_slice::<Option<LabelSelector>>(text) {
        compare(texts, stored, &selector, plain.as_ref());
    }
    stored.release(texts);
    assert_eq!(texts.used(), 0, "a released selector left something");
});

fn decode(text: &[u8], chunk: usize) -> Option<Selector> {
    let head = br#"{"metadata":{"namespace":"n","name":"r","resourceVersion":"1",
        "uid":"7f1e0a3c-9b2d-4c5e-8f60-0123456789ab"},"spec":{"selector":"#;
    let body = [head, text, b"}}"].concat();
    let mut decoder = Box::new(Decoder::<ReplicaSet>::new());
    for piece in body.chunks(chunk) {
        decoder.feed_answer(piece, None).ok()?;
    }
    match decoder.answer().ok()? {
        Answer::Object(rs) => Some(rs.selector.clone()),
        Answer::Metadata(_) | Answer::Status(_) | Answer::Faulty(_) => None,
    }
}

fn compare(
    texts: &mut Interner,
    stored: StoredSelector,
    selector: &Selector,
    plain: Option<&LabelSelector>,
) {
    let usable = plain.is_none_or(is_usable);
    assert_eq!(stored.validate().is_ok(), usable);
    for map in candidates(plain) {
        let mut labels = Labels::new();
        map.iter().for_each(|(key, value)| labels.insert_text(key, value));
        let Ok(all) = labels.as_slice() else { continue };
        let Ok(set) = LabelSet::intern(texts, all) else { continue };
        let expected = usable && plain.is_some_and(|plain| matches(plain, &map));
        assert_eq!(stored.matches(texts, set), expected, "{map:?}");
        let orphan = expected && !map.is_empty() && !selector.is_empty();
        assert_eq!(stored.matches_orphan(texts, set), orphan, "{map:?}");
        set.release(texts);
    }
}

fn is_usable(plain: &LabelSelector) -> bool {
    plain.match_expressions.iter().flatten().all(|requirement| {
        let values = requirement.values.as_ref().map_or(0, Vec::len);
        requirement.key.is_some()
            && match requirement.operator.as_deref() {
                Some("In" | "NotIn") => values > 0,
                Some("Exists" | "DoesNotExist") => values == 0,
                _ => false,
            }
    })
}

fn matches(plain: &LabelSelector, labels: &Map) -> bool {
    let mut wanted = plain.match_labels.iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
        && plain.match_expressions.iter().flatten().all(|requirement| {
            let value = requirement.key.as_ref().and_then(|key| labels.get(key));
            let listed = value.is_some_and(|value| {
                requirement.values.iter().flatten().any(|listed| listed == value)
            });
            match requirement.operator.as_deref() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => value.is_some(),
                _ => value.is_none(),
            }
        })
}

/// Labels that the selector speaks about: none, those it wants, and each of them missing or with
/// another of its values.
fn candidates(plain: Option<&LabelSelector>) -> Vec<Map> {
    let mut all = vec![Map::new()];
    let Some(plain) = plain else { return all };
    let mut wanted: Map = plain.match_labels.clone().unwrap_or_default();
    let mut values: BTreeSet<String> = wanted.values().cloned().collect();
    for requirement in plain.match_expressions.iter().flatten() {
        let listed = requirement.values.clone().unwrap_or_default();
        if let (Some(key), Some(value)) = (&requirement.key, listed.first()) {
            wanted.entry(key.clone()).or_insert_with(|| value.clone());
        }
        values.extend(listed);
    }
    all.push(wanted.clone());
    for key in wanted.keys().take(8) {
        let mut missing = wanted.clone();
        missing.remove(key);
        all.push(missing);
        for value in values.iter().take(8) {
            let mut changed = wanted.clone();
            changed.insert(key.clone(), value.clone());
            all.push(changed);
        }
    }
    all
}
