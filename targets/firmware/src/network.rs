//! The network stack, and the sockets that the driver uses.

use embassy_futures::select::select;
use embassy_net::driver::Driver;
use embassy_net::{Config, Ipv4Cidr, Runner, Stack, StackResources, StaticConfigV4};
use picokube_config::{Address, Configuration};
use picokube_driver::sockets::{SocketBuffers, Sockets};
use static_cell::{ConstStaticCell, StaticCell};

use crate::controllers::REQUEST_CONNECTIONS;
use crate::profile::WATCHES;
use crate::stack;
use crate::status::CLIENTS;

/// DHCP has a socket, too.
const SOCKETS: usize = CONNECTIONS + CLIENTS + 1;
/// Connections to the API server at a time.
pub(crate) const CONNECTIONS: usize = WATCHES + REQUEST_CONNECTIONS;

/// The sockets of watches.
pub(crate) type WatchSockets = Sockets<'static, WATCHES>;
/// The sockets of requests and their sources.
pub(crate) type RequestSockets = Sockets<'static, REQUEST_CONNECTIONS>;

/// The driver's view of the network. A watch sends little, so that its socket needs less memory.
#[derive(Clone, Copy)]
pub(crate) struct Network {
    pub(crate) watches: &'static WatchSockets,
    pub(crate) requests: &'static RequestSockets,
}

impl Network {
    /// How many connections are open or being opened.
    pub(crate) fn in_use(self) -> usize {
        self.watches.in_use() + self.requests.in_use()
    }
}

/// What [`build`] needs of the stack, at most.
const ROOM: usize = 5 * 1024;

/// A stack on an interface. The runner has to run.
pub(crate) fn new<D: Driver>(
    ethernet: D,
    configuration: &Configuration<'_>,
    seed: u64,
) -> (Stack<'static>, Runner<'static, D>) {
    stack::ensure_room(ROOM);
    build(ethernet, configuration, seed)
}

/// Not inlined: embassy-net builds its sockets on the stack and then moves them, whatever memory it is given,
/// and they must not stay there while the task that calls this runs.
#[inline(never)]
fn build<D: Driver>(
    ethernet: D,
    configuration: &Configuration<'_>,
    seed: u64,
) -> (Stack<'static>, Runner<'static, D>) {
    // `ConstStaticCell`, because `StaticCell::init` builds its value on the stack first.
    static RESOURCES: ConstStaticCell<StackResources<SOCKETS>> =
        ConstStaticCell::new(StackResources::new());
    let config = match configuration.address {
        Address::Dhcp => Config::dhcpv4(Default::default()),
        Address::Static { ip, prefix, gateway } => Config::ipv4_static(StaticConfigV4 {
            address: Ipv4Cidr::new(ip, prefix),
            gateway,
            dns_servers: Default::default(),
        }),
    };
    embassy_net::new(ethernet, config, RESOURCES.take(), seed)
}

/// Waits for an address, however long that takes.
pub(crate) async fn up(stack: Stack<'static>) {
    stack.wait_link_up().await;
    defmt::info!("link up");
    stack.wait_config_up().await;
    if let Some(config) = stack.config_v4() {
        defmt::info!("address {}, gateway {}", config.address, config.gateway);
    }
}

/// Tells when link or address are lost, and when they are back; for ever.
pub(crate) async fn follow(stack: Stack<'static>) -> ! {
    loop {
        select(stack.wait_link_down(), stack.wait_config_down()).await;
        match stack.is_link_up() {
            true => defmt::warn!("the address is lost"),
            false => defmt::warn!("link down"),
        }
        up(stack).await;
    }
}

/// The sockets of all connections to the API server.
///
/// Not inlined, for the same reason as [`build`].
#[inline(never)]
pub(crate) fn sockets(stack: Stack<'static>) -> Network {
    static WATCH_BUFFERS: ConstStaticCell<SocketBuffers<WATCHES, 2048, 256>> =
        ConstStaticCell::new(SocketBuffers::new());
    static REQUEST_BUFFERS: ConstStaticCell<SocketBuffers<REQUEST_CONNECTIONS, 2048, 512>> =
        ConstStaticCell::new(SocketBuffers::new());
    static WATCH_SOCKETS: StaticCell<WatchSockets> = StaticCell::new();
    static REQUEST_SOCKETS: StaticCell<RequestSockets> = StaticCell::new();
    Network {
        watches: WATCH_SOCKETS.init(Sockets::new(stack, WATCH_BUFFERS.take())),
        requests: REQUEST_SOCKETS.init(Sockets::new(stack, REQUEST_BUFFERS.take())),
    }
}
