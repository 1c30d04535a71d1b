//! A controller as it is shipped: the manager, the driver's tasks and their memory.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use picokube_core::kind::Kind;
use picokube_core::manager::{Manager, Settings};
use picokube_driver::runtime::{BodyBuffer, BodyBuffers, Lane, Runtime};
use picokube_driver::{Client, Connection, Memory as SessionMemory, Patience, Server, Session};

use crate::random::Random;

use super::super::boards::Seen;
use super::super::memory::Memory;
use super::super::plan::{Protocol, Shipping};
use super::attempts::{Attempts, Observed};
use super::streams::{Plain, Stack};

/// Where the server is: there is only one.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 6443);

/// What a controller is made of.
pub(super) struct Parts {
    pub(super) memory: Memory,
    pub(super) settings: Settings,
    pub(super) lanes: usize,
    pub(super) shipping: Shipping,
    pub(super) seed: u64,
    pub(super) stack: Stack,
    pub(super) probe: Rc<Probe>,
    pub(super) attempts: Attempts,
}

/// Looks into a controller, once the run is over.
#[derive(Default)]
pub(super) struct Probe {
    is_wanted: Cell<bool>,
    seen: RefCell<Option<Seen>>,
    waker: RefCell<Option<Waker>>,
}

impl Probe {
    /// Asks for a look; it is there when the controller's tasks have been run.
    pub(super) fn ask(&self) {
        self.is_wanted.set(true);
        self.waker.take().into_iter().for_each(Waker::wake);
    }

    pub(super) fn take(&self) -> Option<Seen> {
        self.seen.take()
    }

    async fn serve(&self, runtime: &Runtime<'_>) {
        poll_fn(|context| {
            if self.is_wanted.take() {
                *self.seen.borrow_mut() = Some(runtime.inspect(Seen::of));
            }
            *self.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// Runs a controller for ever.
pub(super) async fn run(parts: Parts) {
    let Parts { mut memory, settings, lanes, shipping, seed, stack, probe, attempts } = parts;
    let mut random = Random::from_seed(seed);
    let (resources, desk) = memory.parts();
    let manager = Manager::new(resources, desk, settings, random.next_u64());
    let runtime = &Runtime::new(manager);
    // The token is that of each attempt.
    let server = Server { address: ADDRESS, host: "simulated:6443", authorization: None };
    let seed = random.next_u64() as u32;

    let mut memory = vec![vec![0; shipping.buffer]; Kind::COUNT + 2 * lanes];
    let mut memory_of_bodies = vec![vec![0; shipping.body]; lanes];
    let bodies: Vec<BodyBuffer<'_>> =
        memory_of_bodies.iter_mut().map(|bytes| BodyBuffer::new(bytes)).collect();
    let bodies = &BodyBuffers::new(&bodies);
    let mut pages = vec![vec![0; shipping.page]; lanes];
    let mut pages = pages.iter_mut();
    let (mut session_memory, mut out) = (Box::new(SessionMemory::new()), vec![0; shipping.out]);
    let mut lent = vec![0; 2 * shipping.buffer];
    let session = &Session::new(server, &mut session_memory, &mut out, seed);
    session.lend(&mut lent);
    let observers: Vec<Observed> = memory.iter().map(|_| attempts.observer()).collect();
    let mut clients =
        memory.iter_mut().zip(&observers).zip(1u32..).map(|((buffer, observer), n)| {
            let is_watch = n as usize <= Kind::COUNT;
            let patience = if is_watch { Patience::WATCHES } else { Patience::REQUESTS };
            match shipping.protocol {
                Protocol::Http1 => {
                    let connection = Connection::new(&stack, server, patience, buffer, seed ^ n);
                    Client::Connection(connection.observed_by(observer))
                }
                Protocol::Http2 => {
                    let stream = session.stream(buffer, patience, seed ^ n);
                    Client::Stream(stream.expect("room for every client").observed_by(observer))
                }
            }
        });

    let mut tasks: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + '_>>> =
        FuturesUnordered::new();
    if shipping.protocol == Protocol::Http2 {
        let mut plain = Plain { stack: &stack, address: ADDRESS };
        tasks.push(Box::pin(async move { match session.run(&mut plain).await {} }));
    }
    for (kind, mut client) in Kind::ALL.iter().zip(&mut clients) {
        tasks.push(Box::pin(async move { match runtime.watch(*kind, &mut client).await {} }));
    }
    while let (Some(requests), Some(mut sources)) = (clients.next(), clients.next()) {
        let page = pages.next().map_or(&mut [][..], |page| page);
        let mut lane = Lane { requests, buffers: bodies, page };
        tasks.push(Box::pin(async move { match runtime.serve(&mut lane).await {} }));
        tasks.push(Box::pin(
            async move { match runtime.make_bodies(&mut sources, bodies).await {} },
        ));
    }
    tasks.push(Box::pin(probe.serve(runtime)));
    while tasks.next().await.is_some() {}
}
