//! A running server: shared between connections, kept on disk, stepping on its own.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::disk::Disk;
use crate::nodes::Nodes;
use crate::random::Random;
use crate::server::call::Call;
use crate::server::request::Request;
use crate::server::response::Response;
use crate::server::{Published, Server};
use crate::store::HistoryLimits;
use crate::time::Timestamp;

use super::metrics::{Metrics, Subject};

/// How long Kubernetes waits for a version that does not exist yet.
const FRESHNESS: Duration = Duration::from_secs(3);

/// How long the garbage collector takes to hear that an owner has gone.
const COLLECTOR_MILLIS: i64 = 20;

/// The server behind its lock, and the revision that may be told to the outside.
#[derive(Debug)]
pub struct SharedServer {
    server: RwLock<Server>,
    /// Everything up to this revision is durable; watches wait for it to move.
    durable: watch::Sender<u64>,
    /// There are changes for the disk.
    unsaved: std::sync::Condvar,
    unsaved_flag: std::sync::Mutex<Saving>,
    /// There may be work for `Server::step`.
    work: Notify,
    on_disk: bool,
    /// Counters for /metrics.
    pub(super) metrics: Metrics,
    /// Who else has metrics to show there.
    more_metrics: OnceLock<MetricsSource>,
}

/// Where to ask for metrics in Prometheus' text format.
pub type MetricsSource = mpsc::Sender<oneshot::Sender<String>>;

#[derive(Debug, Default)]
struct Saving {
    wanted: bool,
    stopped: bool,
}

/// A cluster that runs until it is dropped or stopped.
#[derive(Clone, Debug)]
pub struct Cluster {
    shared: Arc<SharedServer>,
}

impl Cluster {
    /// Starts a cluster in memory, or from what `disk` has kept.
    /// Must be called within a tokio runtime.
    pub fn start(limits: HistoryLimits, disk: Option<Disk>) -> anyhow::Result<Self> {
        let mut server = Server::new(seed(), limits);
        let now = Timestamp::of_system_clock();
        if let Some(disk) = &disk {
            disk.load(&mut server)?;
            server.resume(now);
            server.store_mut().follow_with_journal();
        }
        server.bootstrap(now);
        server.delay_garbage_collection(COLLECTOR_MILLIS);
        let (durable, _) = watch::channel(server.store().durable());
        let shared = Arc::new(SharedServer {
            on_disk: disk.is_some(),
            server: RwLock::new(server),
            durable,
            unsaved: std::sync::Condvar::new(),
            unsaved_flag: std::sync::Mutex::default(),
            work: Notify::new(),
            metrics: Metrics::default(),
            more_metrics: OnceLock::new(),
        });
        if let Some(disk) = disk {
            let saver = shared.clone();
            saver.unsaved_flag.lock().unwrap_or_else(PoisonError::into_inner).wanted = true;
            std::thread::Builder::new()
                .name("journal".into())
                .spawn(move || saver.keep_saving(disk))?;
        }
        tokio::spawn(keep_stepping(shared.clone()));
        shared.work.notify_one();
        Ok(Self { shared })
    }

    /// The server behind its lock.
    pub fn shared(&self) -> &Arc<SharedServer> {
        &self.shared
    }

    /// Tells the cluster's pods at which port its API server is, and how to know it.
    pub fn publish(&self, port: u16, authority_pem: Option<&str>) {
        let published = Published::new(port, authority_pem);
        self.shared.write(|server, now| server.publish(now, published));
    }

    /// Starts simulated nodes. Must be called within a tokio runtime.
    pub fn start_nodes(&self, count: usize) {
        let nodes = Nodes::new(&self.shared.read(), count);
        tokio::spawn(keep_nodes(self.shared.clone(), nodes));
    }

    /// Waits until everything that was written is durable, then stops writing.
    pub async fn stop(&self) {
        let revision = self.shared.read().store().revision();
        self.shared.wait_durable(revision).await;
        self.shared.unsaved_flag.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.shared.unsaved.notify_all();
    }
}

