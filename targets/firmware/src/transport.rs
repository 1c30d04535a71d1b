//! The way to the API server: HTTP/1.1 on a connection for each client, or HTTP/2 over TLS on one for all.
//!
//! Which of the two is decided by the configuration page, so both are in the image. Only one is in use, so
//! both work in the same memory.

use core::net::SocketAddr;

use embassy_executor::Spawner;
use embassy_net::Stack;
use picokube_config::Configuration;
use picokube_driver::sockets::Sockets;
use picokube_driver::tls::{Platform, Tls};
use picokube_driver::{Client, Connection, Memory, Patience, Server, Session};
use picokube_tls as tls;
use picokube_tls::{ANY_RECORD, Config, Ticket, Time};
use static_cell::{ConstStaticCell, StaticCell};

use crate::Entropy;
use crate::controllers::{REQUEST_CLIENTS, spawn};
use crate::profile::{LANES, WATCHES};
use crate::{clock, stack};

/// Clients of the API server: the watches, the lanes, and the one that reads sources of bodies.
pub(crate) const CLIENTS: usize = WATCHES + REQUEST_CLIENTS;

/// The sockets of watches, over HTTP/1.1.
pub(crate) type WatchSockets = Sockets<'static, WATCHES>;
/// The sockets of requests and their sources, over HTTP/1.1.
pub(crate) type RequestSockets = Sockets<'static, REQUEST_CLIENTS>;
/// The one socket of TLS.
type SecureSocket = Sockets<'static, 1>;

/// The client of a watch.
pub(crate) type WatchClient = Client<'static, WatchSockets>;
/// The client of a lane, or for sources.
pub(crate) type RequestClient = Client<'static, RequestSockets>;

/// What comes waits here until it is read. Watches send little.
const RX: usize = 2048;
const WATCH_TX: usize = 256;
const REQUEST_TX: usize = 512;
/// The head of a response has to fit, and the answer to a write may come with warnings.
const WATCH_BUFFER: usize = 960;
const SOURCE_BUFFER: usize = 960;
const LANE_BUFFER: usize = 1536;

const PLAIN: usize = WATCHES * (RX + WATCH_TX + WATCH_BUFFER)
    + REQUEST_CLIENTS * (RX + REQUEST_TX)
    + LANES * LANE_BUFFER
    + SOURCE_BUFFER;

const SECURE_TX: usize = 1536;
/// What is put into one record: the head of a request has to fit, with its token.
const OUT: usize = 2304;
/// How much of a response the server may send before its client takes it.
const WINDOW: usize = 1024;
/// How much more of it, for one response at a time: every record of the server's costs as much as several
/// hundred bytes.
const LOAN: usize = 1920;

const SECURE: usize = ANY_RECORD + RX + SECURE_TX + OUT + CLIENTS * WINDOW + LOAN;

/// What a handshake needs of the stack, at most.
const HANDSHAKE: usize = 13 * 1024;

const MEMORY: usize = if PLAIN > SECURE { PLAIN } else { SECURE };

/// The connections to the API server.
#[derive(Clone, Copy)]
pub(crate) enum Network {
    /// One for each client.
    Plain { watches: &'static WatchSockets, requests: &'static RequestSockets },
    /// One for all of them.
    Secure { socket: &'static SecureSocket, session: &'static Session<'static> },
}

impl Network {
    /// How many connections are open or being opened.
    pub(crate) fn in_use(self) -> usize {
        match self {
            Self::Plain { watches, requests } => watches.in_use() + requests.in_use(),
            Self::Secure { socket, .. } => socket.in_use(),
        }
    }

    /// The most there can be.
    pub(crate) fn most(self) -> usize {
        match self {
            Self::Plain { .. } => CLIENTS,
            Self::Secure { .. } => 1,
        }
    }

    /// What all clients share, if they do.
    pub(crate) fn session(self) -> Option<&'static Session<'static>> {
        match self {
            Self::Plain { .. } => None,
            Self::Secure { session, .. } => Some(session),
        }
    }
}

impl Network {
    /// When the certificate is over by which the server has proved itself, in seconds since 1970.
    pub(crate) fn server_certificate_expires(self) -> Option<u64> {
        self.session()?.counts().server_certificate_expires
    }
}

/// Makes the clients.
pub(crate) struct Transport {
    pub(crate) network: Network,
    server: Server<'static>,
    /// Different for each client: what has failed together must not come back all at once.
    seed: u32,
    /// What is left.
    memory: &'static mut [u8],
}

impl Transport {
    /// The way to the server of the configuration. With TLS, a task is spawned that carries all clients.
    ///
    /// Not inlined: sockets are built on the stack and then moved.
    #[inline(never)]
    pub(crate) fn new(
        spawner: Spawner,
        stack: Stack<'static>,
        configuration: &'static Configuration<'static>,
        security: Option<&'static Security>,
        seed: u32,
    ) -> Self {
        static ALL: ConstStaticCell<[u8; MEMORY]> = ConstStaticCell::new([0; MEMORY]);
        let server = Server {
            address: SocketAddr::V4(configuration.server),
            host: configuration.host,
            authorization: configuration.authorization,
        };
        let mut memory = &mut ALL.take()[..];
        let network = match security {
            None => plain(stack, &mut memory),
            Some(security) => secure(spawner, stack, server, security, seed, &mut memory),
        };
        Self { network, server, seed, memory }
    }

