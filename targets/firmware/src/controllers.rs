//! The controllers: their memory and their tasks.

use embassy_executor::{SpawnError, SpawnToken, Spawner};
use picokube_config::Configuration;
use picokube_core::kind::Kind;
use picokube_core::manager::{Manager, Rate, Settings};
use picokube_core::time::Duration;
use picokube_driver::runtime::{BodyBuffer, BodyBuffers, Lane, Runtime};
use static_cell::{ConstStaticCell, StaticCell};

use crate::Entropy;
use crate::crash::Crash;
use crate::election;
use crate::profile::{LANES, PROFILE, Stores, WATCHES, Workspace};
use crate::report;
use crate::transport::{RequestClient, RequestSockets, Transport, WatchClient};

/// Clients for requests: one a lane, and one for the sources of bodies.
pub(crate) const REQUEST_CLIENTS: usize = LANES + 1;
/// A lane of the firmware's.
type RequestLane = Lane<'static, RequestSockets>;

/// Starts the controllers.
pub(crate) fn start(
    spawner: Spawner,
    mut transport: Transport,
    configuration: &'static Configuration<'static>,
    seed: u64,
    entropy: Entropy,
    crash: Option<&'static Crash>,
) -> &'static Runtime<'static> {
    let runtime = runtime(configuration, seed, entropy);
    start_tasks(spawner, &mut transport, configuration, runtime, crash);
    runtime
}

/// The manager in its static memory.
///
/// Neither this nor what follows is inlined: what they build on the way to static memory must not
/// stay on the stack of the task that calls them.
#[inline(never)]
fn runtime(
    configuration: &'static Configuration<'static>,
    seed: u64,
    entropy: Entropy,
) -> &'static Runtime<'static> {
    static STORES: ConstStaticCell<Stores> = ConstStaticCell::new(Stores::new());
    static WORKSPACE: ConstStaticCell<Workspace> = ConstStaticCell::new(Workspace::new());
    static RUNTIME: StaticCell<Runtime<'static>> = StaticCell::new();
    let (parts, desk) = (STORES.take().parts(), WORKSPACE.take().parts());
    let leader_election = election::settings(configuration, entropy);
    let settings = Settings { leader_election, ..settings(configuration) };
    RUNTIME.init(Runtime::new(Manager::new(parts, desk, settings, seed)))
}

#[inline(never)]
fn start_tasks(
    spawner: Spawner,
    transport: &mut Transport,
    configuration: &'static Configuration<'static>,
    runtime: &'static Runtime<'static>,
    mut crash: Option<&'static Crash>,
) {
    static WATCH_CLIENTS: [StaticCell<WatchClient>; WATCHES] =
        [const { StaticCell::new() }; WATCHES];
    static REQUEST_LANES: [StaticCell<RequestLane>; LANES] = [const { StaticCell::new() }; LANES];
    static SOURCES: StaticCell<RequestClient> = StaticCell::new();
    static MEMORY_OF_BODY_BUFFER: ConstStaticCell<[u8; PROFILE.body_buffer]> =
        ConstStaticCell::new([0; PROFILE.body_buffer]);
    static BODY_BUFFER: StaticCell<[BodyBuffer<'static>; 1]> = StaticCell::new();
    static BODY_BUFFERS: StaticCell<BodyBuffers<'static>> = StaticCell::new();
    for (kind, place) in Kind::ALL.iter().copied().zip(&WATCH_CLIENTS) {
        spawn(spawner, watch(runtime, kind, place.init(transport.watch())));
    }
    let body_buffers = BODY_BUFFERS
        .init(BodyBuffers::new(BODY_BUFFER.init([BodyBuffer::new(MEMORY_OF_BODY_BUFFER.take())])));
    spawn(spawner, make_bodies(runtime, SOURCES.init(transport.sources()), body_buffers));
    // The first lane tells what happened, before anything else.
    for place in &REQUEST_LANES {
        let requests = transport.lane();
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
async fn watch(runtime: &'static Runtime<'static>, kind: Kind, client: &'static mut WatchClient) {
    match runtime.watch(kind, client).await {}
}

#[embassy_executor::task]
async fn make_bodies(
    runtime: &'static Runtime<'static>,
    sources: &'static mut RequestClient,
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
