//! Where things are on this board, and what its emulator does for it.

use cortex_m::peripheral::NVIC;
use cortex_m_rt::exception;
use embassy_sync::waitqueue::AtomicWaker;
use heapless::String;
use picokube_firmware::Board;
use static_cell::ConstStaticCell;

use crate::console;
use crate::executor;
use crate::lan9118::{self, Frames, Lan9118};
use crate::time_driver;
use crate::watchdog::Watchdog;

/// What people call it.
const NAME: &str = "mps2-an386";

/// Woken by the Ethernet controller's interrupt.
static ETHERNET: AtomicWaker = AtomicWaker::new();

/// The interrupts in use, by their numbers on the AN385, AN386 and AN500 images.
#[derive(Clone, Copy)]
#[repr(u16)]
pub(crate) enum Interrupt {
    Console = 0,
    Clock = 8,
    Alarm = 9,
    Ethernet = 13,
}

// SAFETY: the numbers are the board's and do not change.
unsafe impl cortex_m::interrupt::InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}

pub(crate) fn enable(interrupt: Interrupt) {
    // SAFETY: no code of ours relies on an interrupt being masked as a critical section.
    unsafe { NVIC::unmask(interrupt) }
}

/// There is no peripheral access crate for this board, hence no named handlers.
///
/// # Safety
///
/// Called by the hardware only.
#[exception]
unsafe fn DefaultHandler(number: i16) {
    match number {
        n if n == Interrupt::Console as i16 => console::on_interrupt(),
        n if n == Interrupt::Clock as i16 => time_driver::on_clock_interrupt(),
        n if n == Interrupt::Alarm as i16 => time_driver::on_alarm_interrupt(),
        n if n == Interrupt::Ethernet as i16 => lan9118::on_interrupt(&ETHERNET),
        n => panic!("unexpected interrupt {n}"),
    }
}

/// Starts what the board has. To be called once.
pub fn board() -> Board<Lan9118, Watchdog> {
    console::start();
    Board {
        name: NAME,
        ethernet: ethernet(),
        watchdog: Watchdog::start(),
        // It says so itself.
        reset_by_watchdog: false,
        seed: seed(),
        entropy,
        busy: Some(executor::busy),
    }
}

/// Starts the Ethernet controller.
pub fn ethernet() -> Lan9118 {
    static FRAMES: ConstStaticCell<Frames> = ConstStaticCell::new(Frames::new());
    let Some(ethernet) = Lan9118::start(&ETHERNET, FRAMES.take()) else {
        panic!("no LAN9118 at its address");
    };
    enable(Interrupt::Ethernet);
    ethernet
}

/// The words that follow `-semihosting-config …,arg=` on QEMU's command line.
pub fn command_line<const N: usize>() -> Option<String<N>> {
    let args = semihosting::experimental::env::args::<N>().ok()?;
    let mut line = String::new();
    for word in &args {
        line.push_str(word.ok()?).ok()?;
        line.push(' ').ok()?;
    }
    Some(line)
}

/// Random bytes from the host: a file of its, by semihosting. A board that people buy has a peripheral for
/// this.
pub fn entropy() -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    semihosting::experimental::random::fill_bytes(&mut bytes).ok().map(|()| bytes)
}

/// A random number, new at every boot.
pub fn seed() -> u64 {
    match entropy().as_ref().and_then(|bytes| bytes.first_chunk()) {
        Some(bytes) => u64::from_ne_bytes(*bytes),
        None => panic!("no random numbers from the host"),
    }
}

/// Ends the emulation with status 0 or 1.
pub fn exit(success: bool) -> ! {
    semihosting::process::exit(i32::from(!success))
}
