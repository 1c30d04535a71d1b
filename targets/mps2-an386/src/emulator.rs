//! What QEMU needs to be told; a real board would not mind.
//!
//! QEMU looks at the sockets of its user network when its main loop turns, and what the guest sends
//! does not turn it: without this, each connection may hang for up to a second. A timer that fires
//! does, also one without an interrupt, which costs the firmware nothing.

/// The two halves of the board's dual timer, which nothing else uses. Both count at 25 MHz.
const EVERY_NOW_AND_THEN: Timer = Timer { base: 0x4000_2000 };
const ONCE: Timer = Timer { base: 0x4000_2020 };

const MICROSECOND: u32 = 25;

/// Starts the timers.
pub(crate) fn start() {
    EVERY_NOW_AND_THEN.control(PERIODIC);
    // Where instructions are counted, time leaps from one timer to the next, so this is also how far
    // at most: what answers in real time would always be too late for one that leaps by seconds.
    EVERY_NOW_AND_THEN.load(10_000 * MICROSECOND);
    ONCE.control(PERIODIC | ONE_SHOT);
}

/// Something was sent: there may be a new socket, or room in one.
pub(crate) fn look_at_the_network() {
    ONCE.load(20 * MICROSECOND);
}

/// Enabled, with all of its 32 bits.
const PERIODIC: u32 = 1 << 7 | 1 << 6 | 1 << 1;
const ONE_SHOT: u32 = 1 << 0;

/// Half of the dual timer, at an address where the board has one.
struct Timer {
    base: usize,
}

impl Timer {
    const LOAD: usize = 0x0;
    const CONTROL: usize = 0x8;

    /// Counts down from here.
    fn load(&self, count: u32) {
        self.write(Self::LOAD, count);
    }

    fn control(&self, bits: u32) {
        self.write(Self::CONTROL, bits);
    }

    fn write(&self, register: usize, value: u32) {
        // SAFETY: a register of a timer of this board; no value of it affects memory.
        unsafe { ((self.base + register) as *mut u32).write_volatile(value) }
    }
}
