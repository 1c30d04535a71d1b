//! The workload controllers on a PC: the same core and the same driver as on a microcontroller.
//!
//! They are a client of the API like any other. [`start`] runs them on a thread of their own, over
//! real HTTP connections to the server that an [`Endpoint`] names.

mod capacity;
mod endpoint;
mod health;
mod leading;
mod network;
mod observer;
mod preflight;
mod secure;
mod trouble;

use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use anyhow::{Context, Result};
use picokube_core::kind::Kind;
use picokube_core::manager::{Manager, Settings, Workspace};
use picokube_core::metrics::Exposition;
use picokube_core::resources::Parts;
use picokube_driver::runtime::{BodyBuffer, BodyBuffers, Lane, Runtime};
use picokube_driver::{Client, Connection, Memory, Patience, Session, SessionCounts};

pub use capacity::Capacity;
pub use endpoint::{Credentials, Endpoint};
pub use health::{Controllers, Health};
pub use picokube_kubeconfig::Material;

use crate::random::Random;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use network::{Network, Traffic};
use observer::ConnectionObserver;
use secure::SecureNetwork;
use tokio::sync::{mpsc, oneshot};

/// What the controllers are started with.
#[derive(Debug)]
pub struct Options {
    /// The API server.
    pub endpoint: Endpoint,
    /// How many objects they can hold.
    pub capacity: Capacity,
    /// What they do, and how fast.
    pub settings: Settings,
}

/// Requests that may be under way at once.
const LANES: usize = 4;
/// Two look on: whether the controllers have started, and who leads.
const _: () = assert!(Kind::COUNT + LANES + 2 <= picokube_driver::WAITING);
/// Keys of each controller that are processed at once, as in kube-controller-manager.
const WORKERS: usize = 5;
/// Events that wait to be written, and that are remembered to be counted.
const EVENTS: usize = 1024;
/// A client's memory. Over HTTP/1.1, the head of any response of a Kubernetes API server fits; over HTTP/2,
/// it is what is in hand of a response.
const CLIENT_BUFFER: usize = 16 * 1024;
/// The window of a stream over HTTP/2. The server is told that there is room again when half of one has been
/// read: a watch goes on for long, and most answers are smaller.
const WATCH_WINDOW: usize = 128 * 1024;
const REQUEST_WINDOW: usize = 32 * 1024;
/// What is sent at once over HTTP/2: the head of a request has to fit.
const OUT: usize = 32 * 1024;
/// All clients have room in a session.
const _: () = assert!(Kind::COUNT + 2 * LANES <= picokube_driver::STREAMS);
/// Bodies up to this size are kept for the next pod of the same ReplicaSet.
const BODY_BUFFER: usize = 32 * 1024;

/// Events and statuses up to this size are written in one go.
const PAGE: usize = 2 * 1024;

/// Starts the controllers. They run until the process ends.
///
/// Each [`Capacity`] exists once in a process: its memory is static, as on a microcontroller.
pub fn start(options: Options) -> Result<Controllers> {
    let Options { endpoint, capacity, settings } = options;
    let parts = capacity.take().context("controllers of this capacity run already")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (metrics, metrics_wanted) = mpsc::channel(1);
    let (health, health_wanted) = mpsc::channel(1);
    let (release, release_wanted) = mpsc::channel(1);
    let questions = Questions { metrics: metrics_wanted, health: health_wanted };
    thread::Builder::new()
        .name("controllers".to_owned())
        .spawn(move || {
            runtime.block_on(run(&endpoint, settings, parts, questions, release_wanted));
        })
        .context("cannot start a thread for the controllers")?;
    Ok(Controllers { metrics, health, release })
}

/// What others want to know of the controllers.
struct Questions {
    metrics: mpsc::Receiver<oneshot::Sender<String>>,
    health: mpsc::Receiver<oneshot::Sender<Health>>,
}

