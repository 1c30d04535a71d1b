//! The deletion order against a plain model: a tuple of keys, compared one after the other.

use std::cmp::{Ordering, Reverse};

use picokube_core::control::{Rank, deletion_order};
use picokube_core::store::Seconds;
use picokube_core::time::Timestamp;
use picokube_core::wire::{PodPhase, Uid};

use crate::support::{NOW, Rng};

const PAIRS: usize = 400_000;

fn random(rng: &mut Rng) -> Rank {
    let time = |rng: &mut Rng| {
        let age = match rng.below(5) {
            0 => return Seconds::NONE,
            1 => -5 + i64::from(rng.below(8)),
            2 => i64::from(rng.below(100)),
            _ => i64::from(rng.below(100_000)),
        };
        Seconds::new(Some(Timestamp::from_secs(NOW.as_secs() - age)))
    };
    let phases =
        [PodPhase::Pending, PodPhase::Unknown, PodPhase::Running, PodPhase::Other, PodPhase::Empty];
    let mut uid = [0; 16];
    uid[0] = rng.below(3) as u8;
    Rank {
        scheduled: !rng.chance(4),
        phase: if rng.chance(2) { PodPhase::Running } else { phases[rng.below(5) as usize] },
        ready: !rng.chance(3),
        deletion_cost: if rng.chance(3) { rng.below(5) - 2 } else { 0 },
        colocated: if rng.chance(3) { rng.below(4) as u16 } else { 1 },
        ready_since: time(rng),
        restarts: if rng.chance(3) { rng.below(4) as u32 } else { 0 },
        sidecar_restarts: if rng.chance(4) { rng.below(3) as u32 } else { 0 },
        created: time(rng),
        uid: Uid::from_bytes(uid),
    }
}

/// The age in powers of two of a nanosecond, in floating point as Kubernetes computes it.
fn log2_age(since: Timestamp) -> i64 {
    let nanos = (NOW.as_micros() - since.as_micros()) as f64 * 1000.0;
    if nanos > 0.0 { nanos.log2().floor() as i64 } else { -1 }
}

fn by_age(a: Seconds, b: Seconds, a_uid: Uid, b_uid: Uid) -> Ordering {
    match (a.get(), b.get()) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a), Some(b)) => log2_age(a).cmp(&log2_age(b)).then(a_uid.cmp(&b_uid)),
    }
}

fn model(a: &Rank, b: &Rank) -> Ordering {
    let phase = |rank: &Rank| match rank.phase {
        PodPhase::Unknown => 1,
        PodPhase::Running => 2,
        _ => 0,
    };
    let key = |rank: &Rank| {
        (rank.scheduled, phase(rank), rank.ready, rank.deletion_cost, Reverse(rank.colocated))
    };
    let ready = if a.ready && b.ready && a.ready_since != b.ready_since {
        Some(by_age(a.ready_since, b.ready_since, a.uid, b.uid))
    } else {
        None
    };
    key(a).cmp(&key(b)).then_with(|| {
        ready.unwrap_or_else(|| {
            let restarts = |rank: &Rank| (Reverse(rank.restarts), Reverse(rank.sidecar_restarts));
            restarts(a).cmp(&restarts(b)).then_with(|| {
                if a.created == b.created {
                    Ordering::Equal
                } else {
                    by_age(a.created, b.created, a.uid, b.uid)
                }
            })
        })
    })
}

#[test]
fn random_pairs_are_ranked_like_the_model_does() {
    let mut rng = Rng(3);
    for number in 0..PAIRS {
        let (a, b) = (random(&mut rng), random(&mut rng));
        assert_eq!(deletion_order(&a, &b, NOW), model(&a, &b), "pair {number}: {a:?} {b:?}");
        let reversed = deletion_order(&b, &a, NOW).reverse();
        assert_eq!(deletion_order(&a, &b, NOW), reversed, "pair {number}");
    }
}
