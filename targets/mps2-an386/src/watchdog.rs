//! The board's CMSDK watchdog: a 32-bit counter that counts down at 25 MHz.
//!
//! When it reaches zero, it raises the non-maskable interrupt, which keeps where the device hung
//! and resets it; when it reaches zero once more, it resets the device itself.

use core::arch::global_asm;

use picokube_firmware::crash::{self, Cause};

const BASE: usize = 0x4000_8000;
/// Generous, since the emulator may have to wait for its turn on a busy machine.
const SECONDS: u32 = 20;
const COUNTS_PER_SECOND: u32 = 25_000_000;

/// The watchdog, running.
pub struct Watchdog(());

impl Watchdog {
    /// Starts it. It cannot be stopped.
    pub fn start() -> Self {
        const INTERRUPT_AND_RESET: u32 = 0b11;
        Register::Lock.write(UNLOCK);
        Register::Load.write(SECONDS * COUNTS_PER_SECOND);
        Register::Control.write(INTERRUPT_AND_RESET);
        Register::Lock.write(0);
        Self(())
    }
}

impl picokube_firmware::Watchdog for Watchdog {
    fn feed(&mut self) {
        Register::Lock.write(UNLOCK);
        Register::InterruptClear.write(1);
        Register::Lock.write(0);
    }
}

const UNLOCK: u32 = 0x1acc_e551;

/// The registers by their offsets.
#[derive(Clone, Copy)]
enum Register {
    Load = 0x000,
    Control = 0x008,
    InterruptClear = 0x00c,
    Lock = 0xc00,
}

impl Register {
    fn write(self, value: u32) {
        // SAFETY: a register of the watchdog of this board; none affects memory.
        unsafe { ((BASE + self as usize) as *mut u32).write_volatile(value) }
    }
}

// The interrupted instruction is in the frame that the processor has pushed: hand it over.
global_asm!(
    ".global NonMaskableInt",
    ".thumb_func",
    "NonMaskableInt:",
    "mrs r0, msp",
    "ldr r0, [r0, #24]",
    "b {bark}",
    bark = sym bark,
);

extern "C" fn bark(address: u32) -> ! {
    crash::reset(Cause::Watchdog, address, 0, "")
}
