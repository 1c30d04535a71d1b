//! The firmware, with trouble on request: for tests of what is to happen then.
//!
//! The semihosting command line says which: `panic`, `fault`, `overflow`, `hang` or `stall`. It comes
//! when the controllers have started, once after the power came, and not again. Or `no-entropy`: then the
//! board has no random numbers from the beginning.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::hint::black_box;
use core::mem::MaybeUninit;

use cortex_m_rt::entry;
use embassy_executor::Spawner;
use embassy_time::Timer;
use heapless::String;
use picokube_firmware::trouble;
use picokube_mps2_an386::{board, executor, time_driver};

#[entry]
fn main() -> ! {
    time_driver::start();
    executor::run(|spawner| match (main_task(spawner), make_trouble()) {
        (Ok(main_task), Ok(trouble)) => {
            spawner.spawn(main_task);
            spawner.spawn(trouble);
        }
        _ => panic!("both tasks exist once and are started once"),
    })
}

#[embassy_executor::task]
async fn main_task(spawner: Spawner) {
    let mut board = board::board();
    if trouble_wanted() == "no-entropy" {
        board.entropy = || None;
    }
    picokube_firmware::run(spawner, board).await
}

#[embassy_executor::task]
async fn make_trouble() {
    if is_second_boot() {
        return;
    }
    while !trouble::has_started() {
        Timer::after_millis(100).await;
    }
    let wanted = trouble_wanted();
    defmt::warn!("now for the trouble: {=str}", wanted.as_str());
    match wanted.as_str() {
        "panic" => panic!("trouble was asked for"),
        // SAFETY: none; nothing is there, which is the point.
        "fault" => unsafe {
            core::ptr::with_exposed_provenance::<u32>(0xe100_0000).read_volatile()
        },
        "overflow" => descend(0),
        "hang" => loop {
            cortex_m::asm::nop();
        },
        "stall" => {
            trouble::stall();
            0
        }
        _ => 0,
    };
}

/// What the command line says.
fn trouble_wanted() -> String<32> {
    let line: String<32> = board::command_line().unwrap_or_default();
    line.trim().try_into().unwrap_or_default()
}

/// Uses more stack than there is.
#[expect(unconditional_recursion, reason = "the point")]
fn descend(depth: u32) -> u32 {
    let frame = black_box([depth; 64]);
    descend(depth + 1) + frame.iter().sum::<u32>()
}

/// Whether this has been called since the power came.
fn is_second_boot() -> bool {
    struct Flag(UnsafeCell<MaybeUninit<u32>>);
    // SAFETY: used by one task, once a boot.
    unsafe impl Sync for Flag {}
    #[unsafe(link_section = ".uninit.trouble")]
    static FLAG: Flag = Flag(UnsafeCell::new(MaybeUninit::uninit()));
    const SEEN: u32 = 0x7472_6f75;
    let flag = FLAG.0.get().cast::<u32>();
    // SAFETY: any bits are a number; volatile, since the compiler knows of no initialisation.
    let before = unsafe { flag.read_volatile() };
    // SAFETY: as above.
    unsafe { flag.write_volatile(SEEN) };
    before == SEEN
}
