//! Decoding against `serde_json`, in one run: the ratio is what counts.
//!
//! Instructions are counted by valgrind, which no other load on the machine disturbs. Times are
//! the best of many short runs, taken in turn. Exits with an error when a pod takes more
//! instructions than `serde_json` needs for the same fields.

#[path = "../callgrind/mod.rs"]
mod callgrind;
mod serde_pod;

use picokube_core::json::{Digest, Flow, Token, Tokenizer};
use picokube_core::wire::{
    Answer, Decoder, Deployment, EventType, KnownObjects, Meta, Object, Pod, ReplicaSet,
};
use serde::de::IgnoredAny;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const POD: &[u8] = include_bytes!("../../tests/data/pod.json");
const REPLICA_SET: &[u8] = include_bytes!("../../tests/data/replicaset.json");
const DEPLOYMENT: &[u8] = include_bytes!("../../tests/data/deployment.json");

/// Documents of one count, and of one short run.
const DOCUMENTS: usize = 100;
const RUNS: usize = 300;
/// As much as one TCP segment brings.
const SEGMENT: usize = 1460;

/// A name, how many bytes a document has, and what is run.
type Case = (&'static str, usize, fn(usize));

/// What is measured; the first one is what all are compared with.
const CASES: [Case; 8] = [
    ("pod: serde_json", POD.len(), serde_pod),
    ("pod: picokube", POD.len(), |documents| decode::<Pod>(POD, POD.len(), documents)),
    ("pod: picokube, by segments", POD.len(), |documents| decode::<Pod>(POD, SEGMENT, documents)),
    ("pod, all ignored: serde_json", POD.len(), serde_ignore),
    ("pod, all ignored: picokube", POD.len(), ignore),
    ("ReplicaSet: picokube", REPLICA_SET.len(), |documents| {
        decode::<ReplicaSet>(REPLICA_SET, SEGMENT, documents);
    }),
    ("Deployment: picokube", DEPLOYMENT.len(), |documents| {
        decode::<Deployment>(DEPLOYMENT, SEGMENT, documents);
    }),
    ("Deployment: template known", DEPLOYMENT.len(), |documents| {
        decode_news::<Deployment>(DEPLOYMENT, SEGMENT, &KnownTemplate, documents);
    }),
];

/// What somebody knows who reads everything.
struct Nothing;

impl<K> KnownObjects<K> for Nothing {
    fn suffices(&self, _: Option<EventType>, _: &Meta) -> bool {
        false
    }
}

/// What somebody knows who has seen this generation.
struct KnownTemplate;

impl KnownObjects<Deployment> for KnownTemplate {
    fn suffices(&self, _: Option<EventType>, _: &Meta) -> bool {
        false
    }

    fn recall_template(&self, _: &mut Deployment) -> Option<Digest> {
        Some(black_box(Digest::from_bits(1)))
    }
}

fn main() -> ExitCode {
    if let Some([case, documents]) = callgrind::asked_to_run().as_deref() {
        CASES[*case].2(*documents);
        return ExitCode::SUCCESS;
    }
    if !callgrind::is_there() {
        return ExitCode::FAILURE;
    }
    let times = times();
    let mut counts = [0; CASES.len()];
    let heading = ["per document", "bytes", "instructions", "ratio", "µs", "ratio"];
    let [name, bytes, instructions, ratio, micros, time_ratio] = heading;
    println!("{name:<30}{bytes:>6}{instructions:>14}{ratio:>7}{micros:>8}{time_ratio:>7}");
    for (case, (name, bytes, _)) in CASES.iter().enumerate() {
        counts[case] =
            callgrind::count(&[case, 2 * DOCUMENTS]) - callgrind::count(&[case, DOCUMENTS]);
        let instructions = counts[case] / DOCUMENTS as u64;
        let ratio = counts[case] as f64 / counts[0] as f64;
        let micros = times[case].as_secs_f64() * 1e6 / DOCUMENTS as f64;
        let time_ratio = times[case].as_secs_f64() / times[0].as_secs_f64();
        println!(
            "{name:<30}{bytes:>6}{instructions:>14}{ratio:>7.2}{micros:>8.2}{time_ratio:>7.2}"
        );
    }
    if counts[1] > counts[0] { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn times() -> [Duration; CASES.len()] {
    let mut best = [Duration::MAX; CASES.len()];
    for _ in 0..RUNS {
        for (best, (_, _, run)) in best.iter_mut().zip(CASES) {
            let start = Instant::now();
            run(DOCUMENTS);
            *best = start.elapsed().min(*best);
        }
    }
    best
}

fn decode<K: Object>(text: &[u8], chunk: usize, documents: usize) {
    decode_news::<K>(text, chunk, &Nothing, documents);
}

fn decode_news<K: Object>(
    text: &[u8],
    chunk: usize,
    memory: &dyn KnownObjects<K>,
    documents: usize,
) {
    let mut decoder = Box::new(Decoder::<K>::new());
    for _ in 0..documents {
        decoder.reset();
        for chunk in black_box(text).chunks(chunk) {
            decoder.feed_answer(chunk, Some(memory)).expect("JSON");
        }
        match decoder.answer().expect("a whole document") {
            Answer::Object(object) => black_box(object.uid()),
            _ => panic!("not an object"),
        };
    }
}

fn ignore(documents: usize) {
    for _ in 0..documents {
        let mut tokenizer = Tokenizer::new();
        let read = tokenizer.feed(black_box(POD), &mut |_: Token<'_>| Flow::Skip);
        black_box(read).expect("JSON");
    }
}

fn serde_pod(documents: usize) {
    for _ in 0..documents {
        black_box(serde_json::from_slice::<serde_pod::Pod<'_>>(black_box(POD)).expect("a pod"));
    }
}

fn serde_ignore(documents: usize) {
    for _ in 0..documents {
        black_box(serde_json::from_slice::<IgnoredAny>(black_box(POD)).expect("JSON"));
    }
}
