//! An executor that sleeps with WFI.
//!
//! embassy-executor's own for Cortex-M sleeps with WFE, which QEMU takes for a no-op: the emulated
//! CPU would keep a core of the host busy.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

use critical_section::Mutex;
use embassy_executor::{Spawner, raw};
use embassy_time::Duration;
use static_cell::StaticCell;

use crate::time_driver;

const COUNTS_PER_MICROSECOND: u64 = 25;

static WOKEN: AtomicBool = AtomicBool::new(false);

/// In counts of the clock.
static SLEPT: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));

/// embassy-executor calls this when a task is woken, also from interrupts.
#[unsafe(export_name = "__pender")]
fn pend(_: *mut ()) {
    WOKEN.store(true, Ordering::Release);
}

/// Runs tasks for ever, `start` first.
pub fn run(start: impl FnOnce(Spawner)) -> ! {
    static EXECUTOR: StaticCell<raw::Executor> = StaticCell::new();
    let executor: &'static raw::Executor = EXECUTOR.init(raw::Executor::new(core::ptr::null_mut()));
    start(executor.spawner());
    loop {
        WOKEN.store(false, Ordering::Release);
        // SAFETY: the only call, and not from within a task.
        unsafe { executor.poll() };
        // With interrupts masked, one that comes between the check and WFI still ends WFI.
        critical_section::with(|cs| {
            if !WOKEN.load(Ordering::Acquire) {
                let before = time_driver::counts(cs);
                cortex_m::asm::wfi();
                let slept = SLEPT.borrow(cs);
                slept.set(slept.get() + time_driver::counts(cs) - before);
            }
        });
    }
}

/// How long the processor has not slept since the boot.
pub fn busy() -> Duration {
    let counts = critical_section::with(|cs| time_driver::counts(cs) - SLEPT.borrow(cs).get());
    Duration::from_micros(counts / COUNTS_PER_MICROSECOND)
}
