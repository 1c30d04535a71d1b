//! Tasks in one thread and in virtual time: who was woken first goes on first, and time passes only
//! when nobody can go on.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use picokube_clock::VirtualClock;

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks that share a clock: those of a board, or those of a server.
#[derive(Default)]
pub(super) struct Executor {
    clock: VirtualClock,
    tasks: BTreeMap<u64, Task>,
    spawner: Spawner,
    ready: Arc<Ready>,
    begun: u64,
}

struct Task {
    work: Work,
    flag: Arc<Flag>,
    waker: Waker,
}

/// The tasks that can go on, in the order in which they were woken.
#[derive(Default)]
struct Ready(Mutex<VecDeque<u64>>);

impl Ready {
    fn queue(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Flag {
    number: u64,
    is_queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.ready.queue().push_back(self.number);
        }
    }
}

/// Begins tasks.
#[derive(Clone, Default)]
pub(super) struct Spawner(Rc<RefCell<Vec<Work>>>);

impl Spawner {
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + 'static) {
        self.0.borrow_mut().push(Box::pin(work));
    }
}

/// What HTTP/2 begins a task for.
impl<F: Future + 'static> hyper::rt::Executor<F> for Spawner {
    fn execute(&self, work: F) {
        self.spawn(async move {
            work.await;
        });
    }
}

impl Executor {
    pub(super) fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// When a task wants to be woken, by this clock.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.clock.next_at()
    }

    /// Lets all tasks go on that can, and those that they wake; it is `now`. Says how many have, which
    /// are no more than `most`.
    pub(super) fn run(&mut self, now: u64, most: usize) -> usize {
        self.clock.wake_due(now);
        for count in 0..most {
            self.begin_tasks();
            let Some(number) = self.ready.queue().pop_front() else { return count };
            let Some(task) = self.tasks.get_mut(&number) else { continue };
            task.flag.is_queued.store(false, Ordering::Relaxed);
            let mut context = Context::from_waker(&task.waker);
            let polled = self.clock.within(now, || task.work.as_mut().poll(&mut context));
            if polled.is_ready() {
                let ended = self.tasks.remove(&number);
                self.clock.within(now, || drop(ended));
            }
        }
        most
    }

    fn begin_tasks(&mut self) {
        for work in self.spawner.0.take() {
            let number = self.begun;
            self.begun += 1;
            let ready = self.ready.clone();
            let flag = Arc::new(Flag { number, is_queued: AtomicBool::new(false), ready });
            flag.wake_by_ref();
            let waker = Waker::from(flag.clone());
            self.tasks.insert(number, Task { work, flag, waker });
        }
    }
}

#[cfg(test)]
mod tests {
    use embassy_time::{Instant, Timer};

    use super::*;

    #[test]
    fn tasks_take_turns_and_time_passes_between() {
        let mut executor = Executor::default();
        let told = Rc::new(RefCell::new(Vec::new()));
        for (name, seconds) in [("a", 2), ("b", 1), ("c", 2)] {
            let told = told.clone();
            executor.spawner().spawn(async move {
                Timer::after_secs(seconds).await;
                told.borrow_mut().push((name, Instant::now().as_secs()));
            });
        }
        let mut now = 0;
        executor.run(now, 100);
        while let Some(at) = executor.next_at() {
            now = at;
            executor.run(now, 100);
        }
        assert_eq!(*told.borrow(), [("b", 1), ("a", 2), ("c", 2)]);
        assert_eq!((now, executor.tasks.len()), (2_000_000, 0));
    }
}
