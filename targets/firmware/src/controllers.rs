//! The controllers: their memory, their connections and their tasks.

use core::net::SocketAddr;

use embassy_executor::{SpawnError, SpawnToken, Spawner};
use picokube_config::Configuration;
use picokube_core::manager::{Manager, Rate, Settings};
use picokube_core::store::Kind;
use picokube_core::time::Duration;
use picokube_driver::runtime::{Lane, Runtime, Tank, Tanks};
use picokube_driver::{Buffers, Connection, Patience, Server};
use static_cell::{ConstStaticCell, StaticCell};

use crate::crash::Crash;
use crate::network::Network;
use crate::profile::{LANES, PROFILE, Stores, Workspace};
use crate::report;

/// Every kind that is watched.
const KINDS: [Kind; 3] = [Kind::Deployment, Kind::ReplicaSet, Kind::Pod];
/// Connections at a time. A lane has one for requests and one for the sources of their bodies.
pub(crate) const CONNECTIONS: usize = KINDS.len() + 2 * LANES;
/// A connection's memory: the head of a response has to fit the first.
type ConnectionBuffers = Buffers<1536, 512>;

/// Starts the controllers.
pub(crate) fn start(
    spawner: Spawner,
    network: &'static Network,
    configuration: &'static Configuration<'static>,
    seed: u64,
    crash: Option<Crash>,
) -> &'static Runtime<'static> {
    let seed = seed as u32;
    let runtime = runtime(configuration, seed);
    start_tasks(spawner, network, configuration, seed, runtime, crash);
    runtime
}

/// The manager in its static memory.
///
/// Neither this nor what follows is inlined: what they build on the way to static memory must not
/// stay on the stack of the task that calls them.
#[inline(never)]
fn runtime(configuration: &'static Configuration<'static>, seed: u32) -> &'static Runtime<'static> {
    static STORES: ConstStaticCell<Stores> = ConstStaticCell::new(Stores::new());
    static WORKSPACE: ConstStaticCell<Workspace> = ConstStaticCell::new(Workspace::new());
    static RUNTIME: StaticCell<Runtime<'static>> = StaticCell::new();
    let (parts, desk) = (STORES.take().parts(), WORKSPACE.take().desk());
    RUNTIME.init(Runtime::new(Manager::new(parts, desk, settings(configuration)), seed))
}

#[inline(never)]
fn start_tasks(
    spawner: Spawner,
    network: &'static Network,
    configuration: &'static Configuration<'static>,
    seed: u32,
    runtime: &'static Runtime<'static>,
    mut crash: Option<Crash>,
) {
    static BUFFERS: ConstStaticCell<[ConnectionBuffers; CONNECTIONS]> =
        ConstStaticCell::new([const { Buffers::new() }; CONNECTIONS]);
    static MEMORY_OF_TANKS: ConstStaticCell<[[u8; PROFILE.tank]; LANES]> =
        ConstStaticCell::new([[0; PROFILE.tank]; LANES]);
    static TANKS: StaticCell<[Tank<'static>; LANES]> = StaticCell::new();
    static TANKS_OF_ALL: StaticCell<Tanks<'static>> = StaticCell::new();
    let server = Server {
        address: SocketAddr::V4(configuration.server),
        host: configuration.host,
        authorization: configuration.authorization,
    };
    let mut connections = BUFFERS.take().iter_mut().zip(1..).map(|(buffers, n)| {
        let patience = if n <= KINDS.len() { Patience::WATCHES } else { Patience::REQUESTS };
        // Different seeds: what has failed together must not come back all at once.
        Connection::new(network, server, patience, buffers, seed ^ n as u32)
    });
    for (kind, connection) in KINDS.into_iter().zip(&mut connections) {
        spawn(spawner, watch(runtime, kind, connection));
    }
    let tanks = TANKS.init(MEMORY_OF_TANKS.take().each_mut().map(|bytes| Tank::new(bytes)));
    let tanks = TANKS_OF_ALL.init(Tanks::new(tanks));
    while let (Some(requests), Some(sources)) = (connections.next(), connections.next()) {
        // The first lane tells what happened, before anything else.
        let lane = Lane { requests, sources, tanks, page: &mut [] };
        spawn(spawner, serve(runtime, lane, configuration, crash.take()));
    }
}

pub(crate) fn spawn<S>(spawner: Spawner, task: Result<SpawnToken<S>, SpawnError>) {
    match task {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("a task was started more often than it has room"),
    }
}

#[embassy_executor::task(pool_size = KINDS.len())]
async fn watch(
    runtime: &'static Runtime<'static>,
    kind: Kind,
    mut connection: Connection<'static, Network>,
) {
    match runtime.watch(kind, &mut connection).await {}
}

#[embassy_executor::task(pool_size = LANES)]
async fn serve(
    runtime: &'static Runtime<'static>,
    mut lane: Lane<'static, Network>,
    configuration: &'static Configuration<'static>,
    crash: Option<Crash>,
) {
    if let Some(crash) = &crash {
        report::send(crash, configuration, runtime, &mut lane.requests).await;
    }
    #[cfg(feature = "trouble")]
    match crate::trouble::unless_stalled(core::pin::pin!(runtime.serve(&mut lane))).await {}
    #[cfg(not(feature = "trouble"))]
    match runtime.serve(&mut lane).await {}
}

fn settings(configuration: &'static Configuration<'static>) -> Settings {
    Settings {
        namespaces: configuration.namespace.as_slice(),
        rate: configuration.rate.map(|rate| Rate { qps: rate.qps, burst: rate.burst }),
        terminating_replicas: configuration.terminating_replicas,
        status_lag: Duration::from_millis(u64::from(configuration.status_lag)),
        ..Settings::DEFAULT
    }
}
