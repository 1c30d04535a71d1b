//! The controllers: their memory, their connections and their tasks.

use core::net::SocketAddr;

use embassy_executor::{SpawnError, SpawnToken, Spawner};
use picokube_config::Configuration;
use picokube_core::kind::Kind;
use picokube_core::manager::{Manager, Rate, Settings};
use picokube_core::time::Duration;
use picokube_driver::runtime::{BodyBuffer, BodyBuffers, Lane, Runtime};
use picokube_driver::{Buffer, Connection, Patience, Server};
use static_cell::{ConstStaticCell, StaticCell};

use crate::crash::Crash;
use crate::network::{Network, RequestSockets, WatchSockets};
use crate::profile::{LANES, PROFILE, Stores, WATCHES, Workspace};
use crate::report;

/// Connections for requests at a time: one a lane, and one for the sources of bodies.
pub(crate) const REQUEST_CONNECTIONS: usize = LANES + 1;
/// A connection's memory: the head of a response has to fit, and the answer to a write may come with
/// warnings.
type RequestBuffer = Buffer<1536>;
type ReadBuffer = Buffer<960>;

/// A connection of a watch.
type WatchConnection = Connection<'static, WatchSockets>;
/// A connection of a lane, or for sources.
type RequestConnection = Connection<'static, RequestSockets>;
/// A lane of the firmware's.
type RequestLane = Lane<'static, RequestSockets>;

/// Starts the controllers.
pub(crate) fn start(
    spawner: Spawner,
    network: Network,
    configuration: &'static Configuration<'static>,
    seed: u64,
    crash: Option<&'static Crash>,
) -> &'static Runtime<'static> {
    let runtime = runtime(configuration, seed);
    start_tasks(spawner, network, configuration, seed as u32, runtime, crash);
    runtime
}

/// The manager in its static memory.
///
/// Neither this nor what follows is inlined: what they build on the way to static memory must not
/// stay on the stack of the task that calls them.
#[inline(never)]
fn runtime(configuration: &'static Configuration<'static>, seed: u64) -> &'static Runtime<'static> {
    static STORES: ConstStaticCell<Stores> = ConstStaticCell::new(Stores::new());
    static WORKSPACE: ConstStaticCell<Workspace> = ConstStaticCell::new(Workspace::new());
    static RUNTIME: StaticCell<Runtime<'static>> = StaticCell::new();
    let (parts, desk) = (STORES.take().parts(), WORKSPACE.take().parts());
    RUNTIME.init(Runtime::new(Manager::new(parts, desk, settings(configuration), seed)))
}

