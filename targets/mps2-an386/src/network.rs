//! Brings the network up: Ethernet, DHCP, and the sockets that the driver uses.

use embassy_executor::Spawner;
use embassy_net::{Config, Runner, Stack, StackResources};
use embassy_sync::waitqueue::AtomicWaker;
use picokube_driver::sockets::{SocketBuffers, Sockets};
use static_cell::{ConstStaticCell, StaticCell};

use crate::board::{self, Interrupt};
use crate::lan9118::{Frames, Lan9118};

/// Connections at a time: four watches, one for requests, and one in reserve.
const CONNECTIONS: usize = 6;
/// DHCP has a socket of its own.
const SOCKETS: usize = CONNECTIONS + 1;

/// The driver's view of the network.
pub(crate) type Network = Sockets<'static, CONNECTIONS>;

/// Woken by the Ethernet controller's interrupt.
pub(crate) static ETHERNET: AtomicWaker = AtomicWaker::new();

/// Starts the network and waits for an address, however long that takes.
pub(crate) async fn up(spawner: Spawner) -> &'static Network {
    // `ConstStaticCell`, because `StaticCell::init` builds its value on the stack first.
    static FRAMES: ConstStaticCell<Frames> = ConstStaticCell::new(Frames::new());
    static RESOURCES: ConstStaticCell<StackResources<SOCKETS>> =
        ConstStaticCell::new(StackResources::new());
    static BUFFERS: ConstStaticCell<SocketBuffers<CONNECTIONS, 2048, 1024>> =
        ConstStaticCell::new(SocketBuffers::new());
    static NETWORK: StaticCell<Network> = StaticCell::new();

    let Some(ethernet) = Lan9118::start(&ETHERNET, FRAMES.take()) else {
        defmt::panic!("no LAN9118 at its address");
    };
    board::enable(Interrupt::Ethernet);
    let config = Config::dhcpv4(Default::default());
    let (stack, runner) = embassy_net::new(ethernet, config, RESOURCES.take(), board::entropy());
    match run(runner) {
        Ok(task) => spawner.spawn(task),
        Err(_) => defmt::panic!("the network task exists once and is started once"),
    }
    stack.wait_link_up().await;
    defmt::info!("link up");
    stack.wait_config_up().await;
    report_address(stack);
    NETWORK.init(Sockets::new(stack, BUFFERS.take()))
}

fn report_address(stack: Stack<'static>) {
    if let Some(config) = stack.config_v4() {
        defmt::info!("address {}, gateway {}", config.address, config.gateway);
    }
}

#[embassy_executor::task]
async fn run(mut runner: Runner<'static, Lan9118>) -> ! {
    runner.run().await
}
