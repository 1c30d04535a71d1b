//! Decoding against `serde_json`, in one run: the ratio is what counts.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use picokube_core::json::{Event, Step, Tokenizer};
use picokube_core::wire::{Answer, AnswerDecoder, Deployment, Object, Pod, ReplicaSet};
use std::hint::black_box;

mod serde_pod;

const POD: &[u8] = include_bytes!("../../tests/data/pod.json");
const REPLICA_SET: &[u8] = include_bytes!("../../tests/data/replicaset.json");
const DEPLOYMENT: &[u8] = include_bytes!("../../tests/data/deployment.json");

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pod");
    group.throughput(Throughput::Bytes(POD.len() as u64));
    group.bench_function("serde_json", |bencher| {
        bencher.iter(|| serde_json::from_slice::<serde_pod::Pod<'_>>(black_box(POD)).unwrap());
    });
    ours::<Pod>(&mut group, "picokube", POD, POD.len());
    ours::<Pod>(&mut group, "picokube in chunks of 1460", POD, 1460);
    group.bench_function("serde_json, all ignored", |bencher| {
        bencher.iter(|| serde_json::from_slice::<serde::de::IgnoredAny>(black_box(POD)).unwrap());
    });
    group.bench_function("picokube, all ignored", |bencher| {
        bencher.iter(|| {
            let mut tokenizer = Tokenizer::new();
            tokenizer.feed(black_box(POD), &mut |_: Event<'_>| Step::Skip).unwrap()
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("template digested");
    ours::<ReplicaSet>(&mut group, "ReplicaSet", REPLICA_SET, 1460);
    ours::<Deployment>(&mut group, "Deployment", DEPLOYMENT, 1460);
    group.finish();
}

fn ours<K: Object>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    text: &[u8],
    chunk: usize,
) {
    let mut decoder = Box::new(AnswerDecoder::<K>::new());
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            decoder.reset();
            for chunk in black_box(text).chunks(chunk) {
                decoder.feed(chunk).unwrap();
            }
            match decoder.finish().unwrap() {
                Answer::Object(object) => black_box(object).uid(),
                _ => panic!("not an object"),
            }
        });
    });
}

criterion_group!(benches, decode);
criterion_main!(benches);
