//! An executor that sleeps with WFI.
//!
//! embassy-executor's own for Cortex-M sleeps with WFE, which QEMU takes for a no-op: the emulated
//! CPU would keep a core of the host busy.

use core::sync::atomic::{AtomicBool, Ordering};

use embassy_executor::{Spawner, raw};
use static_cell::StaticCell;

static WOKEN: AtomicBool = AtomicBool::new(false);

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
        critical_section::with(|_| {
            if !WOKEN.load(Ordering::Acquire) {
                cortex_m::asm::wfi();
            }
        });
    }
}