impl SharedServer {
    /// Looks at the server. A panic of another request does not make its data unreadable: every
    /// write replaces whole objects.
    pub fn read(&self) -> RwLockReadGuard<'_, Server> {
        self.server.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the server and lets everybody know who has to.
    pub fn write<T>(&self, change: impl FnOnce(&mut Server, Timestamp) -> T) -> T {
        let mut server: RwLockWriteGuard<'_, Server> =
            self.server.write().unwrap_or_else(PoisonError::into_inner);
        let (before, due_before) = (server.store().revision(), server.step_at());
        let result = change(&mut server, Timestamp::of_system_clock());
        let (after, due) = (server.store().revision(), server.step_at());
        let is_earlier = due.is_some_and(|due| due_before.is_none_or(|before| due < before));
        let work = server.has_work() || is_earlier;
        drop(server);
        if work {
            self.work.notify_one();
        }
        if after != before {
            self.changed(after);
        }
        result
    }

    /// Answers a request; the answer may be sent at once.
    pub async fn answer(&self, request: Request) -> Response {
        self.answer_noting(request, |_| {}).await
    }

    /// The same, and lets somebody take note of what the request turned out to be.
    pub(super) async fn answer_noting(
        &self,
        request: Request,
        note: impl FnOnce(&Call),
    ) -> Response {
        let call = match Call::prepare(&request) {
            Ok(call) => call,
            Err(status) => return status.into(),
        };
        drop(request);
        note(&call);
        let response = if call.is_read() {
            self.wait_until_fresh(&call).await;
            let now = Timestamp::of_system_clock();
            self.read().read(now, call)
        } else {
            self.write(|server, now| server.execute(now, call))
        };
        self.wait_durable(response.revision).await;
        response
    }

    /// Returns when everything up to `revision` is durable.
    pub async fn wait_durable(&self, revision: u64) {
        if !self.on_disk || *self.durable.borrow() >= revision {
            return;
        }
        let mut durable = self.durable.subscribe();
        // The sender lives as long as `self`.
        let _ = durable.wait_for(|durable| *durable >= revision).await;
    }

    /// From now on /metrics shows what `source` has to say, too. Only the first source counts.
    pub fn also_show_metrics_of(&self, source: MetricsSource) {
        let _ = self.more_metrics.set(source);
    }