async fn run(
    endpoint: &Endpoint,
    settings: Settings,
    parts: Parts<'static>,
    questions: Questions,
    release_wanted: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let traffic = Arc::new(Traffic::default());
    let network = Network::new(endpoint, Arc::clone(&traffic));
    let observer = ConnectionObserver::new(endpoint);
    let server = endpoint.server();
    let mut random = Random::from_entropy();
    let seed = random.next_u64() as u32;
    let mut workspace = Box::new(Workspace::<LANES, WORKERS, EVENTS>::new());
    let manager = Manager::new(parts, workspace.parts(), settings, random.next_u64());
    let runtime = &Runtime::new(manager);
    let mut memory = vec![vec![0; CLIENT_BUFFER]; Kind::COUNT + 2 * LANES];
    // The system gives pages of them when they are used first.
    let mut rings: Vec<Vec<u8>> = match endpoint.tls {
        None => Vec::new(),
        Some(_) => (0..memory.len()).map(|n| vec![0; window(n)]).collect(),
    };
    let mut rings = rings.iter_mut();
    let mut memory_of_body_buffers = vec![vec![0; BODY_BUFFER]; LANES];
    let body_buffers: Vec<BodyBuffer<'_>> =
        memory_of_body_buffers.iter_mut().map(|bytes| BodyBuffer::new(bytes)).collect();
    let body_buffers = BodyBuffers::new(&body_buffers);
    let mut pages = vec![[0; PAGE]; LANES];
    let mut pages = pages.iter_mut();
    let (mut memory_of_session, mut out) = (Box::new(Memory::new()), vec![0; OUT]);
    let session = &Session::new(server, &mut memory_of_session, &mut out, seed);
    let mut clients = memory.iter_mut().zip(1u32..).map(|(buffer, n)| {
        let patience =
            if n as usize <= Kind::COUNT { Patience::WATCHES } else { Patience::REQUESTS };
        let seed = seed ^ n;
        let Some(ring) = rings.next() else {
            let connection = Connection::new(&network, server, patience, buffer, seed);
            return Client::Connection(connection.observed_by(&observer));
        };
        let stream = session.stream(ring, patience, seed).expect("as many as there is room for");
        Client::Stream(stream.with_hand(buffer).observed_by(&observer))
    });

    let one_for_all = endpoint.tls.is_some().then_some(session);
    let told = Told { traffic: &traffic, observer: &observer, session: one_for_all };

    // Each is polled only when it is woken itself: all of them share timers that cost something.
    let mut tasks: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + '_>>> =
        FuturesUnordered::new();
    if endpoint.tls.is_some() {
        let mut secure = SecureNetwork { network: &network, address: endpoint.address };
        tasks.push(Box::pin(async move { match session.run(&mut secure).await {} }));
    }
    for (kind, mut client) in Kind::ALL.iter().zip(&mut clients) {
        tasks.push(Box::pin(async move { match runtime.watch(*kind, &mut client).await {} }));
    }
    while let (Some(requests), Some(mut sources)) = (clients.next(), clients.next()) {
        let page = pages.next().map_or(&mut [][..], |page| page);
        let body_buffers = &body_buffers;
        let mut lane = Lane { requests, buffers: body_buffers, page };
        tasks.push(Box::pin(async move { match runtime.serve(&mut lane).await {} }));
        tasks.push(Box::pin(async move {
            match runtime.make_bodies(&mut sources, body_buffers).await {}
        }));
    }
    if let Some(file) = &endpoint.token_file {
        tasks.push(Box::pin(observer.follow(file)));
    }
    tasks.push(Box::pin(leading::tell_who_leads(runtime)));
    tasks.push(Box::pin(leading::release(runtime, release_wanted)));
    tasks.push(Box::pin(answer(questions, runtime, settings, &told)));
    // Those that matter never end.
    while tasks.next().await.is_some() {}
}

/// How large the window of a client's stream is; watches come first.
fn window(number: usize) -> usize {
    if number < Kind::COUNT { WATCH_WINDOW } else { REQUEST_WINDOW }
}

/// Answers questions as long as somebody may ask.
async fn answer(
    mut questions: Questions,
    runtime: &Runtime<'_>,
    settings: Settings,
    told: &Told<'_>,
) {
    loop {
        // Who has asked may have gone.
        let _ = tokio::select! {
            Some(asked) = questions.metrics.recv() => {
                asked.send(metrics(runtime, told)).map_err(|_| ())
            }
            Some(asked) = questions.health.recv() => {
                asked.send(health(runtime, settings)).map_err(|_| ())
            }
            else => return,
        };
    }
}

/// Who counts what goes over the network.
struct Told<'a> {
    traffic: &'a Traffic,
    observer: &'a ConnectionObserver,
    /// The connection that all clients share, if they do.
    session: Option<&'a Session<'a>>,
}

fn metrics(runtime: &Runtime<'_>, told: &Told<'_>) -> String {
    let Told { traffic, observer, session } = told;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = runtime.inspect(|manager| manager.write_metrics(&mut text));
    observer.write_metrics(&mut text);
    if let Some(session) = session {
        let _ = write_session(session, &mut Exposition::new(&mut text));
    }
    for (name, help, value) in [
        ("picokube_connections_opened_total", "Connections to the server.", &traffic.connections),
        ("picokube_network_sent_bytes_total", "Bytes sent to the server.", &traffic.sent),
        ("picokube_network_received_bytes_total", "Bytes from the server.", &traffic.received),
    ] {
        let value = value.load(Ordering::Relaxed);
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
    }
    text
}

/// What is counted of the one connection over TLS, as a device tells it.
fn write_session(session: &Session<'_>, page: &mut Exposition<'_>) -> std::fmt::Result {
    let SessionCounts { connections, resumed, failures, cancelled, .. } = session.counts();
    for (name, help, value) in [
        ("picokube_tls_connections_total", "Servers that proved themselves.", connections),
        ("picokube_tls_resumptions_total", "Those that did by a ticket.", resumed),
        ("picokube_tls_failures_total", "Connections that did not come about.", failures),
        ("picokube_http2_cancelled_total", "Streams that were given up.", cancelled),
    ] {
        page.single(name, "counter", help, value.into())?;
    }
    let open = session.open_streams() as u64;
    page.single("picokube_http2_streams", "gauge", "Open streams.", open)
}

fn health(runtime: &Runtime<'_>, settings: Settings) -> Health {
    let is_leader_healthy = runtime.is_leader_healthy();
    runtime.inspect(|manager| Health { is_leader_healthy, ..health_of(manager, settings) })
}

fn health_of(manager: &Manager<'_>, settings: Settings) -> Health {
    let cache = manager.cache();
    let sets = cache.replica_sets.iter();
    let deployments = cache.deployments.iter();
    Health {
        settings,
        is_leader_healthy: true,
        started: manager.has_started(),
        blind_replica_sets: sets
            .filter(|(slot, _)| cache.is_blind(Kind::ReplicaSet, *slot))
            .count(),
        blind_deployments: deployments
            .filter(|(slot, _)| cache.is_blind(Kind::Deployment, *slot))
            .count(),
    }
}
