//! The work queue against Kubernetes' definition on std collections.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use picokube_core::link::Slot;
use picokube_core::queue::{Item, Next, Queue};
use picokube_core::time::{Duration, Instant};

use crate::support::Rng;

/// Queue, dirty and processing as in Kubernetes, with a map of due times.
#[derive(Default)]
struct Model {
    queue: VecDeque<usize>,
    dirty: BTreeSet<usize>,
    processing: BTreeSet<usize>,
    due: BTreeMap<usize, Instant>,
    requeues: BTreeMap<usize, u32>,
    /// Times at which tokens were taken, as debts of a bucket that refills one per 100 ms.
    tokens: f64,
    refilled: Instant,
    shutting_down: bool,
    adds: u32,
    retries: u32,
}

impl Model {
    fn add(&mut self, key: usize) {
        if self.shutting_down || !self.dirty.insert(key) {
            return;
        }
        self.adds += 1;
        if !self.processing.contains(&key) {
            self.queue.push_back(key);
        }
    }

    fn add_after(&mut self, key: usize, delay: Duration, now: Instant) {
        if self.shutting_down {
            return;
        }
        self.retries += 1;
        if delay == Duration::ZERO {
            return self.add(key);
        }
        let due = self.due.entry(key).or_insert(now + delay);
        *due = (*due).min(now + delay);
    }

    fn rate_limited(&mut self, key: usize, now: Instant) -> Duration {
        let requeues = self.requeues.entry(key).or_default();
        let own = (5.0 * 2f64.powi(*requeues as i32)).min(1_000_000.0);
        *requeues += 1;
        let refill = now.since(self.refilled).as_micros() as f64 / 100_000.0;
        self.tokens = (self.tokens + refill).min(100.0) - 1.0;
        self.refilled = now;
        let all = (-self.tokens * 100_000.0).max(0.0).round();
        Duration::from_micros((own * 1000.0).max(all) as u64)
    }

    fn poll(&mut self, now: Instant) {
        if self.shutting_down {
            return;
        }
        let mut ready: Vec<_> =
            self.due.iter().filter(|(_, due)| **due <= now).map(|(k, due)| (*due, *k)).collect();
        ready.sort();
        for (_, key) in ready {
            self.due.remove(&key);
            self.add(key);
        }
    }
}

const KEYS: usize = 24;

fn slot(key: usize) -> Slot {
    Slot::from_index(key).unwrap()
}

#[test]
fn behaves_as_kubernetes_work_queue() {
    for seed in 0..60 {
        eprintln!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut memory = Queue::<[Item; KEYS]>::new();
        let queue: &mut Queue = &mut memory;
        let mut model = Model { tokens: 100.0, ..Model::default() };
        let mut now = Instant::from_micros(rng.next() % 1_000_000);
        for step in 0..2_000 {
            let key = rng.below(KEYS);
            // No two due times are equal: Kubernetes does not define their order.
            now = now + Duration::from_micros(1);
            match rng.below(12) {
                0..2 => {
                    queue.add(slot(key));
                    model.add(key);
                }
                2..4 => {
                    let delay = rng.below(4) as u64 * 700_000 * (step % 5);
                    let delay = Duration::from_micros(if delay == 0 { 0 } else { delay + step });
                    queue.add_after(slot(key), delay, now);
                    model.add_after(key, delay, now);
                }
                4 => {
                    let delay = model.rate_limited(key, now);
                    queue.add_rate_limited(slot(key), now);
                    model.add_after(key, delay, now);
                }
                5 => {
                    queue.forget(slot(key));
                    model.requeues.remove(&key);
                }
                6..9 => match queue.get() {
                    Next::Key(got) => {
                        let expected = model.queue.pop_front().unwrap();
                        assert_eq!(got.index(), expected, "first in, first out");
                        assert!(model.processing.insert(expected), "one worker per key");
                        model.dirty.remove(&expected);
                    }
                    Next::Empty => assert!(model.queue.is_empty() && !model.shutting_down),
                    Next::ShutDown => assert!(model.queue.is_empty() && model.shutting_down),
                },
                9..11 => {
                    queue.done(slot(key));
                    if model.processing.remove(&key) && model.dirty.contains(&key) {
                        model.queue.push_back(key);
                    }
                }
                _ if rng.chance(10) => {
                    let idle = queue.retire(slot(key));
                    assert_eq!(idle, !model.processing.contains(&key));
                    model.due.remove(&key);
                    model.requeues.remove(&key);
                    model.dirty.remove(&key);
                    model.queue.retain(|waiting| *waiting != key);
                }
                _ if step > 1_900 && rng.chance(5) => {
                    queue.shut_down();
                    model.shutting_down = true;
                }
                _ => now = now + Duration::from_micros(rng.next() % 900_000),
            }
            queue.poll(now);
            model.poll(now);
            assert_eq!(queue.depth(), model.queue.len());
            assert_eq!(queue.metrics().adds, model.adds);
            assert_eq!(queue.metrics().retries, model.retries);
            let requeues = model.requeues.get(&key).copied().unwrap_or_default();
            assert_eq!(u32::from(queue.num_requeues(slot(key))), requeues);
            let drained = model.queue.is_empty() && model.processing.is_empty();
            assert_eq!(queue.is_drained(), drained);
            let next = model.due.values().min().copied().filter(|_| !model.shutting_down);
            assert_eq!(queue.poll_at(), next);
        }
    }
}

