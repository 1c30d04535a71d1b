//! Any bytes, split anywhere: the verdict and the value are those of `serde_json`, and skipping
//! comes to the same verdict as reading.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk, text) = input;
    let chunks = || text.chunks(usize::from(chunk % 32) + 1);
    let expected = serde_json::from_slice::<Value>(text);
    let read = support::read(chunks());
    let skipped = support::skip(chunks());
    let whole = support::read([text]);
    match (expected, &read) {
        (Ok(expected), Ok(value)) => assert_eq!(expected, *value),
        (Err(_), Err(_)) => {}
        (expected, read) => panic!("serde_json {expected:?}, read {read:?}"),
    }
    assert_eq!(read, whole);
    assert_eq!(read.map(|_| ()), skipped);
});
