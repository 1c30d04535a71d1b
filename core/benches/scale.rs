//! How the cost of an event grows with the cluster, in instructions counted by valgrind.
//!
//! Each case runs twice under `callgrind`, with n and 2n events; the difference is the cost of n
//! events without set-up. Counts do not depend on the machine's load. Exits with an error when a
//! case costs 1.3 times as much in a cluster of 10,000 as in one of 100.

mod callgrind;

use std::hint::black_box;
use std::process::ExitCode;

use picokube_core::link::Slot;
use picokube_core::queue::{Item, Next, Queue};
use picokube_core::store::{Applied, Cache, Change, Kind, Owner, Refusal};
use picokube_core::time::{Duration, Instant};
use picokube_core::watch::{BodyShape, Feed, Handler, Place, Source};
use picokube_core::wire::{
    ConditionStatus, ControllerRef, Decoder, Meta, ObjectFault, OwnerKind, Pod, ReplicaSet,
    ResourceVersion, Uid,
};

const SMALL: usize = 100;
const LARGE: usize = 10_000;
const EVENTS: usize = 2_000;
const ALLOWED: f64 = 1.3;

/// Runs so many events in a cluster of such a size.
type Run = fn(usize, usize);

/// What is run, and whether the goal is about it.
const CASES: [(&str, Run, bool); 5] = [
    ("pod event, bytes to cache", pod_bytes, true),
    ("pod event, record to cache", pod_records, true),
    ("pod deleted and added", pod_churn, true),
    ("queue add, get, done", queue_cycle, true),
    ("queue add_after, poll (log n)", queue_delay, false),
];

