//! What every board's firmware shares: configuration, network, controllers.
//!
//! A board brings up its chip, then hands an Ethernet driver and a few facts about itself to
//! [`run`]. `docs/porting.md` leads from zero to a new board.
#![no_std]

mod controllers;
mod network;
mod profile;
pub mod stack;

use embassy_executor::Spawner;
use embassy_futures::select::select;
use embassy_net::driver::Driver;
use embassy_time::{Duration, Timer};
use picokube_config::{Configuration, PageError, read_page};

pub use profile::{PROFILE, Profile};

/// How often a device without a configuration says so.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// What a board has.
pub struct Board<D> {
    /// Its name.
    pub name: &'static str,
    /// Its network interface.
    pub ethernet: D,
    /// The flash that is set aside for the configuration page.
    pub page: &'static [u8],
    /// A random number, new at every boot.
    pub seed: u64,
}

/// Runs the controllers for ever. The board's main task awaits this.
pub async fn run<D: Driver>(spawner: Spawner, board: Board<D>) -> ! {
    let Board { name, ethernet, page, seed } = board;
    defmt::info!(
        "picokube {=str} on {=str}, {=str}: room for {=usize} pods, {=usize} ReplicaSets, \
         {=usize} Deployments",
        env!("CARGO_PKG_VERSION"),
        name,
        PROFILE.name,
        PROFILE.pods,
        PROFILE.replica_sets,
        PROFILE.deployments,
    );
    let configuration = match read_page(page) {
        Ok(configuration) => configuration,
        Err(error) => complain(error).await,
    };
    defmt::info!(
        "{=str} serves {}",
        configuration.identity,
        defmt::Display2Format(&configuration.server)
    );
    let (stack, mut runner) = network::new(ethernet, &configuration, seed);
    let work = async {
        network::up(stack).await;
        let _runtime = controllers::start(spawner, stack, &configuration, seed);
        core::future::pending::<()>().await
    };
    // Neither ever ends.
    select(runner.run(), work).await;
    defmt::panic!("the network stack has ended")
}

/// Without a configuration there is nothing to do but to say so.
async fn complain(error: PageError) -> Configuration<'static> {
    loop {
        defmt::error!(
            "{}: write one with `cargo xtask firmware configure`",
            defmt::Display2Format(&error)
        );
        Timer::after(COMPLAIN_EVERY).await;
    }
}
