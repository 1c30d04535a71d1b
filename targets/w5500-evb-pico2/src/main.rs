//! picokube on WIZnet's W5500-EVB-Pico2: an RP2350 with a W5500 Ethernet controller.
#![no_std]
#![no_main]

use core::cell::Cell;
use core::pin::pin;
use core::task::Poll;

use defmt_rtt as _; // the global logger
use embassy_executor::Spawner;
use embassy_futures::poll_once;
use embassy_net_wiznet::chip::W5500;
use embassy_net_wiznet::{Device, Runner, State};
use embassy_rp::clocks::RoscRng;
use embassy_rp::gpio::{Input, Level, Output, Pull};
use embassy_rp::peripherals::{DMA_CH0, DMA_CH1, SPI0, TRNG};
use embassy_rp::spi::{Async, Config, Spi};
use embassy_rp::trng::{self, Trng};
use embassy_rp::watchdog::{self, ResetReason};
use embassy_rp::{bind_interrupts, dma, otp};
use embassy_sync::blocking_mutex::CriticalSectionMutex;
use embassy_time::{Delay, Duration, Instant};
use embedded_hal_bus::spi::ExclusiveDevice;
use picokube_firmware::Board;
use static_cell::ConstStaticCell;

bind_interrupts!(struct Interrupts {
    TRNG_IRQ => trng::InterruptHandler<TRNG>;
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
});

type Bus = ExclusiveDevice<Spi<'static, SPI0, Async>, Output<'static>, Delay>;
type Driver = Runner<'static, W5500, Bus, Input<'static>, Output<'static>>;

/// Frames in each direction that wait for the controller, or for us.
const FRAMES: usize = 4;
const SPI_HERTZ: u32 = 50_000_000;
/// The longest that the chip's watchdog can wait is twice as long.
const WATCHDOG: Duration = Duration::from_secs(8);

/// The chip's true random generator, which is taken while it is used.
static GENERATOR: CriticalSectionMutex<Cell<Option<Trng<'static, TRNG>>>> =
    CriticalSectionMutex::new(Cell::new(None));

#[embassy_executor::main]
async fn main(spawner: Spawner) -> ! {
    let p = embassy_rp::init(Default::default());
    let mut watchdog = watchdog::Watchdog::new(p.WATCHDOG);
    let reset_by_watchdog = matches!(watchdog.reset_reason(), Some(ResetReason::TimedOut));
    watchdog.pause_on_debug(true);
    watchdog.start(WATCHDOG);
    let generator = Trng::new(p.TRNG, Interrupts, trng::Config::default());
    GENERATOR.lock(|place| place.set(Some(generator)));
    let mut config = Config::default();
    config.frequency = SPI_HERTZ;
    let spi =
        Spi::new(p.SPI0, p.PIN_18, p.PIN_19, p.PIN_16, p.DMA_CH0, p.DMA_CH1, Interrupts, config);
    let select = Output::new(p.PIN_17, Level::High);
    let reset = Output::new(p.PIN_20, Level::High);
    let interrupt = Input::new(p.PIN_21, Pull::Up);
    let (ethernet, driver) = start(spi, select, interrupt, reset).await;
    match drive(driver) {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("the driver's task exists once and is started once"),
    }
    let board = Board {
        name: "w5500-evb-pico2",
        ethernet,
        watchdog: Watchdog(watchdog),
        reset_by_watchdog,
        seed: RoscRng.next_u64(),
        entropy,
        busy: None,
    };
    picokube_firmware::run(spawner, board).await
}

/// Starts the Ethernet controller on its bus.
async fn start(
    spi: Spi<'static, SPI0, Async>,
    select: Output<'static>,
    interrupt: Input<'static>,
    reset: Output<'static>,
) -> (Device<'static>, Driver) {
    static STATE: ConstStaticCell<State<FRAMES, FRAMES>> = ConstStaticCell::new(State::new());
    let Ok(bus) = ExclusiveDevice::new(spi, select, Delay);
    match embassy_net_wiznet::new(hardware_address(), STATE.take(), bus, interrupt, reset).await {
        Ok(started) => started,
        Err(_) => panic!("no W5500 on the bus"),
    }
}

#[embassy_executor::task]
async fn drive(driver: Driver) -> ! {
    driver.run().await
}

/// 32 bytes from the generator, unless it finds its own noise too poor for longer than usual.
///
/// It takes 2 ms for 24 bytes as a rule, and what it finds poor it makes again.
fn entropy() -> Option<[u8; 32]> {
    const PATIENCE: Duration = Duration::from_millis(100);
    let mut generator = GENERATOR.lock(Cell::take)?;
    let (mut bytes, began) = ([0; 32], Instant::now());
    let is_filled = {
        // Asked again and again instead of awaited, so that there is an end to it.
        let mut filling = pin!(generator.fill_bytes(&mut bytes));
        loop {
            match poll_once(filling.as_mut()) {
                Poll::Ready(()) => break true,
                Poll::Pending if began.elapsed() > PATIENCE => break false,
                Poll::Pending => {}
            }
        }
    };
    GENERATOR.lock(|place| place.set(Some(generator)));
    is_filled.then_some(bytes)
}

/// An address of our own, made of the chip's number: the board has none from a vendor.
fn hardware_address() -> [u8; 6] {
    let [.., a, b, c, d, e] = otp::get_chipid().unwrap_or_default().to_be_bytes();
    [0x02, a, b, c, d, e]
}

struct Watchdog(watchdog::Watchdog);

impl picokube_firmware::Watchdog for Watchdog {
    fn feed(&mut self) {
        self.0.feed(WATCHDOG);
    }
}
