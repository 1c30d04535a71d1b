//! The network stack.

use embassy_futures::select::select;
use embassy_net::driver::Driver;
use embassy_net::{Config, Ipv4Cidr, Runner, Stack, StackResources, StaticConfigV4};
use picokube_config::{Address, Configuration};
use static_cell::ConstStaticCell;

use crate::{stack, status, transport};

/// Those of all clients, of the status pages, and of DHCP.
const SOCKETS: usize = transport::CLIENTS + status::CLIENTS + 1;

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
