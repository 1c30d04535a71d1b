//! Reads objects, in any chunks and with their members in any order.

use std::fmt::Debug;

use picokube_core::text::{Fingerprint, Labels};
use picokube_core::wire::{Answer, Decoder, Object, Uid};
use serde_json::{Value, json};

/// Reads one object that arrives in chunks of this size.
pub(crate) fn read<K: Object + Clone>(text: &str, chunk: usize) -> Result<K, String> {
    let mut decoder = Box::new(Decoder::<K>::new());
    read_with(&mut decoder, text.as_bytes().chunks(chunk))
}

pub(crate) fn read_with<'a, K: Object + Clone>(
    decoder: &mut Decoder<K>,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<K, String> {
    decoder.reset();
    for chunk in chunks {
        decoder.feed_answer(chunk, None).map_err(|error| error.to_string())?;
    }
    match decoder.answer().map_err(|error| error.to_string())? {
        Answer::Object(object) => Ok(object.clone()),
        Answer::Metadata(meta) => Err(format!("metadata of {}", meta.name)),
        Answer::Faulty(fault) => Err(fault.to_string()),
        Answer::Status(status) => Err(format!("Status: {}", status.message)),
    }
}

pub(crate) fn uid(text: &str) -> Uid {
    Uid::parse(text).unwrap()
}

pub(crate) fn labels(labels: &Labels) -> Vec<(Fingerprint, Fingerprint)> {
    labels.as_slice().unwrap().iter().map(|label| (label.key, label.value)).collect()
}

pub(crate) fn prints(pairs: &[(&str, &str)]) -> Vec<(Fingerprint, Fingerprint)> {
    let prints = pairs.iter().map(|(key, value)| (Fingerprint::of(key), Fingerprint::of(value)));
    let mut prints: Vec<_> = prints.collect();
    prints.sort();
    prints
}

/// Two chunks, split at each byte of a document.
pub(crate) fn check_splits<K: Object + Clone + Debug>(text: &str) {
    let mut decoder = Box::new(Decoder::<K>::new());
    let whole = format!("{:?}", read_with(&mut decoder, [text.as_bytes()]).unwrap());
    for position in 1..text.len() {
        let (left, right) = text.as_bytes().split_at(position);
        let split = format!("{:?}", read_with(&mut decoder, [left, right]).unwrap());
        assert_eq!(split, whole, "split at {position}");
    }
    let bytes = format!("{:?}", read_with(&mut decoder, text.as_bytes().chunks(1)).unwrap());
    assert_eq!(bytes, whole);
}

/// `serde_json` sorts the members; the records must not care.
pub(crate) fn check_order<K: Object + Clone + Debug>(text: &str) {
    let sorted = serde_json::from_str::<Value>(text).unwrap();
    let reversed = reversed(&sorted);
    assert_ne!(sorted.to_string(), reversed);
    let expected = format!("{:?}", read::<K>(text, 4096).unwrap());
    assert_eq!(format!("{:?}", read::<K>(&sorted.to_string(), 64).unwrap()), expected);
    assert_eq!(format!("{:?}", read::<K>(&reversed, 64).unwrap()), expected);
}

/// The text of a value with the members of every object in reverse order.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().rev();
            let members = members.map(|(key, value)| format!("{}:{}", json!(key), reversed(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(elements) => {
            format!("[{}]", elements.iter().map(reversed).collect::<Vec<_>>().join(","))
        }
        leaf => leaf.to_string(),
    }
}
