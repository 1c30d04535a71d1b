//! Watches a namespace: keeps what there is now, and everything that happened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::alias::Aliases;
use super::client::Client;
use super::object::{name, text, version};
use super::probe::Probe;
use super::resource::Resource;

/// How long until a broken watch is opened again.
const RECONNECT_AFTER: Duration = Duration::from_millis(100);

/// After so long without a change, the controllers have heard of the last one.
const LONG: Duration = Duration::from_secs(1);

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was there when the watch began.
    Existing,
    /// It appeared.
    Added,
    /// It changed.
    Modified,
    /// It went.
    Deleted,
}

/// Something the watches have shown.
#[derive(Clone, Debug)]
pub struct Observation {
    /// What happened.
    pub change: Change,
    /// To an object of this resource.
    pub resource: Resource,
    /// The object as it is now, or was last.
    pub object: Arc<Value>,
}

/// Where in the stream of observations the scenario did something itself.
#[derive(Clone, Debug)]
pub struct Marker {
    /// After this resource version.
    pub version: u64,
    /// After so many observations had come in.
    pub observations: usize,
    /// The step's number.
    pub step: usize,
    /// The step as it is written.
    pub source: Value,
}

/// Everything that is known of the namespace.
#[derive(Debug)]
pub struct Seen {
    /// In the order it came in.
    pub observations: Vec<Observation>,
    /// In the order of the steps.
    pub markers: Vec<Marker>,
    /// The aliases given so far.
    pub aliases: Aliases,
    /// Why the recording cannot be trusted, if so.
    pub broken: Option<String>,
    current: BTreeMap<Resource, BTreeMap<String, Arc<Value>>>,
    /// When each pod name was first seen, and as which.
    pods: BTreeMap<String, (usize, Instant)>,
    newest: u64,
    last_change: Instant,
}

impl Seen {
    fn new(resources: &[Resource]) -> Self {
        Self {
            observations: Vec::new(),
            markers: Vec::new(),
            aliases: Aliases::default(),
            broken: None,
            current: resources.iter().map(|resource| (*resource, BTreeMap::new())).collect(),
            pods: BTreeMap::new(),
            newest: 0,
            last_change: Instant::now(),
        }
    }

    /// The objects of a resource that are there now.
    pub fn objects(&self, resource: Resource) -> impl Iterator<Item = &Arc<Value>> {
        self.current.get(&resource).into_iter().flat_map(BTreeMap::values)
    }

    /// An object that is there now.
    pub fn object(&self, resource: Resource, name: &str) -> Option<&Arc<Value>> {
        self.current.get(&resource)?.get(name)
    }

    /// The pods that are there now with the time they were first seen, oldest first. A pod that
    /// is made again under its old name keeps its place.
    pub fn pods_by_age(&self) -> Vec<(Arc<Value>, Instant)> {
        let mut pods: Vec<_> = self
            .objects(Resource::Pods)
            .filter_map(|pod| Some((self.pods.get(name(pod))?, pod.clone())))
            .collect();
        pods.sort_by_key(|((place, _), _)| *place);
        pods.into_iter().map(|((_, since), pod)| (pod, *since)).collect()
    }

    /// Whether a write that was answered with `answer` has come back through the watch.
    fn has_caught_up_with(&self, resource: Resource, answer: &Value) -> bool {
        let Some(written) = version(answer) else { return true };
        match self.object(resource, name(answer)).map(|object| version(object)) {
            Some(Some(current)) => current >= written,
            Some(None) => true,
            // It came and went.
            None => self.newest > written,
        }
    }

    fn take(&mut self, change: Change, resource: Resource, object: Value) {
        let object = Arc::new(object);
        let name = name(&object).to_owned();
        self.newest = self.newest.max(version(&object).unwrap_or_default());
        self.last_change = Instant::now();
        if matches!(change, Change::Added | Change::Existing) {
            self.aliases.see(resource, &object);
            if resource == Resource::Pods {
                let place = self.pods.len();
                self.pods.entry(name.clone()).or_insert((place, self.last_change));
            }
        }
        if let Some(objects) = self.current.get_mut(&resource) {
            match change {
                Change::Deleted => objects.remove(&name),
                _ => objects.insert(name, object.clone()),
            };
        }
        self.observations.push(Observation { change, resource, object });
    }
}

/// Follows a namespace until it is dropped.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    _watches: JoinSet<()>,
    /// What tells whether the controllers are done; time alone does where time is virtual.
    probe: Option<Arc<Probe>>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    namespace: String,
    seen: Mutex<Seen>,
    /// Counts the changes, so that nobody who waits misses one.
    changes: watch::Sender<u64>,
}

