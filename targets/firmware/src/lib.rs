//! What every board's firmware shares: configuration, network, controllers, status, and what to do
//! when something goes wrong.
//!
//! A board brings up its chip, then hands an Ethernet driver and a few facts about itself to
//! [`run`]. `docs/porting.md` leads from zero to a new board.
#![no_std]

mod certificates;
mod clock;
mod controllers;
pub mod crash;
mod election;
mod memory;
mod network;
mod profile;
mod report;
pub mod reset;
pub mod stack;
mod status;
mod transport;
#[cfg(feature = "trouble")]
pub mod trouble;
mod watchdog;

use core::cell::Cell;
use core::fmt::{self, Display};

use embassy_executor::Spawner;
use embassy_futures::select::select4;
use embassy_net::driver::Driver;
use embassy_time::{Duration, Timer};
use picokube_config::{Configuration, PageError, read_page};
use picokube_tls::{Config, ConfigError, Identity, IdentityError};
use static_cell::StaticCell;

use controllers::spawn;
use crash::{Cause, Crash};
pub use profile::{PROFILE, Profile};
use transport::{Security, Transport};
pub use watchdog::Watchdog;

defmt::timestamp!("{=u64:tus}", embassy_time::Instant::now().as_micros());

/// How often a device without a configuration says so.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Gives true random numbers, or nothing.
pub type Entropy = fn() -> Option<[u8; 32]>;

/// What a board has.
pub struct Board<D, W> {
    /// Its name.
    pub name: &'static str,
    /// Its network interface.
    pub ethernet: D,
    /// Its watchdog, running.
    pub watchdog: W,
    /// Whether the watchdog has caused this boot without a chance to say so.
    pub reset_by_watchdog: bool,
    /// A random number, new at every boot.
    pub seed: u64,
    /// 32 bytes from a true random generator, new at every call; nothing if it does not work, and then no
    /// TLS is spoken. It may take a few milliseconds.
    pub entropy: Entropy,
    /// How long the processor has not slept since the boot, if the board can tell.
    pub busy: Option<fn() -> Duration>,
}

/// Runs the controllers for ever. The board's main task awaits this.
pub async fn run<D: Driver, W: Watchdog>(spawner: Spawner, board: Board<D, W>) -> ! {
    stack::guard();
    let Board { name, ethernet, watchdog, reset_by_watchdog, seed, entropy, busy } = board;
    defmt::info!(
        "picokube {=str} on {=str}, {=str}: room for {=usize} pods, {=usize} ReplicaSets, \
         {=usize} Deployments, {=usize} StatefulSets",
        env!("CARGO_PKG_VERSION"),
        name,
        PROFILE.name,
        PROFILE.pods,
        PROFILE.replica_sets,
        PROFILE.deployments,
        PROFILE.stateful_sets,
    );
    clock::tell();
    let crash = last_crash(reset_by_watchdog);
    let runtime = Cell::new(None);
    let watching = watchdog::watch_over(watchdog, &runtime);
    let fit = configuration().and_then(|it| Ok((it, security(it, entropy)?)));
    let (configuration, security) = match fit {
        Ok(fit) => fit,
        Err(error) => {
            embassy_futures::join::join(watching, complain(error)).await;
            panic!("a complaint has ended")
        }
    };
    let (stack, mut runner) = network::new(ethernet, configuration, seed);
    let work = async {
        network::up(stack).await;
        let seed32 = seed as u32;
        let transport = Transport::new(spawner, stack, configuration, security, seed32);
        let network = transport.network;
        let started = controllers::start(spawner, transport, configuration, seed, entropy, crash);
        for _ in 0..status::CLIENTS {
            spawn(spawner, status::serve(stack, network, started, configuration, busy));
        }
        spawn(spawner, status::log(network, started, configuration, busy));
        runtime.set(Some(started));
        network::follow(stack).await
    };
    // None of them ever ends.
    select4(runner.run(), watching, work, reset::when_asked(&runtime)).await;
    panic!("the network stack has ended")
}

/// Why there is nothing to do for a device.
enum Unfit {
    /// There is no configuration.
    Page(PageError),
    /// What it says of the server cannot be used.
    Server(ConfigError),
    /// What it says of the device cannot be used.
    Identity(IdentityError),
}

impl Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page(error) => error.fmt(f),
            Self::Server(error) => error.fmt(f),
            Self::Identity(error) => error.fmt(f),
        }
    }
}

/// What the configuration page says.
///
/// Neither this nor what follows is inlined: what they need of the stack must not be a part of the frame of
/// the task that calls them, which is there as long as it runs.
#[inline(never)]
fn configuration() -> Result<&'static Configuration<'static>, Unfit> {
    static CONFIGURATION: StaticCell<Configuration<'static>> = StaticCell::new();
    let configuration = CONFIGURATION.init(read_page(configuration_page()).map_err(Unfit::Page)?);
    defmt::info!("{=str} serves {=str}", configuration.identity, configuration.host);
    Ok(configuration)
}

/// Whom to trust, and as whom to come, if the server is to prove who it is.
#[inline(never)]
fn security(
    configuration: &'static Configuration<'static>,
    entropy: Entropy,
) -> Result<Option<&'static Security>, Unfit> {
    static SECURITY: StaticCell<Security> = StaticCell::new();
    let Some(tls) = &configuration.tls else { return Ok(None) };
    let config = Config::new(tls.name, tls.authorities.as_slice())
        .and_then(|config| config.with_protocol(b"h2"))
        .map_err(Unfit::Server)?;
    let config = match &tls.identity {
        None => config,
        Some(identity) => {
            let own = Identity::new(identity.chain.as_slice(), identity.key.0);
            config.with_identity(own.map_err(Unfit::Identity)?)
        }
    };
    defmt::info!("the server has to prove that it is {=str}", tls.name);
    Ok(Some(SECURITY.init(Security { config, entropy })))
}

/// The flash that is set aside for the configuration page.
fn configuration_page() -> &'static [u8] {
    unsafe extern "C" {
        // Of the board's memory map.
        static _config: [u8; picokube_config::PAGE];
    }
    // SAFETY: the memory map reserves this much there, and nothing writes to it.
    unsafe { &_config }
}

/// Why the device was reset, if it was not by its power; says so.
#[inline(never)]
fn last_crash(reset_by_watchdog: bool) -> Option<&'static Crash> {
    static CRASH: StaticCell<Crash> = StaticCell::new();
    let unsaid = || Crash::unsaid(Cause::Watchdog);
    let crash = &*CRASH.init(crash::take().or_else(|| reset_by_watchdog.then(unsaid))?);
    defmt::error!("the last boot ended by {}", defmt::Display2Format(crash));
    Some(crash)
}

/// Without a configuration there is nothing to do but to say so.
async fn complain(error: Unfit) -> ! {
    loop {
        defmt::error!(
            "{}: write one with `cargo xtask firmware configure`",
            defmt::Display2Format(&error)
        );
        Timer::after(COMPLAIN_EVERY).await;
    }
}
