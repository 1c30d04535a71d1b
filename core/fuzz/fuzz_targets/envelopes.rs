//! Any bytes as a list or a watch: no panic, always progress, and the same events however they
//! are split, and whatever is known of objects before they come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picokube_core::json::{Digest, Error};
use picokube_core::wire::{
    Decoder, Deployment, EventType, KnownObjects, Meta, Object, PausedList, Pod, ReplicaSet,
};
use std::fmt::Debug;

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, text) = input;
    let read: fn(&[u8], usize) -> Vec<String> = match choice % 9 {
        0 => list::<Pod>,
        1 => list::<ReplicaSet>,
        2 => list::<Deployment>,
        3 => watch::<Pod>,
        4 => watch::<ReplicaSet>,
        5 => watch::<Deployment>,
        6 => news::<Pod>,
        7 => news::<ReplicaSet>,
        _ => news::<Deployment>,
    };
    assert_eq!(read(text, usize::from(choice / 9) + 1), read(text, 1 << 20));
});

fn list<K: Object + Debug>(text: &[u8], chunk: usize) -> Vec<String> {
    let mut decoder = Box::new(Decoder::<K>::new());
    let mut paused = PausedList::EMPTY;
    let events = events(text, chunk, |bytes| {
        // What else is read between two items makes no difference.
        if decoder.pause_list(&mut paused) {
            decoder.restart();
            let _ = decoder.feed_watch(br#"{"type":"ERROR","object":{"kind":"Status"}}"#, None);
            decoder.resume_list(&paused);
        }
        decoder.feed_list(bytes).map(told)
    });
    // Where an error is, is counted from where the list was resumed.
    let without_place = |event: String| match event.strip_prefix("invalid JSON at byte ") {
        Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned(),
        None => event,
    };
    events.into_iter().map(without_place).collect()
}

fn watch<K: Object + Debug>(text: &[u8], chunk: usize) -> Vec<String> {
    let mut decoder = Box::new(Decoder::<K>::new());
    let mut events = events(text, chunk, |bytes| decoder.feed_watch(bytes, None).map(told));
    events.push(format!("cut off: {}", !decoder.is_between_events()));
    events
}

fn news<K: Object + Debug>(text: &[u8], chunk: usize) -> Vec<String> {
    let mut decoder = Box::new(Decoder::<K>::new());
    events(text, chunk, |bytes| decoder.feed_watch(bytes, Some(&Odd)).map(told))
}

/// Knows what is odd about objects.
struct Odd;

impl<K: Object> KnownObjects<K> for Odd {
    fn suffices(&self, _: Option<EventType>, meta: &Meta) -> bool {
        meta.name.len() % 2 == 1
    }

    fn recall_template(&self, object: &mut K) -> Option<Digest> {
        (object.meta().generation % 2 == 1).then_some(Digest::from_bits(1))
    }
}

fn told(fed: (usize, Option<impl Debug>)) -> (usize, Option<String>) {
    (fed.0, fed.1.map(|event| format!("{event:?}")))
}

fn events(
    text: &[u8],
    chunk: usize,
    mut feed: impl FnMut(&[u8]) -> Result<(usize, Option<String>), Error>,
) -> Vec<String> {
    let mut events = Vec::new();
    for mut rest in text.chunks(chunk) {
        while !rest.is_empty() {
            match feed(rest) {
                Ok((read, event)) => {
                    assert!(read > 0 || event.is_some(), "no progress");
                    rest = &rest[read..];
                    events.extend(event);
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
