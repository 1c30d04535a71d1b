//! picokube on ST's NUCLEO-H743ZI: a Cortex-M7 with an Ethernet controller on the chip.
#![no_std]
#![no_main]

use defmt_rtt as _; // the global logger
use embassy_executor::Spawner;
use embassy_stm32::eth::{self, Ethernet, GenericPhy, PacketQueue, Sma};
use embassy_stm32::exti::{self, ExtiInput};
use embassy_stm32::gpio::Pull;
use embassy_stm32::interrupt::typelevel::EXTI15_10;
use embassy_stm32::mode::Async;
use embassy_stm32::peripherals::{ETH, ETH_SMA, IWDG1, RNG};
use embassy_stm32::wdg::IndependentWatchdog;
use embassy_stm32::{Config, bind_interrupts, pac, rcc, uid};
use picokube_firmware::{Board, reset};
use static_cell::ConstStaticCell;

bind_interrupts!(struct Interrupts {
    ETH => eth::InterruptHandler;
    EXTI15_10 => exti::InterruptHandler<EXTI15_10>;
});

type Device = Ethernet<'static, ETH, GenericPhy<Sma<'static, ETH_SMA>>>;

/// Frames in each direction that wait for the controller, or for us.
const FRAMES: usize = 4;
const WATCHDOG_MICROSECONDS: u32 = 20_000_000;

#[embassy_executor::main]
async fn main(spawner: Spawner) -> ! {
    static QUEUE: ConstStaticCell<PacketQueue<FRAMES, FRAMES>> =
        ConstStaticCell::new(PacketQueue::new());
    let p = embassy_stm32::init(clocks());
    rcc::enable_and_reset::<RNG>();
    restart_generator();
    let button = ExtiInput::new(p.PC13, p.EXTI13, Pull::Down, Interrupts);
    match reset_by(button) {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("the task exists once and is started once"),
    }
    let ethernet: Device = Ethernet::new(
        QUEUE.take(),
        p.ETH,
        Interrupts,
        p.PA1,
        p.PA7,
        p.PC4,
        p.PC5,
        p.PG13,
        p.PB13,
        p.PG11,
        hardware_address(),
        p.ETH_SMA,
        p.PA2,
        p.PC1,
    );
    let board = Board {
        name: "nucleo-h743zi",
        ethernet,
        watchdog: Watchdog::start(p.IWDG1),
        reset_by_watchdog: take_watchdog_reset(),
        seed: seed(),
        entropy,
        busy: None,
    };
    picokube_firmware::run(spawner, board).await
}

/// The blue button asks for a reset.
#[embassy_executor::task]
async fn reset_by(mut button: ExtiInput<'static, Async>) {
    button.wait_for_rising_edge().await;
    reset::ask();
}

/// 400 MHz from the internal oscillator, and a clock for random numbers.
fn clocks() -> Config {
    use embassy_stm32::rcc::{
        AHBPrescaler, APBPrescaler, HSIPrescaler, Pll, PllDiv, PllMul, PllPreDiv, PllSource,
        Sysclk, VoltageScale,
    };
    let mut config = Config::default();
    let rcc = &mut config.rcc;
    rcc.hsi = Some(HSIPrescaler::DIV1);
    rcc.csi = true;
    rcc.hsi48 = Some(Default::default());
    rcc.pll1 = Some(Pll {
        source: PllSource::HSI,
        prediv: PllPreDiv::DIV4,
        mul: PllMul::MUL50,
        fracn: None,
        divp: Some(PllDiv::DIV2),
        divq: None,
        divr: None,
    });
    rcc.sys = Sysclk::PLL1_P;
    rcc.ahb_pre = AHBPrescaler::DIV2;
    rcc.apb1_pre = APBPrescaler::DIV2;
    rcc.apb2_pre = APBPrescaler::DIV2;
    rcc.apb3_pre = APBPrescaler::DIV2;
    rcc.apb4_pre = APBPrescaler::DIV2;
    rcc.voltage_scale = VoltageScale::Scale1;
    config
}

/// 32 bytes from the chip's true random generator, unless it says that it does not work, or says nothing.
///
/// The chip watches its noise and its clock itself. Whatever it has found wrong, the next call begins anew.
fn entropy() -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for place in bytes.chunks_exact_mut(4) {
        let Some(word) = random_word() else {
            restart_generator();
            return None;
        };
        place.copy_from_slice(&word.to_ne_bytes());
    }
    Some(bytes)
}

fn random_word() -> Option<u32> {
    // One takes 40 cycles of a clock of 48 MHz, far fewer looks than this.
    const LOOKS: u32 = 100_000;
    for _ in 0..LOOKS {
        let status = pac::RNG.sr().read();
        if status.seis() || status.ceis() {
            return None;
        }
        if status.drdy() {
            // Zero is what is read when an error comes just then.
            return Some(pac::RNG.dr().read()).filter(|word| *word != 0);
        }
    }
    None
}

fn restart_generator() {
    pac::RNG.cr().modify(|register| register.set_rngen(false));
    pac::RNG.sr().modify(|register| {
        register.set_seis(false);
        register.set_ceis(false);
    });
    pac::RNG.cr().modify(|register| register.set_rngen(true));
    // After a start, the first one is not used.
    let _ = random_word();
}

/// A number for what only has to differ from boot to boot; without the generator, from board to board.
fn seed() -> u64 {
    let bytes = entropy().as_ref().and_then(|bytes| bytes.first_chunk().copied());
    let number = || uid::uid().first_chunk().copied().unwrap_or_default();
    u64::from_ne_bytes(bytes.unwrap_or_else(number))
}

/// An address of our own, made of the chip's number: the board has none from a vendor.
fn hardware_address() -> [u8; 6] {
    let [a, b, c, d, e, ..] = uid::uid();
    [0x02, a, b, c, d, e]
}

/// The chip's independent watchdog. It resets the chip without asking.
struct Watchdog(IndependentWatchdog<'static, IWDG1>);

impl Watchdog {
    fn start(peripheral: embassy_stm32::Peri<'static, IWDG1>) -> Self {
        let mut watchdog = IndependentWatchdog::new(peripheral, WATCHDOG_MICROSECONDS);
        watchdog.unleash();
        Self(watchdog)
    }
}

impl picokube_firmware::Watchdog for Watchdog {
    fn feed(&mut self) {
        self.0.pet();
    }
}

/// Whether the watchdog has caused this boot. The chip forgets it.
fn take_watchdog_reset() -> bool {
    let caused = pac::RCC.rsr().read().iwdg1rstf();
    pac::RCC.rsr().modify(|register| register.set_rmvf(true));
    caused
}
