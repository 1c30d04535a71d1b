//! Any bytes as an object of any kind: no panic, and the same record however they are split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picokube_core::leader_election::LeaseReader;
use picokube_core::wire::{Answer, Decoder, Deployment, Object, Pod, ReplicaSet};
use std::fmt::Debug;

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, text) = input;
    let chunk = usize::from(choice / 4) + 1;
    match choice % 4 {
        0 => check::<Pod>(text, chunk),
        1 => check::<ReplicaSet>(text, chunk),
        2 => check::<Deployment>(text, chunk),
        _ => check_lease(text, chunk),
    }
});

fn check_lease(text: &[u8], chunk: usize) {
    let read = |chunk: usize| {
        let mut reader = LeaseReader::new();
        text.chunks(chunk).for_each(|chunk| reader.feed(chunk));
        reader.lease().cloned()
    };
    assert_eq!(read(chunk), read(text.len().max(1)));
}

fn check<K: Object + Debug>(text: &[u8], chunk: usize) {
    let mut decoder = Box::new(Decoder::<K>::new());
    let whole = read(&mut decoder, text, text.len().max(1));
    // The second time also shows that nothing of the first is left.
    assert_eq!(read(&mut decoder, text, chunk), whole);
}

fn read<K: Object + Debug>(decoder: &mut Decoder<K>, text: &[u8], chunk: usize) -> String {
    decoder.reset();
    for chunk in text.chunks(chunk) {
        if let Err(error) = decoder.feed_answer(chunk, None) {
            return error.to_string();
        }
    }
    match decoder.answer() {
        Ok(Answer::Object(object)) => format!("{object:?}"),
        Ok(Answer::Status(status)) => format!("{status:?}"),
        Ok(Answer::Metadata(meta)) => format!("{meta:?}"),
        Ok(Answer::Faulty(fault)) => fault.to_string(),
        Err(error) => error.to_string(),
    }
}
