//! What is known of the time without a clock: that it is no earlier than when the firmware was made, and than
//! the last time that a server has told.
//!
//! Certificates are judged by this until the server tells the time. What it told is kept in RAM that nothing
//! initialises, so that a reset does not forget it; with the power it is gone.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use crc::{CRC_32_ISO_HDLC, Crc, NoTable};
use picokube_core::time::Timestamp;

const CRC: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// When the source of this firmware was committed, in seconds since 1970.
const MADE_AT: u64 = match u64::from_str_radix(env!("PICOKUBE_MADE_AT"), 10) {
    Ok(seconds) => seconds,
    Err(_) => panic!("PICOKUBE_MADE_AT is no number"),
};

#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    seconds: u64,
    checksum: u32,
}

struct Kept(UnsafeCell<MaybeUninit<Record>>);

// SAFETY: used by one thread, never by an interrupt.
unsafe impl Sync for Kept {}

#[unsafe(link_section = ".uninit.clock")]
static KEPT: Kept = Kept(UnsafeCell::new(MaybeUninit::uninit()));

/// The earliest that it can be, in seconds since 1970.
pub(crate) fn at_least() -> u64 {
    kept().unwrap_or_default().max(MADE_AT)
}

/// Tells the log.
pub(crate) fn tell() {
    let text = |seconds: u64| Timestamp::from_secs(seconds.cast_signed()).rfc3339();
    let source = match kept() {
        Some(kept) if kept > MADE_AT => "as a server told before the reset",
        _ => "when the firmware was made",
    };
    defmt::info!("it is {} or later, {=str}", defmt::Display2Format(&text(at_least())), source);
}

/// Keeps what a server has told, over resets, too. With TLS it has proved who it is before it could.
pub(crate) fn keep(told: Timestamp) {
    let seconds = told.as_secs().max(0).unsigned_abs();
    let record = Record { seconds, checksum: checksum(seconds) };
    // SAFETY: nobody else has a reference to it.
    unsafe { KEPT.0.get().cast::<Record>().write_volatile(record) };
}

/// What a server told last, before or after the last reset.
fn kept() -> Option<u64> {
    // SAFETY: both fields are integers, for which any bits are valid; volatile, so that nobody concludes from
    // the missing initialisation what they are.
    let record = unsafe { KEPT.0.get().cast::<Record>().read_volatile() };
    (record.checksum == checksum(record.seconds)).then_some(record.seconds)
}

fn checksum(seconds: u64) -> u32 {
    // Memory that is all zero is no record.
    CRC.checksum(&seconds.to_le_bytes()) ^ 0x434c_4b54
}
