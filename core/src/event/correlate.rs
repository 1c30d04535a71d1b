//! Kubernetes' event correlator: aggregate, count, filter.

use core::fmt::Write;

use crate::text::{Fingerprint, FingerprintHasher};
use crate::time::{Duration, Instant, Timestamp};

/// Distinct messages of one kind after which further ones are combined.
const SIMILAR: usize = 9;
/// Time without a similar event after which they are told apart again.
const SIMILAR_FOR: Duration = Duration::from_secs(600);
/// Events at once about one object from one source.
const BURST: u64 = 25;
/// Time for one more.
const REFILL: Duration = Duration::from_secs(300);
/// How many elements of a table are looked at for one key. A larger memory is divided, by key, so
/// that remembering more does not take longer.
const GROUP: usize = 32;

/// What is remembered of events: one element of each table. The least recently used of those that
/// share a group goes first.
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    similar: Similar,
    counted: Counted,
    spammer: Spammer,
}

#[derive(Clone, Copy, Debug)]
struct Similar {
    key: u64,
    used: u64,
    /// Messages seen, by fingerprint.
    messages: [u32; SIMILAR],
    len: u8,
    last: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    key: u64,
    used: u64,
    count: u32,
    name: u64,
    first: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Spammer {
    key: u64,
    used: u64,
    /// When all tokens will be there again.
    full_at: Instant,
}

impl Remembered {
    /// Nothing is remembered.
    pub const EMPTY: Self = Self {
        similar: Similar { key: 0, used: 0, messages: [0; SIMILAR], len: 0, last: Instant::ZERO },
        counted: Counted { key: 0, used: 0, count: 0, name: 0, first: Timestamp::EPOCH },
        spammer: Spammer { key: 0, used: 0, full_at: Instant::ZERO },
    };
}

impl AsMut<Remembered> for Remembered {
    fn as_mut(&mut self) -> &mut Remembered {
        self
    }
}

/// The keys of one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// Source, object and type.
    pub(super) object: Fingerprint,
    /// The same, and the reason.
    pub(super) similar: Fingerprint,
    /// The message.
    pub(super) message: Fingerprint,
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Correlated {
    /// It stands for similar ones.
    pub(super) combined: bool,
    /// How often it has happened.
    pub(super) count: u32,
    /// The number in its name: that of the first time.
    pub(super) name: u64,
    /// When it first happened.
    pub(super) first: Timestamp,
    /// There are too many of its sort: it is not sent.
    pub(super) silenced: bool,
}

/// Passes an event on through all three tables.
pub(super) fn correlate(
    memory: &mut [impl AsMut<Remembered>],
    tick: u64,
    keys: &Keys,
    fresh_name: u64,
    now: Instant,
    wall: Timestamp,
) -> Correlated {
    let combined = aggregate(memory, tick, keys, now);
    let key = if combined { keys.similar } else { join(keys.similar, keys.message) };
    let counted = count(memory, tick, key, fresh_name, wall);
    let silenced = !take_token(memory, tick, keys.object, now);
    let Counted { count, name, first, .. } = counted;
    Correlated { combined, count, name, first, silenced }
}

fn aggregate(memory: &mut [impl AsMut<Remembered>], tick: u64, keys: &Keys, now: Instant) -> bool {
    let key = keys.similar.to_bits();
    let Some(similar) = slot(memory, |memory| &mut memory.similar, |s| (s.key, s.used), key) else {
        return false;
    };
    if similar.key != key || now.since(similar.last) > SIMILAR_FOR {
        *similar = Similar { key, len: 0, ..Remembered::EMPTY.similar };
    }
    similar.used = tick;
    similar.last = now;
    let message = keys.message.to_bits() as u32;
    let known = usize::from(similar.len);
    if similar.messages.iter().take(known).any(|seen| *seen == message) {
        return false;
    }
    match similar.messages.get_mut(known) {
        Some(place) => {
            *place = message;
            similar.len += 1;
            false
        }
        None => true,
    }
}

fn count(
    memory: &mut [impl AsMut<Remembered>],
    tick: u64,
    key: Fingerprint,
    fresh_name: u64,
    wall: Timestamp,
) -> Counted {
    let key = key.to_bits();
    let fresh = Counted { key, used: tick, count: 1, name: fresh_name, first: wall };
    let Some(counted) = slot(memory, |memory| &mut memory.counted, |c| (c.key, c.used), key) else {
        return fresh;
    };
    if counted.key == key && counted.count > 0 {
        counted.count = counted.count.saturating_add(1);
        counted.used = tick;
    } else {
        *counted = fresh;
    }
    *counted
}

fn take_token(
    memory: &mut [impl AsMut<Remembered>],
    tick: u64,
    key: Fingerprint,
    now: Instant,
) -> bool {
    let key = key.to_bits();
    let Some(spammer) = slot(memory, |memory| &mut memory.spammer, |s| (s.key, s.used), key) else {
        return true;
    };
    if spammer.key != key {
        *spammer = Spammer { key, used: tick, full_at: now };
    }
    spammer.used = tick;
    let full_at = spammer.full_at.max(now) + REFILL;
    let has_token = full_at.since(now) <= REFILL.saturating_mul(BURST);
    if has_token {
        spammer.full_at = full_at;
    }
    has_token
}

/// The element with this key, or else the one of its group that was used least recently.
fn slot<T>(
    memory: &mut [impl AsMut<Remembered>],
    table: impl Fn(&mut Remembered) -> &mut T,
    key_and_use: impl Fn(&T) -> (u64, u64),
    key: u64,
) -> Option<&mut T> {
    let groups = memory.len().div_ceil(GROUP).max(1);
    let size = memory.len().div_ceil(groups).max(1);
    let group = memory.chunks_mut(size).nth(key as usize % groups)?;
    group.iter_mut().map(|element| table(element.as_mut())).min_by_key(|element| match key_and_use(
        element,
    ) {
        (found, _) if found == key => 0,
        (_, used) => used.saturating_add(1),
    })
}

fn join(a: Fingerprint, b: Fingerprint) -> Fingerprint {
    let mut hasher = FingerprintHasher::new();
    hasher.push(&a.to_bits().to_le_bytes());
    hasher.push(&b.to_bits().to_le_bytes());
    hasher.finish()
}

/// Takes the fingerprint of what is written to it.
#[derive(Default)]
pub(super) struct Printer(FingerprintHasher);

impl Printer {
    pub(super) fn finish(&self) -> Fingerprint {
        self.0.finish()
    }
}

impl Write for Printer {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Correlator<const N: usize = 8> {
        memory: [Remembered; N],
        tick: u64,
    }