#[test]
fn every_slot_has_room_at_once() {
    let mut memory = Queue::<[Item; KEYS]>::new();
    let queue: &mut Queue = &mut memory;
    for key in 0..KEYS {
        queue.add(slot(key));
        queue.add_after(slot(key), Duration::from_secs(1 + key as u64), Instant::ZERO);
    }
    assert_eq!(queue.depth(), KEYS);
    for key in 0..KEYS {
        assert_eq!(queue.get(), Next::Key(slot(key)));
    }
    queue.poll(Instant::ZERO + Duration::from_secs(1000));
    for key in 0..KEYS {
        queue.done(slot(key));
    }
    assert_eq!(queue.depth(), KEYS, "a delayed Add while processing is not lost");
    // A key beyond the table is not a key.
    queue.add(slot(KEYS));
    assert_eq!(queue.depth(), KEYS);
}

#[test]
fn waiting_keys_are_handed_out_after_shut_down() {
    let mut memory = Queue::<[Item; KEYS]>::new();
    let queue: &mut Queue = &mut memory;
    queue.add(slot(1));
    queue.add_after(slot(2), Duration::from_secs(1), Instant::ZERO);
    queue.shut_down();
    queue.add(slot(3));
    queue.poll(Instant::ZERO + Duration::from_secs(2));
    assert_eq!(queue.get(), Next::Key(slot(1)));
    assert_eq!(queue.get(), Next::ShutDown);
    assert!(!queue.is_drained());
    queue.done(slot(1));
    assert!(queue.is_drained());
}

#[test]
fn an_earlier_delay_wins_and_nothing_else_cancels_it() {
    let mut memory = Queue::<[Item; KEYS]>::new();
    let queue: &mut Queue = &mut memory;
    let at = |secs| Instant::ZERO + Duration::from_secs(secs);
    queue.add_after(slot(0), Duration::from_secs(10), at(0));
    queue.add_after(slot(0), Duration::from_secs(20), at(0));
    assert_eq!(queue.poll_at(), Some(at(10)));
    queue.add_after(slot(0), Duration::from_secs(5), at(0));
    assert_eq!(queue.poll_at(), Some(at(5)));
    queue.add(slot(0));
    assert_eq!(queue.get(), Next::Key(slot(0)));
    queue.forget(slot(0));
    queue.done(slot(0));
    assert_eq!(queue.poll_at(), Some(at(5)));
    queue.poll(at(5));
    assert_eq!(queue.get(), Next::Key(slot(0)));
    assert_eq!(queue.poll_at(), None);
}
