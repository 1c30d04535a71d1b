//! What HTTPS costs on this board, in instructions: a handshake, one by a ticket, and bulk, that of a list
//! and that of a watch.
//!
//! The semihosting command line is `ADDRESS:PORT AUTHORITY [CERTIFICATE KEY]`, all but the first in
//! hexadecimal digits: where the tests' HTTPS peer is, whom to trust, and as whom to come. All is as the
//! firmware has it (`targets/firmware/src/transport.rs`), but for who takes the responses in: they are
//! forgotten. The emulator has to count instructions, so that the time in which the processor does not
//! sleep says how many there were.
#![no_std]
#![no_main]

use core::fmt::Write;
use core::net::SocketAddr;
use core::ops::ControlFlow;
use core::pin::pin;

use cortex_m_rt::entry;
use embassy_executor::Spawner;
use embassy_futures::select::{Either, select};
use embassy_net::{Config, Runner, StackResources};
use heapless::{String, Vec};
use picokube_driver::sockets::Sockets;
use picokube_driver::tls::{Platform, Tls};
use picokube_driver::{
    Error, Memory, Method, Patience, Receiver, Request, ResponseHead, Server, Session, Stream,
};
use picokube_firmware::crash;
use picokube_mps2_an386::lan9118::Lan9118;
use picokube_mps2_an386::{board, executor, time_driver};
use picokube_tls as tls;
use picokube_tls::{ANY_RECORD, Identity, Ticket, Time};
use static_cell::{ConstStaticCell, StaticCell};

/// That of the peer, and that of DHCP.
const SOCKETS: usize = 2;
const RX: usize = 2048;
const TX: usize = 1536;
const OUT: usize = 2304;
const WINDOW: usize = 1024;
const LOAN: usize = 1920;

/// What the peer's certificate is for.
const NAME: &str = "peer.test";
/// Longer than any certificate of the peer's.
const DER: usize = 1024;
/// An instruction takes a nanosecond then.
const INSTRUCTIONS_PER_MICROSECOND: u64 = 1000;

type Network = Sockets<'static, 1>;

#[entry]
fn main() -> ! {
    time_driver::start();
    executor::run(|spawner| match main_task(spawner) {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("the main task exists once and is started once"),
    })
}

#[embassy_executor::task]
async fn main_task(spawner: Spawner) {
    if let Some(crash) = crash::take() {
        defmt::error!("{}", defmt::Display2Format(&crash));
        board::exit(false)
    }
    static ORDER: StaticCell<Order> = StaticCell::new();
    let Some(order) = Order::read() else {
        defmt::error!(
            "give `ADDRESS:PORT AUTHORITY [CERTIFICATE KEY]` on the semihosting command line"
        );
        board::exit(false)
    };
    let order = &*ORDER.init(order);
    let network = network(spawner).await;
    match measure(network, order).await {
        Ok(()) => board::exit(true),
        Err(error) => {
            defmt::error!("{}", defmt::Debug2Format(&error));
            board::exit(false)
        }
    }
}

/// What the command line says.
struct Order {
    peer: SocketAddr,
    authority: Vec<u8, DER>,
    /// A certificate and its key.
    identity: Option<(Vec<u8, DER>, [u8; 32])>,
}

impl Order {
    #[inline(never)]
    fn read() -> Option<Self> {
        let line: String<{ 5 * DER }> = board::command_line()?;
        let mut words = line.split_ascii_whitespace();
        let peer = words.next()?.parse().ok()?;
        let authority = bytes(words.next()?)?;
        let identity = match words.next() {
            None => None,
            Some(certificate) => {
                let key = bytes(words.next()?)?;
                Some((bytes(certificate)?, *key.first_chunk()?))
            }
        };
        Some(Self { peer, authority, identity })
    }
}

/// The bytes that a word of hexadecimal digits stands for.
fn bytes(word: &str) -> Option<Vec<u8, DER>> {
    let mut bytes = Vec::new();
    for pair in word.as_bytes().chunks(2) {
        let pair = core::str::from_utf8(pair).ok()?;
        bytes.push(u8::from_str_radix(pair, 16).ok()?).ok()?;
    }
    Some(bytes)
}

async fn network(spawner: Spawner) -> &'static Network {
    static RESOURCES: ConstStaticCell<StackResources<SOCKETS>> =
        ConstStaticCell::new(StackResources::new());
    static BUFFERS: ConstStaticCell<[u8; RX + TX]> = ConstStaticCell::new([0; _]);
    static NETWORK: StaticCell<Network> = StaticCell::new();
    let config = Config::dhcpv4(Default::default());
    let (stack, runner) =
        embassy_net::new(board::ethernet(), config, RESOURCES.take(), board::seed());
    match run_stack(runner) {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("the network task exists once and is started once"),
    }
    stack.wait_config_up().await;
    NETWORK.init(Sockets::new(stack, BUFFERS.take(), RX, TX))
}

