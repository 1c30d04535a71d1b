//! What brought the device down, kept over the reset that follows.
//!
//! The record is in RAM that nothing initialises, with a checksum, since after a power cut there
//! is anything. It is told once, by a log line and an event, and forgotten.

use core::cell::UnsafeCell;
use core::fmt::{self, Write};
use core::mem::MaybeUninit;
use core::panic::PanicInfo;

use cortex_m::peripheral::SCB;
use cortex_m_rt::{ExceptionFrame, exception};
use crc::{CRC_32_ISO_HDLC, Crc, NoTable};
use heapless::String;

use crate::stack;

/// The most that is kept of a panic's message.
const TEXT: usize = 160;
const CRC: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// Why the device was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Cause {
    /// Code gave up, and said why.
    Panic = 1,
    /// The processor found code in error.
    HardFault = 2,
    /// The stack was too small.
    StackOverflow = 3,
    /// The device hung.
    Watchdog = 4,
    /// Requests were due, and none made progress.
    Stall = 5,
}

/// What brought the device down.
pub struct Crash {
    /// Why.
    pub cause: Cause,
    /// The instruction that it happened at; 0 if that is not known.
    pub address: u32,
    /// The processor's fault status.
    pub status: u32,
    /// What a panic said.
    pub text: String<TEXT>,
}

impl Crash {
    /// One of which only the cause is known.
    pub(crate) const fn unsaid(cause: Cause) -> Self {
        Self { cause, address: 0, status: 0, text: String::new() }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, address, status, text } = self;
        match cause {
            Cause::Panic => write!(f, "panic: {text}"),
            Cause::HardFault => write!(f, "hard fault at {address:#010x}, status {status:#010x}"),
            Cause::StackOverflow => write!(f, "stack overflow at {address:#010x}"),
            Cause::Watchdog if *address == 0 => f.write_str("watchdog: it hung"),
            Cause::Watchdog => write!(f, "watchdog: it hung at {address:#010x}"),
            Cause::Stall => f.write_str("watchdog: the controllers made no progress"),
        }
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    cause: u32,
    address: u32,
    status: u32,
    len: u32,
    text: [u8; TEXT],
    checksum: u32,
}

struct Kept(UnsafeCell<MaybeUninit<Record>>);

// SAFETY: written before a reset and read after it, never at the same time.
unsafe impl Sync for Kept {}

#[unsafe(link_section = ".uninit.crash")]
static KEPT: Kept = Kept(UnsafeCell::new(MaybeUninit::uninit()));

/// Takes what was kept, if the last boot ended so.
///
/// Not inlined, so that the record and what it says are not in one frame of the stack with the caller's copy.
#[inline(never)]
pub fn take() -> Option<Crash> {
    let kept = KEPT.0.get().cast::<Record>();
    // SAFETY: all fields are integers, for which any bits are valid; volatile, so that nobody
    // concludes from the missing initialisation what they are.
    let record = unsafe { kept.read_volatile() };
    // SAFETY: as above. It is told once.
    unsafe { (&raw mut (*kept).checksum).write_volatile(!record.checksum) };
    if checksum(&record) != record.checksum {
        return None;
    }
    let cause = match record.cause {
        1 => Cause::Panic,
        2 => Cause::HardFault,
        3 => Cause::StackOverflow,
        4 => Cause::Watchdog,
        5 => Cause::Stall,
        _ => return None,
    };
    let text = record.text.get(..record.len as usize).unwrap_or_default();
    let mut kept_text = String::new();
    // It comes from a buffer of the same size.
    let _ = kept_text.push_str(core::str::from_utf8(text).unwrap_or_default());
    Some(Crash { cause, address: record.address, status: record.status, text: kept_text })
}

/// Keeps why the device is about to be reset, then resets it.
pub fn reset(cause: Cause, address: u32, status: u32, text: &str) -> ! {
    let mut record = Record {
        cause: cause as u32,
        address,
        status,
        len: text.len() as u32,
        text: [0; TEXT],
        checksum: 0,
    };
    for (to, from) in record.text.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    record.checksum = checksum(&record);
    // SAFETY: nothing runs after this that could read it, until the reset.
    unsafe { KEPT.0.get().cast::<Record>().write_volatile(record) };
    SCB::sys_reset()
}

fn checksum(record: &Record) -> u32 {
    let mut digest = CRC.digest();
    for word in [record.cause, record.address, record.status, record.len] {
        digest.update(&word.to_le_bytes());
    }
    digest.update(&record.text);
    // Memory that is all zero is no record.
    digest.finalize() ^ 0x5043_5253
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    defmt::error!("{}", defmt::Display2Format(info));
    let mut text = String::<TEXT>::new();
    if let Some(location) = info.location() {
        // The end of a path says most; all of it may not fit.
        let file = location.file();
        let end = file.len().saturating_sub(60);
        let file = file.get(end..).unwrap_or(file);
        let _ = write!(text, "{file}:{}: ", location.line());
    }
    // What does not fit is cut off.
    let _ = write!(Cut(&mut text), "{}", info.message());
    reset(Cause::Panic, 0, 0, &text)
}

/// Writes as much as fits.
struct Cut<'t>(&'t mut String<TEXT>);

impl fmt::Write for Cut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.0.push(c).map_err(|_| fmt::Error))
    }
}

/// # Safety
///
/// Called by the hardware only.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    // SAFETY: reading the fault status has no effect.
    let scb = unsafe { &*SCB::PTR };
    let status = scb.cfsr.read();
    let cause = match stack::is_overflow(status, scb.mmfar.read()) {
        true => Cause::StackOverflow,
        false => Cause::HardFault,
    };
    // On an overflow nothing was stacked; whatever is there is at least not misleading as zero.
    reset(cause, frame.pc(), status, "")
}