impl Recorder {
    /// Begins to watch these resources.
    pub async fn start(
        client: &Client,
        namespace: &str,
        resources: &[Resource],
        probe: Option<Arc<Probe>>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            client: client.clone(),
            namespace: namespace.to_owned(),
            seen: Mutex::new(Seen::new(resources)),
            changes: watch::Sender::new(0),
        });
        let mut watches = JoinSet::new();
        for resource in resources.iter().copied() {
            let since = shared.list(resource).await?;
            let shared = shared.clone();
            watches.spawn(async move { shared.follow(resource, since).await });
        }
        Ok(Self { shared, _watches: watches, probe })
    }

    /// What is known now. Not to be held for long: nothing is recorded meanwhile.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.shared.seen()
    }

    /// Waits until nothing has happened for so long, and the controllers have had their turn since.
    ///
    /// Whoever waits for long may wait for a back-off that is hardly longer: the controllers' turn takes
    /// no time on top of it.
    pub async fn quiet(&self, asked: Duration) -> Result<()> {
        loop {
            let (changes, last_change) = {
                let seen = self.seen();
                (*self.shared.changes.borrow(), seen.last_change)
            };
            let turn_begins = last_change + asked.min(LONG);
            if turn_begins > Instant::now() {
                sleep_until(turn_begins).await;
                continue;
            }
            if let Some(probe) = &self.probe {
                probe.pass().await?;
            }
            let is_quiet = || *self.shared.changes.borrow() == changes;
            if is_quiet() {
                sleep_until(last_change + asked).await;
            }
            if is_quiet() {
                return Ok(());
            }
        }
    }

    /// Tells of every change from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Notes that a step begins.
    pub fn mark(&self, step: usize, source: &Value) {
        self.shared.update(|seen| {
            let (version, observations) = (seen.newest, seen.observations.len());
            seen.last_change = Instant::now();
            seen.markers.push(Marker { version, observations, step, source: source.clone() });
        });
    }

    /// Begins the quiet time anew.
    pub fn stir(&self) {
        self.shared.update(|seen| seen.last_change = Instant::now());
    }

    /// Waits until `look` finds something, or the deadline passes.
    pub async fn until<T>(
        &self,
        deadline: Instant,
        mut look: impl FnMut(&Seen) -> Option<T>,
    ) -> Option<T> {
        let mut changes = self.changes();
        loop {
            changes.mark_unchanged();
            if let Some(found) = look(&self.seen()) {
                return Some(found);
            }
            timeout_at(deadline, changes.changed()).await.ok()?.ok()?;
        }
    }

    /// Waits until a write has come back through the watch, so that what is looked at next is not
    /// older than the write. Gives up after a while: an object may go and never come back.
    pub async fn catch_up(&self, resource: Resource, answer: &Value) {
        let deadline = Instant::now() + Duration::from_secs(3);
        if !self.seen().current.contains_key(&resource) {
            return;
        }
        let caught_up = |seen: &Seen| seen.has_caught_up_with(resource, answer).then_some(());
        self.until(deadline, caught_up).await;
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen());
        self.changes.send_modify(|count| *count += 1);
    }

    /// Takes what is there already; returns the version from which to watch.
    async fn list(&self, resource: Resource) -> Result<String> {
        let path = resource.collection(&self.namespace);
        let answer = self.client.get(&path).await?;
        if !answer.is_success() {
            bail!("GET {path}: {}: {}", answer.status, text(&answer.body["message"]));
        }
        for object in super::object::members(&answer.body["items"]) {
            self.update(|seen| seen.take(Change::Existing, resource, object.clone()));
        }
        let since = text(&answer.body["metadata"]["resourceVersion"]);
        Ok(if since.is_empty() { "0".to_owned() } else { since.to_owned() })
    }

    async fn follow(&self, resource: Resource, mut since: String) {
        loop {
            match self.follow_once(resource, &mut since).await {
                // The server ends watches now and then; that is no failure.
                Ok(()) => {}
                Err(Broken::Connection) => sleep(RECONNECT_AFTER).await,
                Err(Broken::Recording(error)) => {
                    let why = format!("the watch of {resource} broke: {error:#}");
                    self.update(|seen| seen.broken = Some(why));
                    return;
                }
            }
        }
    }

    async fn follow_once(&self, resource: Resource, since: &mut String) -> Result<(), Broken> {
        let path = resource.collection(&self.namespace);
        let path = format!("{path}?watch=1&allowWatchBookmarks=true&resourceVersion={since}");
        let mut lines = self.client.stream(&path).await.map_err(|_| Broken::Connection)?;
        while let Some(mut event) = lines.next().await.map_err(|_| Broken::Connection)? {
            let object = event["object"].take();
            let change = match text(&event["type"]) {
                "ADDED" => Some(Change::Added),
                "MODIFIED" => Some(Change::Modified),
                "DELETED" => Some(Change::Deleted),
                "BOOKMARK" => None,
                other => {
                    let error = anyhow::anyhow!("{other}: {object}");
                    return Err(Broken::Recording(error));
                }
            };
            let version = text(&object["metadata"]["resourceVersion"]);
            if !version.is_empty() {
                version.clone_into(since);
            }
            if let Some(change) = change {
                Some(name(&object))
                    .filter(|name| !name.is_empty())
                    .context("an object without a name")
                    .map_err(Broken::Recording)?;
                self.update(|seen| seen.take(change, resource, object));
            }
        }
        Ok(())
    }
}

/// Why a watch ended.
enum Broken {
    /// It can be opened again where it was.
    Connection,
    /// Something may have been missed.
    Recording(anyhow::Error),
}
