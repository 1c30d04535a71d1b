//! The driver's cases on this board's network.

use core::fmt::Write;
use core::net::SocketAddr;

use heapless::String;
use picokube_first_light::{Bench, CASES, Memory, Peer};
use static_cell::ConstStaticCell;

use crate::network::Network;

/// Runs all cases, reports each, and says whether all have passed.
pub(crate) async fn run(network: &'static Network, peer: SocketAddr, black_hole_port: u16) -> bool {
    static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());
    let mut host = String::<32>::new();
    let _ = write!(host, "{peer}");
    let peer = Peer { address: peer, host: &host, black_hole_port };
    let mut bench = Bench { network, peer, memory: MEMORY.take() };
    let mut passed = 0;
    for name in CASES {
        match picokube_first_light::run(name, &mut bench).await {
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
