//! Talks to an API server: asks who it is, then watches what the controllers will need.

use core::fmt::Write;
use core::net::SocketAddr;
use core::ops::ControlFlow;

use embassy_executor::Spawner;
use embassy_time::Duration;
use heapless::String;
use picokube_core::backoff::Policy;
use picokube_driver::{
    Buffers, Connection, Error, Follower, Head, MAX_TARGET, Method, Patience, Receiver, Request,
    Server, follow,
};
use static_cell::{ConstStaticCell, StaticCell};

use crate::board;
use crate::network::Network;

/// A connection's memory: the head of a response has to fit the first.
type ConnectionBuffers = Buffers<1536, 512>;

const WATCHED: [&str; 4] = [
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/api/v1/pods",
    "/apis/coordination.k8s.io/v1/leases",
];

const PATIENCE: Patience = Patience {
    connect: Duration::from_secs(10),
    response: Duration::from_secs(30),
    // Watches are silent while nothing happens, up to the bookmark that comes every minute.
    silence: Duration::from_secs(150),
    idle: Duration::from_secs(20),
    backoff: Policy::REFLECTOR,
};

/// Never returns: what breaks is opened again.
pub(crate) async fn run(spawner: Spawner, network: &'static Network, server: SocketAddr) -> ! {
    static HOST: StaticCell<String<32>> = StaticCell::new();
    static REQUESTS: ConstStaticCell<ConnectionBuffers> = ConstStaticCell::new(Buffers::new());
    static WATCHES: ConstStaticCell<[ConnectionBuffers; WATCHED.len()]> =
        ConstStaticCell::new([const { Buffers::new() }; WATCHED.len()]);

    let mut host = String::new();
    let _ = write!(host, "{server}");
    let server = Server { address: server, host: HOST.init(host), authorization: None };
    let seed = board::entropy() as u32;

    let mut requests = Connection::new(network, server, PATIENCE, REQUESTS.take(), seed);
    introduce(&mut requests).await;
    for ((path, buffers), n) in WATCHED.into_iter().zip(WATCHES.take()).zip(1..) {
        // Different seeds: what has failed together must not come back all at once.
        let connection = Connection::new(network, server, PATIENCE, buffers, seed ^ n);
        match watch(connection, path) {
            Ok(task) => spawner.spawn(task),
            Err(_) => defmt::panic!("there are as many watch tasks as watches"),
        }
    }
    core::future::pending().await
}

#[embassy_executor::task(pool_size = WATCHED.len())]
async fn watch(mut connection: Connection<'static, Network>, path: &'static str) {
    follow(&mut connection, &mut Watch { path, bytes: 0 }).await;
}

/// Asks for the server's version until it tells.
async fn introduce(requests: &mut Connection<'_, Network>) {
    let request = Request { method: Method::GET, target: "/version", headers: &[], body: &[][..] };
    loop {
        let mut version = Version::default();
        match requests.exchange(&request, &mut version).await {
            Ok(()) => {
                defmt::info!("GET /version: {=u16}", version.status);
                return;
            }
            Err(error) => defmt::warn!("GET /version: {}", error),
        }
    }
}

#[derive(Default)]
struct Version {
    status: u16,
}

impl Receiver for Version {
    fn head(&mut self, head: &Head<'_>) -> ControlFlow<()> {
        self.status = head.status;
        if let Some(date) = head.date {
            defmt::info!("the server's clock says {=str}", date);
        }
        ControlFlow::Continue(())
    }

    async fn body(&mut self, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Counts what a watch brings.
struct Watch {
    path: &'static str,
    bytes: usize,
}

impl Receiver for Watch {
    fn head(&mut self, head: &Head<'_>) -> ControlFlow<()> {
        defmt::info!("watch {=str}: {=u16}", self.path, head.status);
        self.bytes = 0;
        ControlFlow::Continue(())
    }

    async fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.bytes += bytes.len();
        defmt::debug!("watch {=str}: {=usize} bytes so far", self.path, self.bytes);
        ControlFlow::Continue(())
    }
}

impl Follower for Watch {
    fn target(&mut self, target: &mut String<MAX_TARGET>) {
        let _ = write!(target, "{}?watch=1&allowWatchBookmarks=true", self.path);
    }

    fn ended(&mut self, how: Result<(), Error>) -> ControlFlow<()> {
        match how {
            Ok(()) => defmt::info!("watch {=str}: ended by the server", self.path),
            Err(error) => defmt::warn!("watch {=str}: {}", self.path, error),
        }
        ControlFlow::Continue(())
    }
}
