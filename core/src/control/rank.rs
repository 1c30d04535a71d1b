//! Which pods go first when there are too many: Kubernetes' nine rules.

use core::cmp::Ordering;

use crate::store::Seconds;
use crate::time::Timestamp;
use crate::wire::{PodPhase, Uid};

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub struct Rank {
    /// Bound to a node.
    pub scheduled: bool,
    /// `status.phase`
    pub phase: PodPhase,
    /// The condition `Ready` is true.
    pub ready: bool,
    /// `controller.kubernetes.io/pod-deletion-cost`
    pub deletion_cost: i32,
    /// Active pods of the same application on the same node, itself included; 0 when nobody
    /// counts.
    pub colocated: u16,
    /// When it became ready.
    pub ready_since: Seconds,
    /// The largest restart count of its containers.
    pub restarts: u32,
    /// The largest restart count of its sidecars.
    pub sidecar_restarts: u32,
    /// When it was created.
    pub created: Seconds,
    /// Breaks ties within a bucket of ages.
    pub uid: Uid,
}

/// Which of two pods is to be deleted before the other: `Less` is deleted first.
///
/// The first rule that sees a difference decides. Not transitive where ages share a bucket, as
/// in Kubernetes; only for sorts that can live with that.
pub fn deletion_order(a: &Rank, b: &Rank, now: Timestamp) -> Ordering {
    let by_state = a
        .scheduled
        .cmp(&b.scheduled)
        .then(phase_order(a.phase).cmp(&phase_order(b.phase)))
        .then(a.ready.cmp(&b.ready))
        .then(a.deletion_cost.cmp(&b.deletion_cost))
        .then(b.colocated.cmp(&a.colocated));
    if by_state.is_ne() {
        return by_state;
    }
    if a.ready && b.ready && a.ready_since != b.ready_since {
        return younger_first(a.ready_since, b.ready_since, a, b, now);
    }
    let by_restarts = b.restarts.cmp(&a.restarts).then(b.sidecar_restarts.cmp(&a.sidecar_restarts));
    if by_restarts.is_ne() {
        return by_restarts;
    }
    if a.created != b.created {
        return younger_first(a.created, b.created, a, b, now);
    }
    Ordering::Equal
}

/// Pending, then Unknown, then Running; whatever else ranks with Pending.
const fn phase_order(phase: PodPhase) -> u8 {
    match phase {
        PodPhase::Unknown => 1,
        PodPhase::Running => 2,
        _ => 0,
    }
}

/// Ages in buckets of powers of two, so that old pods are not spared just for a little more age.
fn younger_first(
    since_a: Seconds,
    since_b: Seconds,
    a: &Rank,
    b: &Rank,
    now: Timestamp,
) -> Ordering {
    match (since_a.get(), since_b.get()) {
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
        (Some(since_a), Some(since_b)) => {
            bucket(since_a, now).cmp(&bucket(since_b, now)).then(a.uid.cmp(&b.uid))
        }
    }
}

/// `floor(log2(age in nanoseconds))`; no age at all comes before all.
fn bucket(since: Timestamp, now: Timestamp) -> Option<u32> {
    now.since(since).as_micros().saturating_mul(1_000).checked_ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000_000);

    fn ago(seconds: i64) -> Seconds {
        Seconds::new(Some(Timestamp::from_secs(1_000_000 - seconds)))
    }

    fn healthy() -> Rank {
        Rank {
            scheduled: true,
            phase: PodPhase::Running,
            ready: true,
            deletion_cost: 0,
            colocated: 1,
            ready_since: ago(100),
            restarts: 0,
            sidecar_restarts: 0,
            created: ago(200),
            uid: Uid::from_bytes([5; 16]),
        }
    }

    /// Each rule decides against all that come after it.
    #[test]
    fn the_first_difference_decides() {
        let base = healthy();
        let young = Rank { ready_since: ago(1), created: ago(1), restarts: 9, ..base };
        let doubled = |rank: Rank| Rank { colocated: 5, ..rank };
        let cheap = |rank: Rank| Rank { deletion_cost: -10, ..rank };
        for (first, second) in [
            (Rank { scheduled: false, ..base }, cheap(doubled(Rank { ready: false, ..young }))),
            (
                Rank { phase: PodPhase::Pending, ..base },
                cheap(Rank { phase: PodPhase::Unknown, ..young }),
            ),
            (Rank { phase: PodPhase::Unknown, ..base }, cheap(Rank { ready: false, ..young })),
            (Rank { phase: PodPhase::Other, ..base }, Rank { phase: PodPhase::Unknown, ..young }),
            (Rank { ready: false, ..base }, cheap(doubled(young))),
            (cheap(base), doubled(young)),
            (doubled(base), young),
            (Rank { ready_since: ago(10), ..base }, Rank { restarts: 50, ..base }),
            (Rank { ready_since: Seconds::NONE, ..base }, Rank { ready_since: ago(1), ..base }),
            (Rank { restarts: 2, ..base }, Rank { restarts: 1, sidecar_restarts: 7, ..base }),
            (Rank { sidecar_restarts: 1, ..base }, Rank { created: ago(1), ..base }),
            (Rank { created: ago(10), ..base }, base),
            (Rank { created: Seconds::NONE, ..base }, Rank { created: ago(1), ..base }),
        ] {
            assert_eq!(deletion_order(&first, &second, NOW), Ordering::Less, "{first:?}");
            assert_eq!(deletion_order(&second, &first, NOW), Ordering::Greater, "{second:?}");
        }
        assert_eq!(deletion_order(&base, &base, NOW), Ordering::Equal);
    }

    #[test]
    fn ages_within_a_bucket_are_settled_by_uid() {
        // 2³⁶ ns are 68.7 s and 2³⁷ ns 137.4 s.
        let low = Rank { uid: Uid::from_bytes([1; 16]), ready_since: ago(130), ..healthy() };
        let high = Rank { uid: Uid::from_bytes([9; 16]), ready_since: ago(70), ..healthy() };
        assert_eq!(deletion_order(&low, &high, NOW), Ordering::Less);
        let high = Rank { ready_since: ago(60), ..high };
        assert_eq!(deletion_order(&low, &high, NOW), Ordering::Greater);
        // Of the future: younger than everything.
        let high = Rank { ready_since: ago(-5), ..high };
        assert_eq!(deletion_order(&high, &low, NOW), Ordering::Less);
    }

    #[test]
    fn unready_pods_are_not_told_apart_by_ready_time() {
        let a = Rank { ready: false, ready_since: ago(1), ..healthy() };
        let b = Rank { ready: false, ready_since: ago(1000), restarts: 1, ..healthy() };
        assert_eq!(deletion_order(&b, &a, NOW), Ordering::Less);
    }
}
