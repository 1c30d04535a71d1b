//! The stack: how deep it has ever been, and a guard below it.
//!
//! cortex-m-rt (feature `paint-stack`) fills the stack with a pattern before `main`; what has lost
//! the pattern was used.

/// Room below the guard, for the fault handler: it cannot use a stack that is full.
const RESERVE: usize = 1024;
/// The guard's size; also its alignment, as the hardware demands.
const GUARD: usize = 256;

unsafe extern "C" {
    static mut _stack_start: u32;
    static mut _stack_end: u32;
}

/// The addresses of the stack without guard and reserve: its end, which is its highest address,
/// and its lowest.
fn bounds() -> (usize, usize) {
    let (top, end) = (&raw const _stack_start as usize, &raw const _stack_end as usize);
    (top, (end + RESERVE).next_multiple_of(GUARD) + GUARD)
}

/// Bytes of the stack that were used, and that there are.
pub fn high_water() -> (usize, usize) {
    let (top, bottom) = bounds();
    let (top, bottom) = (top as *const u32, bottom as *const u32);
    let mut unused = bottom;
    // SAFETY: between the two addresses is the stack, which is always readable.
    while unused < top && unsafe { unused.read_volatile() } == cortex_m_rt::STACK_PAINT_VALUE {
        unused = unused.wrapping_add(1);
    }
    (top as usize - unused as usize, top as usize - bottom as usize)
}

/// Gives up unless there is room for `bytes` more. To be called before a function whose frame is larger than
/// the guard and the reserve: it would step over them, and into the variables behind.
pub(crate) fn ensure_room(bytes: usize) {
    let (_, bottom) = bounds();
    let room = (cortex_m::register::msp::read() as usize).saturating_sub(bottom);
    assert!(room >= bytes, "the stack has {room} bytes left, and {bytes} are needed");
}

/// Makes an overflow a fault, instead of a change of some variable.
///
/// From here on, a write to the guard is refused by the memory protection unit.
#[cfg(not(armv8m))]
pub fn guard() {
    const READ_ONLY: u32 = 0b110 << 24;
    const NEVER_EXECUTE: u32 = 1 << 28;
    const NORMAL_MEMORY: u32 = 0b1 << 17;
    const SIZE: u32 = (GUARD.trailing_zeros() - 1) << 1;
    const ENABLE: u32 = 1;
    const DEFAULT_MAP_ELSEWHERE: u32 = 1 << 2;
    let (_, bottom) = bounds();
    // SAFETY: nobody else uses the memory protection unit, and nothing but the stack's overflow
    // writes to the guard.
    unsafe {
        let mpu = &*cortex_m::peripheral::MPU::PTR;
        mpu.rnr.write(0);
        mpu.rbar.write((bottom - GUARD) as u32);
        mpu.rasr.write(NEVER_EXECUTE | READ_ONLY | NORMAL_MEMORY | SIZE | ENABLE);
        mpu.ctrl.write(DEFAULT_MAP_ELSEWHERE | ENABLE);
    }
    cortex_m::asm::dsb();
    cortex_m::asm::isb();
}

/// Makes an overflow a fault, instead of a change of some variable.
///
/// From here on, the processor refuses a stack pointer below the limit.
#[cfg(armv8m)]
pub fn guard() {
    let (_, bottom) = bounds();
    // SAFETY: the stack is well above its bottom here.
    unsafe { cortex_m::register::msplim::write(bottom as u32) };
}

/// Whether a fault with this status, of an access to `address`, was the stack's overflow.
pub(crate) fn is_overflow(status: u32, address: u32) -> bool {
    const STACKING_FAILED: u32 = 1 << 4;
    const ADDRESS_IS_VALID: u32 = 1 << 7;
    const BELOW_THE_LIMIT: u32 = 1 << 20;
    let (_, bottom) = bounds();
    let in_guard = (bottom - GUARD..bottom).contains(&(address as usize));
    status & (STACKING_FAILED | BELOW_THE_LIMIT) != 0
        || (status & ADDRESS_IS_VALID != 0 && in_guard)
}
