//! The board's first serial port: whatever comes on it asks for a reset, as a button would.

use crate::board::{self, Interrupt};

const BASE: usize = 0x4000_4000;

/// The registers by their offsets.
#[derive(Clone, Copy)]
enum Register {
    Data = 0x00,
    Control = 0x08,
    InterruptClear = 0x0c,
    Divider = 0x10,
}

/// Listens.
pub(crate) fn start() {
    const RECEIVE_AND_INTERRUPT: u32 = 1 << 1 | 1 << 3;
    /// 115,200 Bd of 25 MHz.
    const DIVIDER: u32 = 217;
    Register::Divider.write(DIVIDER);
    Register::Control.write(RECEIVE_AND_INTERRUPT);
    board::enable(Interrupt::Console);
}

pub(crate) fn on_interrupt() {
    const RECEIVED: u32 = 1 << 1;
    Register::InterruptClear.write(RECEIVED);
    // Reading makes room for the next one.
    let _ = Register::Data.read();
    picokube_firmware::reset::ask();
}

impl Register {
    fn read(self) -> u32 {
        // SAFETY: a register of a serial port of this board.
        unsafe { ((BASE + self as usize) as *const u32).read_volatile() }
    }

    fn write(self, value: u32) {
        // SAFETY: as above; no value of these registers affects memory.
        unsafe { ((BASE + self as usize) as *mut u32).write_volatile(value) }
    }
}
