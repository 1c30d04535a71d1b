//! The driver's test cases, written once for every network stack.
//!
//! Each case talks to a *peer*, an HTTP server that misbehaves on request (`picokube_tests::peer`).
//! On a PC the cases run over the operating system's sockets, in the firmware over embassy-net and
//! a real Ethernet driver, so that the same expectations hold in both places.
#![no_std]
#![forbid(unsafe_code)]
#![expect(clippy::result_large_err, reason = "a failure is a text, and there is no heap for it")]

mod cases;
mod receivers;

use core::fmt::Write;
use core::net::{IpAddr, SocketAddr};

use embassy_time::Duration;
use heapless::String;
use picokube_core::backoff::Policy;
use picokube_core::time::Duration as Span;
use picokube_driver::{Buffer, Connection, Error, Patience, Server};

pub use cases::{CASES, run};

/// What a case has to work with.
pub struct Bench<'a, N> {
    /// The stack under test.
    pub network: &'a N,
    /// Where the peer is.
    pub peer: Peer<'a>,
    /// The buffers of the connections, reused from case to case.
    pub memory: &'a mut Memory,
}

/// The peer's addresses, as seen from the stack under test.
#[derive(Clone, Copy)]
pub struct Peer<'a> {
    /// Where it serves HTTP.
    pub address: SocketAddr,
    /// The same, as text.
    pub host: &'a str,
    /// A port of it at which connections are neither accepted nor refused.
    pub black_hole_port: u16,
}

impl Peer<'_> {
    fn port(&self, port: u16) -> SocketAddr {
        let ip: IpAddr = self.address.ip();
        SocketAddr::new(ip, port)
    }
}

/// How many streams are followed at once, beside requests on one more connection.
pub const STREAMS: usize = 4;
/// What the firmware gives each connection: the head of a response has to fit.
pub type ConnectionBuffer = Buffer<1536>;

/// The memory of all connections that a case opens at once.
pub struct Memory {
    requests: ConnectionBuffer,
    streams: [ConnectionBuffer; STREAMS],
}

impl Memory {
    /// All zero, for a `static`.
    #[expect(clippy::new_without_default, reason = "built in a static, where Default cannot be")]
    pub const fn new() -> Self {
        Self { requests: Buffer::new(), streams: [const { Buffer::new() }; STREAMS] }
    }
}

/// Why a case failed.
pub type Failure = String<200>;

/// Impatient enough for a test, patient enough for an emulator on a busy machine.
const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(2),
    response: Duration::from_secs(3),
    silence: Duration::from_secs(3),
    // Streams have no end of their own.
    answer: None,
    idle: Duration::from_secs(20),
    backoff: Policy {
        base: Span::from_millis(50),
        cap: Span::from_millis(400),
        reset: Span::from_secs(60),
    },
};

/// The `Authorization` header that all cases send and the peer's echo shows.
const AUTHORIZATION: &str = "Bearer first.light";

fn server<'p>(peer: &Peer<'p>) -> Server<'p> {
    Server { address: peer.address, host: peer.host, authorization: Some(AUTHORIZATION) }
}

fn connection<'a, N: embedded_nal_async::TcpConnect>(
    network: &'a N,
    server: Server<'a>,
    buffers: &'a mut ConnectionBuffer,
) -> Connection<'a, N> {
    Connection::new(network, server, PATIENCE, buffers, 1)
}

/// The byte that the peer's streams have at `position`: depends on all of it, so that bytes lost,
/// repeated or swapped show.
pub fn pattern(position: usize) -> u8 {
    let mixed = position ^ (position >> 5) ^ (position >> 11);
    b'a' + (mixed % 26) as u8
}

fn failure(what: core::fmt::Arguments<'_>) -> Failure {
    let mut failure = Failure::new();
    // A longer text is cut: what fits is the beginning, which says most.
    let _ = failure.write_fmt(what);
    failure
}

fn expect<T: PartialEq + core::fmt::Debug>(what: &str, got: T, wanted: T) -> Result<(), Failure> {
    if got == wanted {
        return Ok(());
    }
    Err(failure(format_args!("{what}: got {got:?}, wanted {wanted:?}")))
}

fn succeed(what: &str, result: Result<(), Error>) -> Result<(), Failure> {
    expect(what, result, Ok(()))
}
