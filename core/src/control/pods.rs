//! Pods of one owner: in what order, and whether and when they are available.

use crate::link::{Link, Slot};
use crate::store::Pod;
use crate::time::{Duration, Timestamp};

/// A pod while the pods of one owner are put in order. Whoever does so says by what, and what it notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedPod {
    /// What it is put in order by, or its place before.
    pub(crate) place: i32,
    /// Where it is cached; nowhere is the same bits as no pod at all.
    slot: Link,
    pub(crate) note: u16,
}

const _: () = assert!(size_of::<OrderedPod>() == 8);

impl OrderedPod {
    /// No pod.
    pub const NONE: Self = Self { place: 0, slot: None, note: 0 };

    pub(crate) const fn at(place: i32, slot: Slot, note: u16) -> Self {
        Self { place, slot: Some(slot), note }
    }

    /// Where it is cached.
    pub const fn slot(&self) -> Slot {
        match self.slot {
            Some(slot) => slot,
            // Nobody looks beyond the pods there are.
            None => Slot::FIRST,
        }
    }
}

/// Ready for at least `min_ready_seconds` at `now`.
pub fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    pod.is_ready()
        && (min_ready_seconds <= 0
            || available_at(pod, min_ready_seconds).is_some_and(|since| since <= now))
}

/// How long until the next of these pods becomes available; `None` if none is about to.
pub fn next_availability<'a>(
    pods: impl Iterator<Item = &'a Pod>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Duration> {
    if min_ready_seconds <= 0 {
        return None;
    }
    pods.filter(|pod| pod.is_ready())
        .filter_map(|pod| available_at(pod, min_ready_seconds))
        .filter(|since| *since > now)
        .map(|since| since.since(now))
        .min()
}

fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    let wait = Duration::from_secs(u64::from(min_ready_seconds.unsigned_abs()));
    Some(pod.ready_transition.get()?.saturating_add(wait))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Seconds;

    fn pod(ready: bool, since: Option<i64>) -> Pod {
        let mut pod = Pod::test(ready);
        pod.ready_transition = Seconds::new(since.map(Timestamp::from_secs));
        pod
    }

    #[test]
    fn available_from_the_very_second_on() {
        let now = Timestamp::from_secs(1_000);
        assert!(is_available(&pod(true, None), 0, now));
        assert!(!is_available(&pod(false, Some(1)), 0, now));
        assert!(!is_available(&pod(true, None), 5, now));
        assert!(!is_available(&pod(false, Some(1)), 5, now));
        assert!(is_available(&pod(true, Some(995)), 5, now));
        assert!(!is_available(&pod(true, Some(996)), 5, now));
    }

    #[test]
    fn the_next_check_is_the_first_that_changes_something() {
        let now = Timestamp::from_secs(1_000);
        let pods = [
            pod(true, Some(990)),
            pod(true, Some(995)),
            pod(true, Some(998)),
            pod(false, Some(999)),
            pod(true, None),
        ];
        let next = |seconds| next_availability(pods.iter(), seconds, now).map(Duration::as_secs);
        assert_eq!(next(0), None);
        assert_eq!(next(2), None);
        assert_eq!(next(3), Some(1));
        assert_eq!(next(5), Some(3));
        assert_eq!(next(6), Some(1));
        assert_eq!(next(15), Some(5));
    }
}