    impl Correlator {
        fn new() -> Self {
            Self::with_room()
        }
    }

    impl<const N: usize> Correlator<N> {
        fn with_room() -> Self {
            Self { memory: [Remembered::EMPTY; N], tick: 0 }
        }

        fn event(&mut self, object: &str, reason: &str, message: &str, secs: u64) -> Correlated {
            self.tick += 1;
            let object = Fingerprint::of(object);
            let keys = Keys {
                object,
                similar: join(object, Fingerprint::of(reason)),
                message: Fingerprint::of(message),
            };
            let now = Instant::ZERO + Duration::from_secs(secs);
            let wall = Timestamp::from_secs(secs as i64);
            correlate(&mut self.memory, self.tick, &keys, self.tick, now, wall)
        }
    }

    #[test]
    fn the_tenth_of_a_kind_stands_for_all_that_follow() {
        let mut correlator = Correlator::new();
        for number in 1..=9 {
            let event = correlator.event("web", "Created", &std::format!("{number}"), 0);
            assert!(!event.combined && event.count == 1, "{number}");
        }
        let tenth = correlator.event("web", "Created", "10", 1);
        assert!(tenth.combined && tenth.count == 1);
        let next = correlator.event("web", "Created", "11", 2);
        assert!(next.combined && next.count == 2);
        assert_eq!((next.name, next.first), (tenth.name, tenth.first));
        // One that was seen before is itself, another object or reason is not concerned.
        assert_eq!(correlator.event("web", "Created", "3", 3).count, 2);
        assert!(!correlator.event("web", "Deleted", "12", 3).combined);
        assert!(!correlator.event("api", "Created", "12", 3).combined);
    }

    #[test]
    fn ten_quiet_minutes_end_the_combining() {
        let mut correlator = Correlator::new();
        (0..12).for_each(|number| {
            correlator.event("web", "Created", &std::format!("{number}"), 0);
        });
        assert!(correlator.event("web", "Created", "later", 600).combined);
        assert!(!correlator.event("web", "Created", "much later", 1201).combined);
    }

    #[test]
    fn repetitions_are_counted_under_the_first_name() {
        let mut correlator = Correlator::new();
        let first = correlator.event("web", "Failed", "no", 5);
        let second = correlator.event("web", "Failed", "no", 9);
        assert_eq!((first.count, second.count), (1, 2));
        assert_eq!((second.name, second.first), (first.name, first.first));
    }

    #[test]
    fn too_many_about_one_object_are_silenced_but_counted() {
        let mut correlator = Correlator::new();
        for number in 1..=25 {
            assert!(!correlator.event("web", "Failed", "no", 0).silenced, "{number}");
        }
        assert!(correlator.event("web", "Failed", "no", 0).silenced);
        assert!(correlator.event("web", "Other", "thing", 299).silenced);
        assert!(!correlator.event("api", "Failed", "no", 0).silenced);
        let later = correlator.event("web", "Failed", "no", 300);
        assert!(!later.silenced);
        assert_eq!(later.count, 27);
        assert!(correlator.event("web", "Failed", "no", 301).silenced);
    }

    #[test]
    fn forgets_whom_it_heard_of_longest_ago() {
        let mut correlator = Correlator::new();
        correlator.event("web", "Failed", "no", 0);
        for number in 0..7 {
            correlator.event(&std::format!("other {number}"), "Failed", "no", 0);
        }
        assert_eq!(correlator.event("web", "Failed", "no", 0).count, 2);
        for number in 0..8 {
            correlator.event(&std::format!("another {number}"), "Failed", "no", 0);
        }
        assert_eq!(correlator.event("web", "Failed", "no", 0).count, 1);
    }

    /// Whatever the size of the memory: every key finds its group, and finds itself there.
    #[test]
    fn a_large_memory_remembers_more() {
        fn remembered<const N: usize>() -> usize {
            let mut correlator = Correlator::<N>::with_room();
            let names: std::vec::Vec<_> =
                (0..N / 2).map(|number| std::format!("object {number}")).collect();
            for name in &names {
                assert_eq!(correlator.event(name, "Failed", "no", 0).count, 1, "{name}");
            }
            let again = names.iter().map(|name| correlator.event(name, "Failed", "no", 0).count);
            again.filter(|count| *count == 2).count()
        }
        assert_eq!(remembered::<8>(), 4);
        assert_eq!(remembered::<{ GROUP }>(), GROUP / 2);
        for (remembered, size) in [
            (remembered::<{ GROUP + 1 }>(), GROUP + 1),
            (remembered::<100>(), 100),
            (remembered::<1024>(), 1024),
        ] {
            // Groups fill unevenly, but of half as many objects as fit hardly any is forgotten.
            assert!(remembered * 10 >= size / 2 * 9, "{remembered} of {size} / 2");
        }
    }
}
