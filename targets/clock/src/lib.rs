//! embassy's time on a PC: the real one, or a virtual one on a thread that says so.
//!
//! There can be one time driver in a program, and `picokube` both runs controllers in real time
//! (`picokube run`) and simulates them (`picokube check --driver`).

use std::cell::RefCell;
use std::mem;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use embassy_time_driver::Driver;

/// Whom to wake, and when. A task that waits for several times is woken at the first of them, and
/// says then for which it waits still.
#[derive(Debug, Default)]
struct Timers(Vec<(u64, Waker)>);

impl Timers {
    fn add(&mut self, at: u64, waker: &Waker) {
        match self.0.iter_mut().find(|(_, known)| known.will_wake(waker)) {
            Some((due, _)) => *due = at.min(*due),
            None => self.0.push((at, waker.clone())),
        }
    }

    /// When the first is due.
    fn next(&self) -> Option<u64> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    /// Those that are due, the first of them first.
    fn take_due(&mut self, now: u64) -> Vec<Waker> {
        let mut due: Vec<(u64, Waker)> = self.0.extract_if(.., |(at, _)| *at <= now).collect();
        // A stable order: of those due at once, who has waited longer comes first.
        due.sort_by_key(|(at, _)| *at);
        due.into_iter().map(|(_, waker)| waker).collect()
    }
}

/// A clock that shows what it is told to, in microseconds.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now: u64,
    timers: Timers,
}

thread_local! {
    /// The clock that this thread goes by, if that is not the real one.
    static VIRTUAL: RefCell<Option<VirtualClock>> = const { RefCell::new(None) };
}

impl VirtualClock {
    /// Lets this thread go by this clock while it acts; it is `now`.
    pub fn within<T>(&mut self, now: u64, act: impl FnOnce() -> T) -> T {
        self.now = self.now.max(now);
        let outer = VIRTUAL.replace(Some(mem::take(self)));
        let result = act();
        *self = VIRTUAL.replace(outer).unwrap_or_default();
        result
    }

    /// When somebody has to be woken.
    pub fn next_at(&self) -> Option<u64> {
        self.timers.next()
    }

    /// Wakes everybody who wants to be woken by `now`.
    pub fn wake_due(&mut self, now: u64) {
        self.timers.take_due(now).iter().for_each(Waker::wake_by_ref);
    }
}

struct Ticks;

embassy_time_driver::time_driver_impl!(static TICKS: Ticks = Ticks);

impl Driver for Ticks {
    fn now(&self) -> u64 {
        let shown = VIRTUAL.with_borrow(|clock| clock.as_ref().map(|clock| clock.now));
        shown.unwrap_or_else(|| REAL.now())
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        if at == u64::MAX {
            return;
        }
        let is_done = VIRTUAL.with_borrow_mut(|clock| {
            let Some(clock) = clock else { return false };
            match at <= clock.now {
                true => waker.wake_by_ref(),
                false => clock.timers.add(at, waker),
            }
            true
        });
        if !is_done {
            REAL.schedule(at, waker);
        }
    }
}

/// The real time, with a thread that wakes.
struct Real {
    begun: Instant,
    timers: Mutex<Timers>,
    changed: Condvar,
}

static REAL: LazyLock<Real> = LazyLock::new(|| {
    // It waits until this is there.
    let spawned = thread::Builder::new().name("timers".to_owned()).spawn(|| REAL.keep_waking());
    spawned.expect("a thread for timers");
    Real { begun: Instant::now(), timers: Mutex::default(), changed: Condvar::new() }
});

impl Real {
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn timers(&self) -> MutexGuard<'_, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn schedule(&self, at: u64, waker: &Waker) {
        let mut timers = self.timers();
        let first = timers.next();
        timers.add(at, waker);
        if first.is_none_or(|first| at < first) {
            self.changed.notify_one();
        }
    }

    fn keep_waking(&self) -> ! {
        let mut timers = self.timers();
        loop {
            let now = self.now();
            let due = timers.take_due(now);
            if !due.is_empty() {
                drop(timers);
                due.into_iter().for_each(Waker::wake);
                timers = self.timers();
                continue;
            }
            timers = match timers.next() {
                Some(at) => {
                    let pause = Duration::from_micros(at.saturating_sub(now));
                    let waited = self.changed.wait_timeout(timers, pause);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(timers).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake};

    use embassy_time::Timer;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn virtual_time_passes_when_it_is_told_to() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut clock = VirtualClock::default();
        let timer = clock.within(5_000_000, || Timer::after_secs(3600));
        let mut timer = pin!(timer);
        let mut poll = |clock: &mut VirtualClock, now| {
            clock.within(now, || timer.as_mut().poll(&mut Context::from_waker(&waker)))
        };
        assert_eq!(poll(&mut clock, 5_000_000), Poll::Pending);
        assert_eq!(clock.next_at(), Some(3_605_000_000));
        clock.wake_due(3_604_999_999);
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        clock.wake_due(3_605_000_000);
        assert_eq!((woken.0.load(Ordering::Relaxed), clock.next_at()), (1, None));
        assert_eq!(poll(&mut clock, 3_605_000_000), Poll::Ready(()));
    }

    #[test]
    fn real_time_passes_by_itself() {
        let begun = Instant::now();
        embassy_futures::block_on(async {
            embassy_futures::join::join(Timer::after_millis(20), Timer::after_millis(1)).await;
        });
        assert!(begun.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn of_timers_of_one_task_the_first_counts() {
        let (one, two) = (Waker::from(Arc::new(Woken::default())), Waker::noop());
        let mut timers = Timers::default();
        for (at, waker) in [(9, &one), (4, &one), (7, &one), (4, two)] {
            timers.add(at, waker);
        }
        assert_eq!((timers.next(), timers.0.len()), (Some(4), 2));
        assert!(timers.take_due(3).is_empty());
        assert!(timers.take_due(4)[0].will_wake(&one));
        assert_eq!(timers.next(), None);
    }
}
