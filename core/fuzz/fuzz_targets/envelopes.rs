//! Any bytes as a list or a watch: no panic, always progress, and the same events however they
//! are split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picokube_core::wire::{Deployment, ListDecoder, Object, Pod, ReplicaSet, WatchDecoder};
use std::fmt::Debug;

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, text) = input;
    let chunk = usize::from(choice / 6) + 1;
    match choice % 6 {
        0 => assert_eq!(list::<Pod>(text, chunk), list::<Pod>(text, 1 << 20)),
        1 => assert_eq!(list::<ReplicaSet>(text, chunk), list::<ReplicaSet>(text, 1 << 20)),
        2 => assert_eq!(list::<Deployment>(text, chunk), list::<Deployment>(text, 1 << 20)),
        3 => assert_eq!(watch::<Pod>(text, chunk), watch::<Pod>(text, 1 << 20)),
        4 => assert_eq!(watch::<ReplicaSet>(text, chunk), watch::<ReplicaSet>(text, 1 << 20)),
        _ => assert_eq!(watch::<Deployment>(text, chunk), watch::<Deployment>(text, 1 << 20)),
    }
});

fn list<K: Object + Debug>(text: &[u8], chunk: usize) -> Vec<String> {
    let mut decoder = Box::new(ListDecoder::<K>::new());
    let mut events = Vec::new();
    for mut rest in text.chunks(chunk) {
        while !rest.is_empty() {
            match decoder.feed(rest) {
                Ok((read, event)) => {
                    assert!(read > 0 || event.is_some(), "no progress");
                    rest = &rest[read..];
                    events.extend(event.map(|event| format!("{event:?}")));
                }
                Err(error) => {
                    events.push(error.to_string());
                    return events;
                }
            }
        }
    }
    events
}

fn watch<K: Object + Debug>(text: &[u8], chunk: usize) -> Vec<String> {
    let mut decoder = Box::new(WatchDecoder::<K>::new());
    let mut events = Vec::new();
    for mut rest in text.chunks(chunk) {
        while !rest.is_empty() {
            match decoder.feed(rest) {
                Ok((read, event)) => {
                    assert!(read > 0 || event.is_some(), "no progress");
                    rest = &rest[read..];
                    events.extend(event.map(|event| format!("{event:?}")));
                }
                Err(error) => {
                    events.push(error.to_string());
                    return events;
                }
            }
        }
    }
    events.push(format!("cut off: {}", !decoder.is_between_events()));
    events
}