fn main() -> ExitCode {
    if let Some([case, cached, events]) = callgrind::asked_to_run().as_deref() {
        CASES[*case].1(*cached, *events);
        return ExitCode::SUCCESS;
    }
    if !callgrind::is_there() {
        return ExitCode::FAILURE;
    }
    let mut failed = false;
    println!("{:<32} {SMALL:>10} {LARGE:>10} {:>7}", "instructions per event, cached:", "ratio");
    for (case, (name, _, has_goal)) in CASES.iter().enumerate() {
        let small = instructions(case, SMALL);
        let large = instructions(case, LARGE);
        let ratio = large as f64 / small as f64;
        println!("{name:<32} {small:>10} {large:>10} {ratio:>7.3}");
        failed |= *has_goal && ratio >= ALLOWED;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn instructions(case: usize, cached: usize) -> u64 {
    let once = callgrind::count(&[case, cached, EVENTS]);
    let twice = callgrind::count(&[case, cached, 2 * EVENTS]);
    (twice - once) / EVENTS as u64
}

const PODS_EACH: usize = 10;
type Memory = picokube_core::resources! {
    pods: LARGE + 1, replica_sets: LARGE / PODS_EACH + 1, deployments: 8,
};

/// A cache on the heap with so many pods, ten to a ReplicaSet.
fn with_cache(cached: usize, run: impl FnOnce(&mut Cache<'_>)) {
    let mut memory = Box::new(Memory::new());
    let mut cache = memory.parts().cache;
    for rs in 0..cached.div_ceil(PODS_EACH) {
        let name = format!("payments-gateway-{rs:0>10}");
        let object = ReplicaSet { meta: meta(&name, 1 << 32 | rs), ..ReplicaSet::default() };
        assert!(matches!(cache.apply(&object), Applied::Changed(_)));
    }
    for number in 0..cached {
        assert!(matches!(cache.apply(&pod(number, 1)), Applied::Changed(_)));
    }
    run(&mut cache);
}

/// Scattered over all of them, the same each time.
fn scattered(event: usize, cached: usize) -> usize {
    event.wrapping_mul(2_654_435_761) % cached
}

fn pod_records(cached: usize, events: usize) {
    with_cache(cached, |cache| {
        let pods: Vec<Pod> = (0..64).map(|n| pod(scattered(n, cached), 2)).collect();
        for event in 0..events {
            black_box(cache.apply(&pods[event % pods.len()]));
        }
    });
}

fn pod_churn(cached: usize, events: usize) {
    with_cache(cached, |cache| {
        let pods: Vec<Pod> = (0..64).map(|n| pod(scattered(n, cached), 2)).collect();
        for event in 0..events {
            let pod = &pods[event % pods.len()];
            black_box(cache.delete(Kind::Pod, &pod.meta));
            black_box(cache.apply(pod));
        }
    });
}

fn pod_bytes(cached: usize, events: usize) {
    with_cache(cached, |cache| {
        let frames = (0..64).map(|n| frame(scattered(n, cached)).into_bytes());
        let mut frames: Vec<Vec<u8>> = frames.collect();
        let is_version = |at: &[u8]| at == VERSION.to_string().as_bytes();
        let places = frames.iter().map(|frame| frame.windows(VERSION_LEN).position(is_version));
        let places: Vec<usize> = places.map(|place| place.expect("a version")).collect();
        let mut decoder = Box::new(Decoder::<Pod>::new());
        let (mut place, handler) = (Place::NEW, &mut Ignore);
        let (decoder, place) = (Some(&mut *decoder), &mut place);
        let mut feed = Feed { decoder, place, cache, handler, namespaces: &[], shares: false };
        feed.begin(BodyShape::Watch);
        for event in 0..events {
            let at = event % frames.len();
            // A version that is known already would not be read.
            let version = (VERSION + event).to_string();
            frames[at][places[at]..][..VERSION_LEN].copy_from_slice(version.as_bytes());
            let bytes = frames[at].as_slice();
            feed.push(black_box(bytes), &mut |seen| {
                black_box(&seen);
            })
            .expect("valid frames");
        }
    });
}

fn queue_cycle(cached: usize, events: usize) {
    let mut memory = Box::new(Queue::<[Item; LARGE]>::new());
    let queue: &mut Queue = &mut *memory;
    let slot = |index| Slot::from_index(index).expect("within bounds");
    (0..cached).for_each(|key| queue.add(slot(key)));
    for event in 0..events {
        queue.add(slot(scattered(event, cached)));
        if let Next::Key(key) = queue.get() {
            queue.done(key);
            queue.add(key);
        }
    }
    black_box(queue.depth());
}

fn queue_delay(cached: usize, events: usize) {
    let mut memory = Box::new(Queue::<[Item; LARGE]>::new());
    let queue: &mut Queue = &mut *memory;
    let slot = |index| Slot::from_index(index).expect("within bounds");
    let delay = |event| Duration::from_millis(1_000 + scattered(event, 5_000) as u64);
    let mut now = Instant::ZERO;
    (0..cached).for_each(|key| queue.add_after(slot(key), delay(key), now));
    for event in 0..events {
        if let Some(due) = queue.poll_at() {
            now = due;
        }
        queue.poll(now);
        while let Next::Key(key) = queue.get() {
            queue.done(key);
            queue.add_after(key, delay(event), now);
        }
    }
    black_box(queue.depth());
}

fn meta(name: &str, number: usize) -> Meta {
    let mut meta = Meta {
        namespace: "production".try_into().expect("a short name"),
        name: name.try_into().expect("a short name"),
        uid: uid(number),
        resource_version: ResourceVersion::new(1),
        ..Meta::default()
    };
    meta.labels.insert_text("app", "payments");
    meta.labels.insert_text("tier", "gateway");
    meta
}

fn uid(number: usize) -> Uid {
    Uid::from_bytes((number as u128 + 1).to_be_bytes())
}

fn pod(number: usize, version: u64) -> Pod {
    let rs = number / PODS_EACH;
    let rs_name = format!("payments-gateway-{rs:0>10}");
    let mut meta = meta(&format!("{rs_name}-x{:0>4}", number % 10_000), number);
    meta.resource_version = ResourceVersion::new(version);
    meta.labels.insert_text("pod-template-hash", &format!("{rs:0>10}"));
    meta.controller = Some(ControllerRef {
        kind: OwnerKind::ReplicaSet,
        name: rs_name.as_str().try_into().expect("a short name"),
        uid: uid(1 << 32 | rs),
    });
    let node = format!("node-{}", number % 50);
    Pod {
        meta,
        node: node.as_str().try_into().expect("a short name"),
        ready: Some(ConditionStatus::True).into(),
        ..Pod::default()
    }
}

/// A pod as a watch sends it, without the ballast of a real one: so the cache's share shows.
/// The version of the first event; all have as many digits.
const VERSION: usize = 1_000_000;
const VERSION_LEN: usize = 7;

fn frame(number: usize) -> String {
    let Pod { meta, node, .. } = pod(number, 2);
    let rs = number / PODS_EACH;
    let owner = meta.controller.expect("a controller");
    let metadata = format!(
        r#""name":"{}","namespace":"production","uid":"{}","resourceVersion":"{}""#,
        meta.name, meta.uid, VERSION
    );
    let labels = format!(r#""app":"payments","tier":"gateway","pod-template-hash":"{rs:0>10}""#);
    let owner = format!(
        r#""apiVersion":"apps/v1","kind":"ReplicaSet","name":"{}","uid":"{}","controller":true"#,
        owner.name, owner.uid
    );
    let condition = r#""type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z""#;
    let metadata =
        format!(r#"{{{metadata},"labels":{{{labels}}},"ownerReferences":[{{{owner}}}]}}"#);
    let status = format!(r#"{{"phase":"Running","conditions":[{{{condition}}}]}}"#);
    let pod = format!(
        r#""kind":"Pod","metadata":{metadata},"spec":{{"nodeName":"{node}"}},"status":{status}"#
    );
    format!("{{\"type\":\"MODIFIED\",\"object\":{{{pod}}}}}\n")
}

struct Ignore;

impl Handler for Ignore {
    fn changed(&mut self, _: &mut Cache<'_>, _: Kind, change: &Change) {
        black_box(change);
    }

    fn refused(&mut self, _: &mut Cache<'_>, _: Kind, meta: &Meta, refusal: &Refusal) {
        panic!("{}: {}", meta.name, refusal.reason);
    }

    fn faulty(&mut self, fault: &ObjectFault<'_>) {
        panic!("{fault}");
    }

    fn healed(&mut self, _: &mut Cache<'_>, _: Kind, _: Owner) {}
}
