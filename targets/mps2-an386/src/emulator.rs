//! What QEMU needs to be told; a real board would not mind.
//!
//! QEMU looks at the sockets of its user network when its main loop turns, and what the guest sends
//! does not turn it: without this, each connection may hang for up to a second. A timer that fires
//! does, also one without an interrupt, which costs the firmware nothing.

/// Registers of the board's dual timer, which nothing else uses.
const LOAD: *mut u32 = 0x4000_2000 as *mut u32;
const CONTROL: *mut u32 = 0x4000_2008 as *mut u32;

/// Gets the timer ready.
pub(crate) fn start() {
    const ENABLED_ONE_SHOT_32_BIT: u32 = 1 << 7 | 1 << 6 | 1 << 1 | 1 << 0;
    // SAFETY: a register of a timer of this board; no value of it affects memory.
    unsafe { CONTROL.write_volatile(ENABLED_ONE_SHOT_32_BIT) }
}

/// Something was sent: there may be a new socket, or room in one.
pub(crate) fn look_at_the_network() {
    const TWENTY_MICROSECONDS: u32 = 500;
    // SAFETY: as above.
    unsafe { LOAD.write_volatile(TWENTY_MICROSECONDS) }
}