#[inline(never)]
fn start_tasks(
    spawner: Spawner,
    network: Network,
    configuration: &'static Configuration<'static>,
    seed: u32,
    runtime: &'static Runtime<'static>,
    mut crash: Option<&'static Crash>,
) {
    static WATCH_BUFFERS: ConstStaticCell<[ReadBuffer; WATCHES]> =
        ConstStaticCell::new([const { Buffer::new() }; WATCHES]);
    static REQUEST_BUFFERS: ConstStaticCell<[RequestBuffer; LANES]> =
        ConstStaticCell::new([const { Buffer::new() }; LANES]);
    static SOURCE_BUFFER: ConstStaticCell<ReadBuffer> = ConstStaticCell::new(Buffer::new());
    static WATCH_CONNECTIONS: [StaticCell<WatchConnection>; WATCHES] =
        [const { StaticCell::new() }; WATCHES];
    static REQUEST_LANES: [StaticCell<RequestLane>; LANES] = [const { StaticCell::new() }; LANES];
    static SOURCES: StaticCell<RequestConnection> = StaticCell::new();
    static MEMORY_OF_BODY_BUFFER: ConstStaticCell<[u8; PROFILE.body_buffer]> =
        ConstStaticCell::new([0; PROFILE.body_buffer]);
    static BODY_BUFFER: StaticCell<[BodyBuffer<'static>; 1]> = StaticCell::new();
    static BODY_BUFFERS: StaticCell<BodyBuffers<'static>> = StaticCell::new();
    let server = Server {
        address: SocketAddr::V4(configuration.server),
        host: configuration.host,
        authorization: configuration.authorization,
    };
    let mut watches = WATCH_BUFFERS.take().iter_mut().zip(WATCH_CONNECTIONS.iter()).zip(1..).map(
        |((buffers, place), n)| {
            // Different seeds: what has failed together must not come back all at once.
            let seed = seed ^ n;
            let watches = network.watches;
            place.init(Connection::new(watches, server, Patience::WATCHES, buffers, seed))
        },
    );
    for (kind, connection) in Kind::ALL.iter().copied().zip(&mut watches) {
        spawn(spawner, watch(runtime, kind, connection));
    }
    let body_buffers = BODY_BUFFERS
        .init(BodyBuffers::new(BODY_BUFFER.init([BodyBuffer::new(MEMORY_OF_BODY_BUFFER.take())])));
    let (buffers, jitter) = (SOURCE_BUFFER.take(), seed ^ (WATCHES as u32 + 1));
    let sources = Connection::new(network.requests, server, Patience::REQUESTS, buffers, jitter);
    spawn(spawner, make_bodies(runtime, SOURCES.init(sources), body_buffers));
    // The first lane tells what happened, before anything else.
    let places = REQUEST_BUFFERS.take().iter_mut().zip(&REQUEST_LANES);
    for ((buffers, place), n) in places.zip(WATCHES as u32 + 2..) {
        let patience = Patience::REQUESTS;
        let requests = Connection::new(network.requests, server, patience, buffers, seed ^ n);
        let lane = place.init(Lane { requests, buffers: body_buffers, page: &mut [] });
        spawn(spawner, serve(runtime, lane, configuration, crash.take()));
    }
}

pub(crate) fn spawn<S>(spawner: Spawner, task: Result<SpawnToken<S>, SpawnError>) {
    match task {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("a task was started more often than it has room"),
    }
}

// Tasks borrow what they work with: a future would hold an argument twice, as it was handed over
// and as it is used.

#[embassy_executor::task(pool_size = WATCHES)]
async fn watch(
    runtime: &'static Runtime<'static>,
    kind: Kind,
    connection: &'static mut WatchConnection,
) {
    match runtime.watch(kind, connection).await {}
}

#[embassy_executor::task]
async fn make_bodies(
    runtime: &'static Runtime<'static>,
    sources: &'static mut RequestConnection,
    body_buffers: &'static BodyBuffers<'static>,
) {
    match runtime.make_bodies(sources, body_buffers).await {}
}

#[embassy_executor::task(pool_size = LANES)]
async fn serve(
    runtime: &'static Runtime<'static>,
    lane: &'static mut RequestLane,
    configuration: &'static Configuration<'static>,
    crash: Option<&'static Crash>,
) {
    if let Some(crash) = crash {
        report::send(crash, configuration, runtime, &mut lane.requests).await;
    }
    #[cfg(feature = "trouble")]
    match crate::trouble::unless_stalled(core::pin::pin!(runtime.serve(lane))).await {}
    #[cfg(not(feature = "trouble"))]
    match runtime.serve(lane).await {}
}

fn settings(configuration: &'static Configuration<'static>) -> Settings {
    let gates = configuration.feature_gates;
    Settings {
        namespaces: configuration.namespace.as_slice(),
        rate: configuration.rate.map(|rate| Rate { qps: rate.qps, burst: rate.burst }),
        terminating_replicas: gates.terminating_replicas,
        max_unavailable_stateful_set: gates.max_unavailable_stateful_set,
        status_lag: Duration::from_millis(u64::from(configuration.status_lag)),
        ..Settings::DEFAULT
    }
}
