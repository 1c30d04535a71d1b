//! The driver's test cases, written once for every network stack.
//!
//! Each case talks to a *peer*, an HTTP server that misbehaves on request (`picokube_tests::peer`).
//! On a PC the cases run over the operating system's sockets, in the firmware over embassy-net and
//! a real Ethernet driver, so that the same expectations hold in both places. Most of them hold over HTTPS,
//! too.
#![no_std]
#![forbid(unsafe_code)]
#![expect(clippy::result_large_err, reason = "a failure is a text, and there is no heap for it")]

mod cases;
mod receivers;

use core::fmt::Write;
use core::net::{IpAddr, SocketAddr};
use core::pin::pin;

use embassy_futures::select::{Either, select};
use embassy_time::Duration;
use embedded_nal_async::TcpConnect;
use heapless::String;
use picokube_core::backoff::Policy;
use picokube_core::time::Duration as Span;
use picokube_driver::{
    Client, Connection, Error, Memory as SessionMemory, Patience, Secure, Server, Session,
};

pub use cases::{CASES, CASES_OVER_HTTPS};

/// What a case has to work with.
pub struct Bench<'a, N> {
    /// The stack under test.
    pub network: &'a N,
    /// Where the peer is.
    pub peer: Peer<'a>,
    /// The memory of the clients, reused from case to case.
    pub memory: &'a mut Memory,
}

/// The clients that a case has, each with a connection or a stream of its own.
pub(crate) struct Clients<'a, N: TcpConnect> {
    requests: Client<'a, N>,
    streams: [Client<'a, N>; STREAMS],
}

impl<N: TcpConnect> Bench<'_, N> {
    /// Runs the case called `name` over HTTP/1.1.
    pub async fn run(&mut self, name: &str) -> Result<(), Failure> {
        let Self { network, peer, memory } = self;
        let Circumstances { address, patience } = circumstances(name, peer);
        let server = Server { address, ..server(peer) };
        let client = |buffer, patience| {
            Client::Connection(Connection::new(*network, server, patience, buffer, 1))
        };
        let Memory { requests, streams } = &mut **memory;
        let requests = client(requests, patience);
        let streams = streams.each_mut().map(|buffer| client(buffer, STREAMING));
        cases::run(name, &mut Clients { requests, streams }).await
    }

    /// Runs the case called `name` over HTTPS, on connections that `secure` opens to the address that it
    /// is told.
    pub async fn run_over_https<S: Secure>(
        &mut self,
        name: &str,
        secure: impl FnOnce(SocketAddr) -> S,
    ) -> Result<(), Failure> {
        let Self { peer, memory, .. } = self;
        let Circumstances { address, patience } = circumstances(name, peer);
        let (mut state, mut out, mut lent) = (SessionMemory::new(), [0; 2048], [0; 700]);
        let session = Session::new(server(peer), &mut state, &mut out, 1);
        session.lend(&mut lent);
        let client = |ring, patience| session.stream(ring, patience, 1).map(Client::Stream);
        let Memory { requests, streams } = &mut **memory;
        let requests = client(requests, patience);
        let [a, b, c, d] = streams.each_mut().map(|ring| client(ring, STREAMING));
        let (Some(requests), Some(a), Some(b), Some(c), Some(d)) = (requests, a, b, c, d) else {
            return Err(failure(format_args!("a session has room for more clients than that")));
        };
        let mut clients = Clients::<N> { requests, streams: [a, b, c, d] };
        let mut secure = secure(address);
        let case = pin!(cases::run(name, &mut clients));
        match select(case, pin!(session.run(&mut secure))).await {
            Either::First(result) => result,
            Either::Second(never) => never,
        }
    }
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
/// What the firmware gives each client: over HTTP/1.1, the head of a response has to fit; over HTTP/2, it is
/// the window of a stream.
type Buffer = [u8; 1536];

/// The memory of all clients of a case.
pub struct Memory {
    requests: Buffer,
    streams: [Buffer; STREAMS],
}

impl Memory {
    /// All zero, for a `static`.
    #[expect(clippy::new_without_default, reason = "built in a static, where Default cannot be")]
    pub const fn new() -> Self {
        Self { requests: [0; 1536], streams: [[0; 1536]; STREAMS] }
    }
}

/// Why a case failed.
pub type Failure = String<200>;

/// Nothing takes so long, in an emulator and on however busy a machine: the cases that are about running out
/// of patience have less of it.
const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(120),
    response: Duration::from_secs(120),
    silence: Duration::from_secs(120),
    answer: Some(Duration::from_secs(240)),
    idle: Duration::from_secs(20),
    backoff: Policy {
        base: Span::from_millis(50),
        cap: Span::from_millis(400),
        reset: Span::from_secs(60),
    },
};

/// Streams have no end of their own.
const STREAMING: Patience = Patience { answer: None, ..PATIENCE };

/// The `Authorization` header that all cases send and the peer's echo shows.
const AUTHORIZATION: &str = "Bearer first.light";

fn server<'p>(peer: &Peer<'p>) -> Server<'p> {
    Server { address: peer.address, host: peer.host, authorization: Some(AUTHORIZATION) }
}

/// What is special about some cases.
struct Circumstances {
    address: SocketAddr,
    patience: Patience,
}

fn circumstances(name: &str, peer: &Peer<'_>) -> Circumstances {
    let (address, patience) = (peer.address, PATIENCE);
    // What is asked afterwards has to be answered within that, too.
    let short = Duration::from_secs(5);
    match name {
        "closed_port_is_refused" => Circumstances { address: peer.port(1), patience },
        "unreachable_server_times_out" => Circumstances {
            address: peer.port(peer.black_hole_port),
            patience: Patience { connect: Duration::from_secs(2), ..patience },
        },
        "mute_server_times_out" => {
            Circumstances { address, patience: Patience { response: short, ..patience } }
        }
        "silent_stream_is_given_up" => {
            Circumstances { address, patience: Patience { silence: short, ..patience } }
        }
        "dripping_answer_is_given_up" => {
            let answer = Some(Duration::from_millis(1500));
            Circumstances { address, patience: Patience { answer, ..patience } }
        }
        _ => Circumstances { address, patience },
    }
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
