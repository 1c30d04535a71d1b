//! picokube on Arm's MPS2 AN386: a Cortex-M4F with a LAN9118 Ethernet controller.
//!
//! QEMU emulates the board, so this is the image that every change is tried on. The board's own
//! parts are [`lan9118`], [`time_driver`] and [`executor`]; all that is not about the board is in
//! `picokube-driver`.
//!
//! The first word of the semihosting command line says what to do:
//! - `connect ADDRESS:PORT`: talk to the API server there until the power goes
//! - `self-test ADDRESS:PORT BLACK-HOLE-PORT`: run the driver's cases against the test peer there
//!   and end the emulation with their verdict
#![no_std]
#![no_main]

mod board;
mod connect;
mod executor;
mod lan9118;
mod network;
mod self_test;
mod stack;
mod time_driver;

use core::net::SocketAddr;

use cortex_m_rt::entry;
use defmt_semihosting as _; // the global logger
use embassy_executor::Spawner;
use heapless::String;

defmt::timestamp!("{=u64:tus}", embassy_time::Instant::now().as_micros());

#[entry]
fn main() -> ! {
    time_driver::start();
    executor::run(|spawner| match main_task(spawner) {
        Ok(task) => spawner.spawn(task),
        Err(_) => defmt::panic!("the main task exists once and is started once"),
    })
}

#[embassy_executor::task]
async fn main_task(spawner: Spawner) {
    defmt::info!("picokube {=str} on mps2-an386", env!("CARGO_PKG_VERSION"));
    let Some(job) = Job::from_command_line() else {
        defmt::error!(
            "nothing to do: give `connect ADDRESS:PORT` or `self-test ADDRESS:PORT PORT` on the \
             semihosting command line"
        );
        board::exit(false)
    };
    let network = network::up(spawner).await;
    match job {
        Job::Connect { server } => connect::run(spawner, network, server).await,
        Job::SelfTest { peer, black_hole_port } => {
            let passed = self_test::run(network, peer, black_hole_port).await;
            stack::report();
            board::exit(passed)
        }
    }
}

/// What the command line asks for.
enum Job {
    Connect { server: SocketAddr },
    SelfTest { peer: SocketAddr, black_hole_port: u16 },
}

impl Job {
    fn from_command_line() -> Option<Self> {
        let line: String<128> = board::command_line()?;
        let mut words = line.split_ascii_whitespace();
        match (words.next()?, words.next()?, words.next()) {
            ("connect", server, None) => Some(Self::Connect { server: server.parse().ok()? }),
            ("self-test", peer, Some(port)) => Some(Self::SelfTest {
                peer: peer.parse().ok()?,
                black_hole_port: port.parse().ok()?,
            }),
            _ => None,
        }
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    defmt::error!("{}", defmt::Display2Format(info));
    board::exit(false)
}
