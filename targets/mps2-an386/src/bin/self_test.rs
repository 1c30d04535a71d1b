//! The driver's cases on this board's network, and how memory is copied on its processor.
//!
//! The semihosting command line is `ADDRESS:PORT BLACK-HOLE-PORT`: where the test peer is. The
//! emulation ends with the verdict.
#![no_std]
#![no_main]

use core::fmt::Write;
use core::net::SocketAddr;

use cortex_m_rt::entry;
use embassy_executor::Spawner;
use embassy_net::{Config, Runner, StackResources};
use heapless::String;
use picokube_driver::sockets::Sockets;
use picokube_firmware::{crash, stack};
use picokube_first_light::{Bench, CASES, Memory, Peer};
use picokube_mps2_an386::lan9118::Lan9118;
use picokube_mps2_an386::memory_check::memory_is_right;
use picokube_mps2_an386::{board, executor, time_driver};
use static_cell::{ConstStaticCell, StaticCell};

/// Four streams, one for requests, and one in reserve.
const CONNECTIONS: usize = 6;
/// DHCP has a socket of its own.
const SOCKETS: usize = CONNECTIONS + 1;

type Network = Sockets<'static, CONNECTIONS>;

#[entry]
fn main() -> ! {
    time_driver::start();
    executor::run(|spawner| match main_task(spawner) {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("the main task exists once and is started once"),
    })
}

#[embassy_executor::task]
async fn main_task(spawner: Spawner) {
    if let Some(crash) = crash::take() {
        defmt::error!("{}", defmt::Display2Format(&crash));
        board::exit(false)
    }
    let Some((peer, black_hole_port)) = peer() else {
        defmt::error!("give `ADDRESS:PORT PORT` on the semihosting command line");
        board::exit(false)
    };
    if !memory_is_right() {
        defmt::error!("FAILED: memory is not copied or filled as it should be");
        board::exit(false)
    }
    let network = network(spawner).await;
    let passed = run(network, peer, black_hole_port).await;
    let (used, room) = stack::high_water();
    defmt::info!("stack high-water mark {=usize} of {=usize} bytes", used, room);
    board::exit(passed)
}

fn peer() -> Option<(SocketAddr, u16)> {
    let line: String<128> = board::command_line()?;
    let mut words = line.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

async fn network(spawner: Spawner) -> &'static Network {
    static RESOURCES: ConstStaticCell<StackResources<SOCKETS>> =
        ConstStaticCell::new(StackResources::new());
    static BUFFERS: ConstStaticCell<[u8; CONNECTIONS * (2048 + 1024)]> =
        ConstStaticCell::new([0; _]);
    static NETWORK: StaticCell<Network> = StaticCell::new();
    let config = Config::dhcpv4(Default::default());
    let seed = board::seed();
    let (stack, runner) = embassy_net::new(board::ethernet(), config, RESOURCES.take(), seed);
    match run_stack(runner) {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("the network task exists once and is started once"),
    }
    stack.wait_config_up().await;
    NETWORK.init(Sockets::new(stack, BUFFERS.take(), 2048, 1024))
}

#[embassy_executor::task]
async fn run_stack(mut runner: Runner<'static, Lan9118>) -> ! {
    runner.run().await
}

/// Runs all cases, reports each, and says whether all have passed.
async fn run(network: &'static Network, peer: SocketAddr, black_hole_port: u16) -> bool {
    static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());
    let mut host = String::<32>::new();
    let _ = write!(host, "{peer}");
    let peer = Peer { address: peer, host: &host, black_hole_port };
    let mut bench = Bench { network, peer, memory: MEMORY.take() };
    let mut passed = 0;
    for name in CASES {
        match bench.run(name).await {
            Ok(()) => {
                passed += 1;
                defmt::info!("passed: {=str}", *name);
            }
            Err(failure) => defmt::error!("FAILED: {=str}: {=str}", *name, failure.as_str()),
        }
    }
    defmt::info!("{=usize} of {=usize} cases passed", passed, CASES.len());
    passed == CASES.len()
}
