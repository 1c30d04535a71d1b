//! How deep the stack has ever been.
//!
//! cortex-m-rt (feature `paint-stack`) fills the stack with a pattern before `main`; what has lost
//! the pattern was used.

unsafe extern "C" {
    static mut _stack_start: u32;
    static mut _stack_end: u32;
}

/// Bytes of the stack that were used, and that there are.
pub fn high_water() -> (usize, usize) {
    // Stacks grow down: `start` is the highest address.
    let (top, bottom) = (&raw const _stack_start, &raw const _stack_end);
    let mut unused = bottom;
    // SAFETY: between the two addresses is the stack, which is always readable.
    while unused < top && unsafe { unused.read_volatile() } == cortex_m_rt::STACK_PAINT_VALUE {
        unused = unused.wrapping_add(1);
    }
    (top as usize - unused as usize, top as usize - bottom as usize)
}
