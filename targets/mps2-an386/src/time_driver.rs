//! `embassy-time` on two of the board's CMSDK timers: 32-bit counters that count down at 25 MHz.
//!
//! One runs freely and, with a count of its wraps, is the clock. The other is the alarm: it is
//! loaded with the time to the next deadline and stopped when it fires.

use core::cell::{Cell, RefCell};
use core::task::Waker;

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, TICK_HZ};
use embassy_time_queue_utils::Queue;

use crate::board::{self, Interrupt};

const COUNTS_PER_TICK: u64 = 25_000_000 / TICK_HZ;

const CLOCK: Timer = Timer { base: 0x4000_0000 };
const ALARM: Timer = Timer { base: 0x4000_1000 };

/// Starts the clock. Before this, it stands at zero.
pub fn start() {
    CLOCK.start(u32::MAX);
    board::enable(Interrupt::Clock);
    board::enable(Interrupt::Alarm);
}

/// The time since the boot, finer than `embassy-time` has it: in 25ths of a microsecond.
pub(crate) fn counts(cs: CriticalSection<'_>) -> u64 {
    DRIVER.counts(cs)
}

pub(crate) fn on_clock_interrupt() {
    critical_section::with(|cs| {
        if CLOCK.fired() {
            CLOCK.acknowledge();
            let wraps = DRIVER.wraps.borrow(cs);
            wraps.set(wraps.get().wrapping_add(1));
        }
    });
}

pub(crate) fn on_alarm_interrupt() {
    critical_section::with(|cs| DRIVER.serve(cs));
}

/// One CMSDK timer, at an address where the board has one.
struct Timer {
    base: usize,
}

impl Timer {
    const CONTROL: usize = 0x0;
    const VALUE: usize = 0x4;
    const RELOAD: usize = 0x8;
    /// Reads as 1 when the timer has fired; writing 1 takes that back.
    const INTERRUPT: usize = 0xc;

    const RUN: u32 = 1 << 0;
    const RUN_AND_INTERRUPT: u32 = Self::RUN | 1 << 3;

    fn start(&self, count: u32) {
        self.stop();
        self.write(Self::RELOAD, count);
        self.write(Self::VALUE, count);
        self.write(Self::CONTROL, Self::RUN_AND_INTERRUPT);
    }

    fn stop(&self) {
        self.write(Self::CONTROL, 0);
        self.acknowledge();
    }

    fn running(&self) -> bool {
        self.read(Self::CONTROL) & Self::RUN != 0
    }

    /// Counts since the last (re)load.
    fn elapsed(&self) -> u32 {
        u32::MAX - self.read(Self::VALUE)
    }

    fn fired(&self) -> bool {
        self.read(Self::INTERRUPT) & 1 != 0
    }

    fn acknowledge(&self) {
        self.write(Self::INTERRUPT, 1);
    }

    fn read(&self, register: usize) -> u32 {
        // SAFETY: a register of a timer of this board.
        unsafe { ((self.base + register) as *const u32).read_volatile() }
    }

    fn write(&self, register: usize, value: u32) {
        // SAFETY: as above; no value of these registers affects memory.
        unsafe { ((self.base + register) as *mut u32).write_volatile(value) }
    }
}

struct Mps2Time {
    wraps: Mutex<Cell<u32>>,
    queue: Mutex<RefCell<Queue>>,
}

embassy_time_driver::time_driver_impl!(static DRIVER: Mps2Time = Mps2Time {
    wraps: Mutex::new(Cell::new(0)),
    queue: Mutex::new(RefCell::new(Queue::new())),
});

impl Mps2Time {
    fn ticks(&self, cs: CriticalSection<'_>) -> u64 {
        self.counts(cs) / COUNTS_PER_TICK
    }

    fn counts(&self, cs: CriticalSection<'_>) -> u64 {
        if !CLOCK.running() {
            return 0;
        }
        let wraps = self.wraps.borrow(cs).get();
        let low = CLOCK.elapsed();
        // A wrap whose interrupt is still pending: `low` may be from before it, so read again.
        let (wraps, low) =
            if CLOCK.fired() { (wraps.wrapping_add(1), CLOCK.elapsed()) } else { (wraps, low) };
        u64::from(wraps) << 32 | u64::from(low)
    }

    /// Wakes all that is due and sets the alarm for the next deadline.
    fn serve(&self, cs: CriticalSection<'_>) {
        ALARM.stop();
        let mut queue = self.queue.borrow(cs).borrow_mut();
        loop {
            let now = self.ticks(cs);
            let next = queue.next_expiration(now);
            if next == u64::MAX {
                return;
            }
            if next > now {
                // Farther away than the counter reaches: the alarm comes early and is set again.
                let counts = (next - now).saturating_mul(COUNTS_PER_TICK);
                ALARM.start(u32::try_from(counts).unwrap_or(u32::MAX));
                return;
            }
        }
    }
}

impl Driver for Mps2Time {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.ticks(cs))
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            let sooner = self.queue.borrow(cs).borrow_mut().schedule_wake(at, waker);
            if sooner {
                self.serve(cs);
            }
        });
    }
}