    /// What the other source of metrics says; nothing if it does not answer.
    pub(super) async fn more_metrics(&self) -> String {
        let Some(source) = self.more_metrics.get() else { return String::new() };
        let (sender, receiver) = oneshot::channel();
        match source.send(sender).await {
            Ok(()) => receiver.await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// How often each request that came over a connection was answered with each HTTP status.
    pub fn request_counts(&self) -> BTreeMap<(Subject, u16), u64> {
        self.metrics.requests()
    }

    /// A read at a version of the future waits a moment for that version to come about.
    async fn wait_until_fresh(&self, call: &Call) {
        let Some(wanted) = call.options.resource_version else { return };
        let mut durable = self.durable.subscribe();
        // Who has waited in vain is told so by the read itself.
        let _ = tokio::time::timeout(FRESHNESS, durable.wait_for(|newest| *newest >= wanted)).await;
    }

    /// How many watches are open.
    pub fn open_watches(&self) -> usize {
        usize::try_from(self.metrics.watches.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Tells when more has become durable.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.durable.subscribe()
    }

    fn changed(&self, revision: u64) {
        if self.on_disk {
            self.unsaved_flag.lock().unwrap_or_else(PoisonError::into_inner).wanted = true;
            self.unsaved.notify_one();
        } else {
            self.tell(revision);
        }
    }

    fn tell(&self, revision: u64) {
        self.durable.send_if_modified(|durable| {
            let newer = revision > *durable;
            *durable = revision.max(*durable);
            newer
        });
    }

    /// Group commit: while one transaction is being written, the next one gathers.
    fn keep_saving(&self, mut disk: Disk) {
        loop {
            let mut saving = self.unsaved_flag.lock().unwrap_or_else(PoisonError::into_inner);
            while !saving.wanted && !saving.stopped {
                saving = self.unsaved.wait(saving).unwrap_or_else(PoisonError::into_inner);
            }
            if saving.stopped && !saving.wanted {
                return;
            }
            saving.wanted = false;
            drop(saving);
            let (changes, revision, compacted) = {
                let mut server = self.server.write().unwrap_or_else(PoisonError::into_inner);
                let changes = server.store_mut().take_unsaved();
                let kinds = server.stored_kinds().len();
                let store = server.store();
                let compacted: Vec<u64> = (0..kinds)
                    .map(|id| store.resource(crate::store::ResourceId(id as u16)).compacted())
                    .collect();
                (changes, store.revision(), compacted)
            };
            if let Err(error) = disk.save(&changes, revision, &compacted) {
                // What was not kept must not be acknowledged, and later writes depend on it.
                eprintln!("picokube: cannot write to the data directory: {error}; stopping");
                std::process::exit(1);
            }
            let mut server = self.server.write().unwrap_or_else(PoisonError::into_inner);
            server.store_mut().saved(revision);
            drop(server);
            self.tell(revision);
        }
    }
}

/// Runs the cluster's own work in small bites, so that requests get their turn.
async fn keep_stepping(shared: Arc<SharedServer>) {
    const STEPS_PER_TURN: usize = 64;
    loop {
        let (idle, next) = shared.write(|server, now| {
            let idle = (0..STEPS_PER_TURN).any(|_| !server.step(now));
            (idle, server.step_at())
        });
        if !idle {
            tokio::task::yield_now().await;
            continue;
        }
        let pause = next.map_or(3_600_000, |at| {
            at.millis_since(Timestamp::of_system_clock()).clamp(1, 3_600_000)
        });
        let pause = Duration::from_millis(pause as u64);
        // Either more was written or something expires.
        let _ = tokio::time::timeout(pause, shared.work.notified()).await;
    }
}

/// Lets the simulated nodes do their work, a little at a time.
async fn keep_nodes(shared: Arc<SharedServer>, mut nodes: Nodes) {
    let mut news = shared.subscribe();
    loop {
        news.mark_unchanged();
        if shared.write(|server, now| nodes.poll(now, server)) {
            tokio::task::yield_now().await;
            continue;
        }
        let pause = nodes.poll_at().map_or(3_600_000, |at| {
            at.millis_since(Timestamp::of_system_clock()).clamp(1, 3_600_000)
        });
        // Either something was written or something is due.
        let pause = Duration::from_millis(pause as u64);
        let _ = tokio::time::timeout(pause, news.changed()).await;
    }
}

/// Names and uids have to differ between starts; they are no secrets.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_i64(Timestamp::of_system_clock().unix_millis());
    Random::from_seed(hasher.finish()).next_u64()
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

    fn cluster() -> Cluster {
        Cluster::start(HistoryLimits::default(), None).expect("a cluster in memory")
    }

    /// Asks for something at the version that comes after `ahead` more writes.
    fn ask(cluster: &Cluster, path: &str, ahead: u64) -> tokio::task::JoinHandle<Response> {
        let version = cluster.shared().read().store().revision() + ahead;
        let request = Request::new(Method::GET, &format!("{path}resourceVersion={version}"));
        let shared = cluster.shared().clone();
        tokio::spawn(async move { shared.answer(request).await })
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_of_the_future_waits_for_it() {
        let cluster = cluster();
        cluster.shared().write(|server, now| server.settle(now));
        for path in ["/api/v1/namespaces/default?", "/api/v1/pods?", "/api/v1/pods?watch=1&"] {
            let answer = ask(&cluster, path, 1);
            tokio::time::sleep(FRESHNESS / 2).await;
            assert!(!answer.is_finished(), "{path}");
            let body = r#"{"metadata":{"generateName":"c-"}}"#;
            let write = Request::new(Method::POST, CONFIG_MAPS).with_body("application/json", body);
            assert_eq!(cluster.shared().answer(write).await.status, 201);
            assert_eq!(answer.await.expect("no panic").status, 200, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_future_that_does_not_come_is_a_timeout() {
        let cluster = cluster();
        let response = ask(&cluster, "/api/v1/pods?", 1000).await.expect("no panic");
        assert_eq!(response.status, 504);
        let status = response.into_value();
        assert_eq!(status["reason"], "Timeout");
        assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(status["details"]["retryAfterSeconds"], 1);
    }
}
