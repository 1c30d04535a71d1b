//! The workload controllers on a PC: the same core and the same driver as on a microcontroller.
//!
//! They are a client of the API like any other. [`start`] runs them on a thread of their own, over
//! real HTTP connections to the server that an [`Endpoint`] names.

mod capacity;
mod endpoint;
mod health;
mod kubeconfig;
mod network;
mod observer;
mod preflight;
mod trouble;

use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use anyhow::{Context, Result};
use picokube_core::kind::Kind;
use picokube_core::manager::{Manager, Settings, Workspace};
use picokube_core::resources::Parts;
use picokube_driver::runtime::{BodyBuffer, BodyBuffers, Lane, Runtime};
use picokube_driver::{Buffer, Connection, Patience, Server};

pub use capacity::Capacity;
pub use endpoint::{Credentials, Endpoint};
pub use health::{Controllers, Health};
pub use kubeconfig::Material;

use crate::random::Random;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use network::{Network, Traffic};
use observer::ConnectionObserver;
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
/// One looks whether the controllers have started.
const _: () = assert!(Kind::COUNT + LANES < picokube_driver::WAITING);
/// Keys of each controller that are processed at once, as in kube-controller-manager.
const WORKERS: usize = 5;
/// Events that wait to be written, and that are remembered to be counted.
const EVENTS: usize = 1024;
/// A connection's memory. The head of any response of a Kubernetes API server fits.
type ConnectionBuffer = Buffer<16_384>;
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
    let questions = Questions { metrics: metrics_wanted, health: health_wanted };
    thread::Builder::new()
        .name("controllers".to_owned())
        .spawn(move || runtime.block_on(run(&endpoint, settings, parts, questions)))
        .context("cannot start a thread for the controllers")?;
    Ok(Controllers { metrics, health })
}

/// What others want to know of the controllers.
struct Questions {
    metrics: mpsc::Receiver<oneshot::Sender<String>>,
    health: mpsc::Receiver<oneshot::Sender<Health>>,
}

async fn run(endpoint: &Endpoint, settings: Settings, parts: Parts<'static>, questions: Questions) {
    let traffic = Arc::new(Traffic::default());
    let network = Network::new(endpoint, Arc::clone(&traffic));
    let observer = ConnectionObserver::new(endpoint);
    let server = Server {
        address: endpoint.address,
        host: &endpoint.host,
        authorization: endpoint.authorization.as_deref(),
    };
    let mut random = Random::from_entropy();
    let seed = random.next_u64() as u32;
    let mut workspace = Box::new(Workspace::<LANES, WORKERS, EVENTS>::new());
    let manager = Manager::new(parts, workspace.parts(), settings, random.next_u64());
    let runtime = &Runtime::new(manager);
    let mut memory: Vec<ConnectionBuffer> =
        (0..Kind::COUNT + 2 * LANES).map(|_| Buffer::new()).collect();
    let mut memory_of_body_buffers = vec![vec![0; BODY_BUFFER]; LANES];
    let body_buffers: Vec<BodyBuffer<'_>> =
        memory_of_body_buffers.iter_mut().map(|bytes| BodyBuffer::new(bytes)).collect();
    let body_buffers = BodyBuffers::new(&body_buffers);
    let mut pages = vec![[0; PAGE]; LANES];
    let mut pages = pages.iter_mut();
    let mut connections = memory.iter_mut().zip(1u32..).map(|(buffers, n)| {
        let patience =
            if n as usize <= Kind::COUNT { Patience::WATCHES } else { Patience::REQUESTS };
        Connection::new(&network, server, patience, buffers, seed ^ n).observed_by(&observer)
    });

    // Each is polled only when it is woken itself: all of them share timers that cost something.
    let mut tasks: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + '_>>> =
        FuturesUnordered::new();
    for (kind, mut connection) in Kind::ALL.iter().zip(&mut connections) {
        tasks.push(Box::pin(async move { match runtime.watch(*kind, &mut connection).await {} }));
    }
    while let (Some(requests), Some(mut sources)) = (connections.next(), connections.next()) {
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
    tasks.push(Box::pin(answer(questions, runtime, settings, &traffic, &observer)));
    // None of them ever ends.
    while tasks.next().await.is_some() {}
}

/// Answers questions as long as somebody may ask.
async fn answer(
    mut questions: Questions,
    runtime: &Runtime<'_>,
    settings: Settings,
    traffic: &Traffic,
    observer: &ConnectionObserver,
) {
    loop {
        // Who has asked may have gone.
        let _ = tokio::select! {
            Some(asked) = questions.metrics.recv() => {
                asked.send(metrics(runtime, traffic, observer)).map_err(|_| ())
            }
            Some(asked) = questions.health.recv() => {
                asked.send(runtime.inspect(|manager| health(manager, settings))).map_err(|_| ())
            }
            else => return,
        };
    }
}

fn metrics(runtime: &Runtime<'_>, traffic: &Traffic, observer: &ConnectionObserver) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = runtime.inspect(|manager| manager.write_metrics(&mut text));
    observer.write_metrics(&mut text);
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

fn health(manager: &Manager<'_>, settings: Settings) -> Health {
    let cache = manager.cache();
    let sets = cache.replica_sets.iter();
    let deployments = cache.deployments.iter();
    Health {
        settings,
        started: manager.has_started(),
        blind_replica_sets: sets
            .filter(|(slot, _)| cache.is_blind(Kind::ReplicaSet, *slot))
            .count(),
        blind_deployments: deployments
            .filter(|(slot, _)| cache.is_blind(Kind::Deployment, *slot))
            .count(),
    }
}