    /// The client of a watch.
    pub(crate) fn watch(&mut self) -> WatchClient {
        match self.network {
            Network::Plain { watches, .. } => self.plain(watches, Patience::WATCHES, WATCH_BUFFER),
            Network::Secure { session, .. } => self.secure(session, Patience::WATCHES),
        }
    }

    /// The client of a lane.
    pub(crate) fn lane(&mut self) -> RequestClient {
        self.requests(LANE_BUFFER)
    }

    /// The client for sources of bodies.
    pub(crate) fn sources(&mut self) -> RequestClient {
        self.requests(SOURCE_BUFFER)
    }

    fn requests(&mut self, buffer: usize) -> RequestClient {
        match self.network {
            Network::Plain { requests, .. } => self.plain(requests, Patience::REQUESTS, buffer),
            Network::Secure { session, .. } => self.secure(session, Patience::REQUESTS),
        }
    }

    fn plain<const N: usize>(
        &mut self,
        sockets: &'static Sockets<'static, N>,
        patience: Patience,
        buffer: usize,
    ) -> Client<'static, Sockets<'static, N>> {
        let buffer = carve(&mut self.memory, buffer);
        let seed = self.next_seed();
        Client::Connection(Connection::new(sockets, self.server, patience, buffer, seed))
    }

    fn secure<const N: usize>(
        &mut self,
        session: &'static Session<'static>,
        patience: Patience,
    ) -> Client<'static, Sockets<'static, N>> {
        let ring = carve(&mut self.memory, WINDOW);
        match session.stream(ring, patience, self.next_seed()) {
            Some(stream) => Client::Stream(stream),
            None => panic!("a session has room for more clients than that"),
        }
    }

    fn next_seed(&mut self) -> u32 {
        self.seed = self.seed.wrapping_add(1);
        self.seed
    }
}

/// Takes so many bytes.
fn carve(memory: &mut &'static mut [u8], len: usize) -> &'static mut [u8] {
    let (piece, rest) = core::mem::take(memory).split_at_mut(len);
    *memory = rest;
    piece
}

fn plain(stack: Stack<'static>, memory: &mut &'static mut [u8]) -> Network {
    static WATCHES_SOCKETS: StaticCell<WatchSockets> = StaticCell::new();
    static REQUESTS_SOCKETS: StaticCell<RequestSockets> = StaticCell::new();
    let watches = carve(memory, WATCHES * (RX + WATCH_TX));
    let requests = carve(memory, REQUEST_CLIENTS * (RX + REQUEST_TX));
    Network::Plain {
        watches: WATCHES_SOCKETS.init(Sockets::new(stack, watches, RX, WATCH_TX)),
        requests: REQUESTS_SOCKETS.init(Sockets::new(stack, requests, RX, REQUEST_TX)),
    }
}

/// What TLS needs besides a network.
pub(crate) struct Security {
    pub(crate) config: Config<'static>,
    pub(crate) entropy: Entropy,
}

impl Platform for Security {
    fn entropy(&self) -> Option<[u8; 32]> {
        // A handshake comes next, whose frames are larger than the stack's guard.
        stack::ensure_room(HANDSHAKE);
        (self.entropy)()
    }

    fn time(&self) -> Time {
        Time::AtLeast(clock::at_least())
    }

    fn tell(&self, error: &tls::Error) {
        // What is to be done about it, the log of troubles says.
        defmt::warn!("TLS: {}", error);
    }
}

fn secure(
    spawner: Spawner,
    stack: Stack<'static>,
    server: Server<'static>,
    security: &'static Security,
    seed: u32,
    memory: &mut &'static mut [u8],
) -> Network {
    static SESSION_MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());
    static TICKET: ConstStaticCell<Ticket> = ConstStaticCell::new(Ticket::new());
    static SOCKET: StaticCell<SecureSocket> = StaticCell::new();
    static SESSION: StaticCell<Session<'static>> = StaticCell::new();
    static TLS: StaticCell<Tls<'static, SecureSocket>> = StaticCell::new();
    let socket = carve(memory, RX + SECURE_TX);
    let socket = &*SOCKET.init(Sockets::new(stack, socket, RX, SECURE_TX));
    let out = carve(memory, OUT);
    let session = &*SESSION.init(Session::new(server, SESSION_MEMORY.take(), out, seed));
    session.lend(carve(memory, LOAN));
    let tls = TLS.init(Tls {
        network: socket,
        address: server.address,
        config: &security.config,
        platform: security,
        buffer: carve(memory, ANY_RECORD),
        ticket: TICKET.take(),
    });
    spawn(spawner, carry(session, tls));
    Network::Secure { socket, session }
}

#[embassy_executor::task]
async fn carry(session: &'static Session<'static>, tls: &'static mut Tls<'static, SecureSocket>) {
    match session.run(tls).await {}
}