#[embassy_executor::task]
async fn run_stack(mut runner: Runner<'static, Lan9118>) -> ! {
    runner.run().await
}

/// The emulator's random numbers, and the time of the peer's certificates.
struct Emulator;

impl Platform for Emulator {
    fn entropy(&self) -> Option<[u8; 32]> {
        board::entropy()
    }

    fn time(&self) -> Time {
        Time::AtLeast(1_767_225_600)
    }

    fn tell(&self, error: &tls::Error) {
        defmt::error!("TLS: {}", error);
    }
}

async fn measure(network: &'static Network, order: &'static Order) -> Result<(), Error> {
    static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());
    static BUFFER: ConstStaticCell<[u8; ANY_RECORD]> = ConstStaticCell::new([0; _]);
    static RING: ConstStaticCell<[u8; WINDOW]> = ConstStaticCell::new([0; _]);
    static LOANED: ConstStaticCell<[u8; LOAN]> = ConstStaticCell::new([0; _]);
    static OUTPUT: ConstStaticCell<[u8; OUT]> = ConstStaticCell::new([0; _]);
    static TICKET: ConstStaticCell<Ticket> = ConstStaticCell::new(Ticket::new());
    let unusable = Error::Insecure(picokube_driver::Insecure::Configuration);
    let authorities = [order.authority.as_slice()];
    let config = tls::Config::new(NAME, &authorities).and_then(|it| it.with_protocol(b"h2"));
    let config = config.map_err(|_| unusable)?;
    let chain = [order.identity.as_ref().map_or(&[][..], |(certificate, _)| certificate)];
    let config = match &order.identity {
        None => config,
        Some((_, key)) => config.with_identity(Identity::new(&chain, key).map_err(|_| unusable)?),
    };
    let mut host = String::<32>::new();
    let _ = write!(host, "{}", order.peer);
    // As long as a token of a service account.
    let token = "Bearer of-nothing-that-anybody-would-want-to-know-and-as-long-as-tokens-are";
    let server = Server { address: order.peer, host: &host, authorization: Some(token) };
    let session = Session::new(server, MEMORY.take(), OUTPUT.take(), 1);
    session.lend(LOANED.take());
    let Some(mut stream) = session.stream(RING.take(), Patience::REQUESTS, 1) else {
        panic!("a session has room for one client");
    };
    let mut tls = Tls {
        network,
        address: order.peer,
        config: &config,
        platform: &Emulator,
        buffer: BUFFER.take(),
        ticket: TICKET.take(),
    };
    match select(pin!(costs(&session, &mut stream)), pin!(session.run(&mut tls))).await {
        Either::First(result) => result,
        Either::Second(never) => never,
    }
}

/// Asks for this and that, and tells what it has cost.
async fn costs(session: &Session<'_>, stream: &mut Stream<'_>) -> Result<(), Error> {
    const LITTLE: u64 = 50_000;
    const MUCH: u64 = 250_000;
    let first = cost(stream, "/turn", false).await?;
    let request = cost(stream, "/turn", false).await?;
    let mut bulk = [0; 2];
    for (bulk, is_endless) in bulk.iter_mut().zip([false, true]) {
        let little = cost(stream, "/stream?bytes=50000&chunk=16000", is_endless).await?;
        let much = cost(stream, "/stream?bytes=250000&chunk=16000", is_endless).await?;
        *bulk = (much - little) * 1000 / (MUCH - LITTLE);
    }
    stream.sever();
    let again = cost(stream, "/turn", false).await?;
    let counts = session.counts();
    assert!((counts.connections, counts.resumed) == (2, 1), "the second one by a ticket");
    defmt::info!("handshake={=u64}", first.saturating_sub(request));
    defmt::info!("resumption={=u64}", again.saturating_sub(request));
    defmt::info!("request={=u64}", request);
    defmt::info!("bulk_of_1000_bytes={=u64}", bulk[0]);
    defmt::info!("bulk_of_1000_bytes_of_a_watch={=u64}", bulk[1]);
    Ok(())
}

/// The instructions from before a request until after its response.
async fn cost(stream: &mut Stream<'_>, target: &str, is_endless: bool) -> Result<u64, Error> {
    let before = executor::busy();
    let request = Request { method: Method::GET, target: &target, headers: &[], body: &[][..] };
    stream.exchange(&request, &mut Forgetful { is_endless }).await?;
    Ok((executor::busy() - before).as_micros() * INSTRUCTIONS_PER_MICROSECOND)
}

/// Takes everything and keeps nothing.
struct Forgetful {
    is_endless: bool,
}

impl Receiver for Forgetful {
    fn head(&mut self, head: &ResponseHead) -> ControlFlow<()> {
        if head.status == 200 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    async fn body(&mut self, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn is_endless(&self) -> bool {
        self.is_endless
    }
}
