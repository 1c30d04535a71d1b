//! Three watch machines, the real decoders and the real cache against a random server: history,
//! compaction, stale lists, pages, refusals, and connections cut at any byte.
//!
//! Whenever a machine is watching, the cache of its kind must be the server's state at the
//! machine's version; once faults stop, at the newest version.

use std::collections::BTreeMap;
use std::fmt::Write;

use picokube_core::json::{Digest, Digester, Tokenizer};
use picokube_core::manager::ResponseHead;
use picokube_core::store::{Cache, Cached, Change, ChangeType, Kind, Owner, Refusal, Table};
use picokube_core::text::Fingerprint;
use picokube_core::time::{Duration, Instant};
use picokube_core::watch::{
    Command, Feed, Handler, Input, Place, RequestId, Resource, Source, Watch,
};
use picokube_core::wire::{
    Decoder, Deployment, Meta, ObjectFault, OwnerKind, POD_TEMPLATE, Pod, ReplicaSet, Uid,
};

use crate::cluster::{Cluster, Id, KINDS, Object, free};
use crate::support::{Rng, fp, uid};

type Memory = picokube_core::resources! { pods: 64, replica_sets: 24, deployments: 12 };

/// Frees the slots of deleted owners at once, and wants no trouble.
struct Quiet;

impl Handler for Quiet {
    fn changed(&mut self, cache: &mut Cache<'_>, kind: Kind, change: &Change) {
        if change.event == ChangeType::Deleted {
            free(cache, kind, Some(change));
        }
    }

    fn refused(&mut self, _: &mut Cache<'_>, kind: Kind, meta: &Meta, refusal: &Refusal) {
        panic!("{kind:?} {} is refused: {refusal:?}", meta.name);
    }

    fn faulty(&mut self, fault: &ObjectFault<'_>) {
        panic!("{fault}");
    }

    fn healed(&mut self, _: &mut Cache<'_>, kind: Kind, owner: Owner) {
        panic!("nobody was blind: {kind:?} {owner:?}");
    }
}

/// The server's objects of one kind: every change that ever was.
#[derive(Default)]
struct History {
    /// Version, the object's name, and its new state or its last one and that it is gone.
    changes: Vec<(u64, Id, Object, bool)>,
    compacted: u64,
}

impl History {
    fn snapshot(&self, version: u64) -> BTreeMap<Id, Object> {
        let mut state = BTreeMap::new();
        for (_, id, object, gone) in self.changes.iter().take_while(|(at, ..)| *at <= version) {
            if *gone {
                state.remove(id);
            } else {
                state.insert(id.clone(), object.clone());
            }
        }
        state
    }
}

/// One response on its way, cut into whatever pieces.
struct Stream {
    id: RequestId,
    head: Option<(u16, Option<u32>)>,
    bytes: Vec<u8>,
    /// Of a watch: the version up to which events are in `bytes`.
    watching: Option<u64>,
    ends: bool,
}

struct Simulation {
    rng: Rng,
    now: Instant,
    server: Cluster,
    histories: [History; 3],
    version: u64,
    streams: [Option<Stream>; 3],
    faults: bool,
    /// Nothing changes until everyone has noticed that the server went back in time.
    restored: bool,
}

struct Machines {
    watches: [Watch; 3],
    pods: (Decoder<Pod>, Place),
    replica_sets: (Decoder<ReplicaSet>, Place),
    deployments: (Decoder<Deployment>, Place),
}

impl Machines {
    fn handle(
        &mut self,
        simulation: &mut Simulation,
        cache: &mut Cache<'_>,
        which: usize,
        id: RequestId,
        input: Input<'_>,
    ) {
        let handler = &mut Quiet;
        let (mut pods, mut replica_sets, mut deployments);
        let source: &mut dyn Source = match which {
            0 => {
                pods = feed(&mut self.pods, cache, handler);
                &mut pods
            }
            1 => {
                replica_sets = feed(&mut self.replica_sets, cache, handler);
                &mut replica_sets
            }
            _ => {
                deployments = feed(&mut self.deployments, cache, handler);
                &mut deployments
            }
        };
        let random = simulation.rng.next() as u32;
        self.watches[which].handle(simulation.now, random, id, input, source);
    }
}

fn feed<'a, 'c, K: Cached>(
    (decoder, place): &'a mut (Decoder<K>, Place),
    cache: &'a mut Cache<'c>,
    handler: &'a mut Quiet,
) -> Feed<'a, 'c, K> {
    Feed { decoder: Some(decoder), place, cache, handler, namespaces: &[], shares: false }
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            now: Instant::ZERO,
            server: Cluster::default(),
            histories: Default::default(),
            version: 100,
            streams: Default::default(),
            faults: true,
            restored: false,
        }
    }

    fn change_something(&mut self) {
        let which = self.rng.below(3);
        let kind = KINDS[which];
        self.version += 1 + self.rng.below(3) as u64;
        let names = [20, 6, 3][which];
        let (id, object, gone) = if self.rng.chance(3) && !self.server.of(kind).is_empty() {
            let at = self.rng.below(self.server.of(kind).len());
            let id = self.server.of(kind).keys().nth(at).unwrap().clone();
            let mut object = self.server.of_mut(kind).remove(&id).unwrap();
            object.version = self.version;
            (id, object, true)
        } else {
            let id = self.server.mutate(&mut self.rng, kind, names);
            let object = self.server.of_mut(kind).get_mut(&id).unwrap();
            object.version = self.version;
            (id, object.clone(), false)
        };
        self.histories[which].changes.push((self.version, id, object, gone));
    }

    /// The server is restored from a backup.
    fn restore(&mut self, machines: &mut Machines, cache: &mut Cache<'_>) {
        self.version = self.version.saturating_sub(self.rng.next() % 20).max(100);
        for (history, kind) in self.histories.iter_mut().zip(KINDS) {
            history.changes.retain(|(at, ..)| *at <= self.version);
            history.compacted = history.compacted.min(self.version);
            *self.server.of_mut(kind) = history.snapshot(self.version);
        }
        for which in 0..3 {
            if let Some(stream) = self.streams[which].take() {
                machines.handle(self, cache, which, stream.id, Input::Cut);
            }
        }
        self.restored = true;
    }

    /// Whether nobody believes in versions that are no more, nor has objects of them: of a list
    /// that was not completed, for example. Once the server has got past them, nobody could tell.
    fn is_restore_noticed(&self, machines: &Machines, cache: &Cache<'_>) -> bool {
        let known = |watch: &Watch| watch.version().map_or(0, |version| version.number());
        machines.watches.iter().all(|watch| known(watch) <= self.version)
            && (0..3).all(|which| {
                cached(cache, KINDS[which]).iter().all(|(_, version, _)| *version <= self.version)
            })
    }

    fn answer(&mut self, which: usize, id: RequestId, path: &str) {
        let query: BTreeMap<&str, &str> = path
            .split_once('?')
            .map(|(_, query)| query.split('&').filter_map(|pair| pair.split_once('=')).collect())
            .unwrap_or_default();
        let watch = query.contains_key("watch");
        let mut stream = Stream { id, head: None, bytes: vec![], watching: None, ends: !watch };
        if self.faults && self.rng.chance(6) {
            let code = *self.rng.pick(&[429, 500, 503, 410, 403, 504]);
            let retry_after = self.rng.chance(3).then_some(1);
            stream.head = Some((code, retry_after));
            stream.bytes = if self.rng.chance(2) { status(code) } else { b"<html>".to_vec() };
            stream.ends = true;
        } else if watch {
            self.open_watch(which, &query, &mut stream);
        } else {
            self.list(which, &query, &mut stream);
        }
        self.streams[which] = Some(stream);
    }

    fn open_watch(&mut self, which: usize, query: &BTreeMap<&str, &str>, stream: &mut Stream) {
        let version: u64 = query["resourceVersion"].parse().unwrap();
        if version > self.version {
            stream.head = Some((504, Some(1)));
            stream.bytes = status(504);
            stream.ends = true;
            return;
        }
        let expired = version < self.histories[which].compacted;
        if expired && self.rng.chance(2) {
            stream.head = Some((410, None));
            stream.bytes = status(410);
            stream.ends = true;
            return;
        }
        stream.head = Some((200, None));
        if expired {
            let error = String::from_utf8(status(410)).unwrap();
            stream.bytes = format!("{{\"type\":\"ERROR\",\"object\":{error}}}\n").into_bytes();
        } else {
            stream.watching = Some(version);
        }
    }

    fn list(&mut self, which: usize, query: &BTreeMap<&str, &str>, stream: &mut Stream) {
        let wanted = query.get("resourceVersion").map(|version| version.parse::<u64>().unwrap());
        let limit = query.get("limit").map_or(usize::MAX, |limit| limit.parse().unwrap());
        assert!(limit == usize::MAX || limit == 500);
        // A page of this server is small, so that pages happen.
        let limit = if limit == 500 { 4 + self.rng.below(4) } else { limit };
        let token = query.get("continue").map(|token| {
            let (version, offset) = token.split_once('.').unwrap();
            (version.parse::<u64>().unwrap(), offset.parse::<usize>().unwrap())
        });
        let (version, offset) = match (token, wanted) {
            (Some((version, _)), _) if version < self.histories[which].compacted => {
                stream.head = Some((410, None));
                stream.bytes = status(410);
                return;
            }
            (Some(token), _) => token,
            // A consistent read, or a cache that may be late.
            (None, None) => (self.version, 0),
            (None, Some(wanted)) if wanted > self.version => {
                stream.head = Some((504, Some(1)));
                stream.bytes = status(504);
                return;
            }
            (None, Some(wanted)) => {
                let oldest = wanted.max(100);
                (oldest + self.rng.next() % (self.version - oldest + 1), 0)
            }
        };
        let all = self.histories[which].snapshot(version);
        let items: Vec<_> = all.iter().skip(offset).take(limit).collect();
        let next = offset + items.len();
        let token = if next < all.len() { format!("{version}.{next}") } else { String::new() };
        let metadata =
            format!("\"metadata\":{{\"resourceVersion\":\"{version}\",\"continue\":\"{token}\"}}");
        let items = items.iter().map(|(id, object)| json(KINDS[which], id, object));
        let items = format!("\"items\":[{}]", items.collect::<Vec<_>>().join(","));
        let (first, second) =
            if self.rng.chance(2) { (metadata, items) } else { (items, metadata) };
        stream.head = Some((200, None));
        stream.bytes = format!("{{\"kind\":\"List\",{first},{second}}}").into_bytes();
    }

    /// Puts events that a watch has not seen yet on its stream.
    fn feed_watch(&mut self, which: usize) {
        let Some(stream) = &mut self.streams[which] else { return };
        let Some(seen) = stream.watching else { return };
        let history = &self.histories[which];
        for (version, id, object, gone) in history.changes.iter().filter(|(at, ..)| *at > seen) {
            let known = history.snapshot(version - 1).contains_key(id);
            let change = match (gone, known) {
                (true, _) => "DELETED",
                (false, true) => "MODIFIED",
                (false, false) => "ADDED",
            };
            let object = json(KINDS[which], id, object);
            let event = format!("{{\"type\":\"{change}\",\"object\":{object}}}\n");
            stream.bytes.extend(event.bytes());
            stream.watching = Some(*version);
        }
        if self.rng.chance(4) || !self.faults {
            let version = self.version;
            let bookmark = format!(
                "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"{}\",\"metadata\":\
                 {{\"resourceVersion\":\"{version}\"}}}}}}\n",
                name(KINDS[which])
            );
            stream.bytes.extend(bookmark.bytes());
            stream.watching = Some(version);
        }
    }

    /// Hands over the next piece of a response, or has an accident.
    fn deliver(&mut self, machines: &mut Machines, cache: &mut Cache<'_>, which: usize) {
        let Some(mut stream) = self.streams[which].take() else { return };
        let accident = self.faults && self.rng.chance(25);
        if let Some((status, retry_after)) = stream.head.take() {
            let input = match self.rng.below(3) {
                0 if accident => Input::Refused,
                1 if accident => Input::Unreachable,
                2 if accident => Input::Cut,
                _ => Input::Head(ResponseHead { status, retry_after, date: None }),
            };
            machines.handle(self, cache, which, stream.id, input);
            if !accident {
                self.streams[which] = Some(stream);
            }
            return;
        }
        let many = self.rng.below(3);
        let most = [1, 40, 4000][many].min(stream.bytes.len());
        let piece: Vec<u8> = stream.bytes.drain(..self.rng.below(most + 1)).collect();
        if !piece.is_empty() {
            machines.handle(self, cache, which, stream.id, Input::Body(&piece));
        }
        if accident {
            machines.handle(self, cache, which, stream.id, Input::Cut);
        } else if stream.bytes.is_empty() && (stream.ends || self.rng.chance(60)) {
            machines.handle(self, cache, which, stream.id, Input::End);
        } else {
            self.streams[which] = Some(stream);
        }
    }

    fn poll(&mut self, machines: &mut Machines) {
        for which in 0..3 {
            loop {
                let random = self.rng.next() as u32;
                match machines.watches[which].poll(self.now, random) {
                    None => break,
                    Some(Command::Close(_)) => self.streams[which] = None,
                    Some(Command::Send(request)) => {
                        let (id, path) = (request.id(), request.to_string());
                        self.answer(which, id, &path);
                    }
                }
            }
        }
    }

    /// The cache of a kind that is being watched is the server's state at its version.
    fn check(&self, machines: &Machines, cache: &Cache<'_>, which: usize) {
        let watching = self.streams[which].as_ref().is_some_and(|stream| stream.watching.is_some());
        if !watching {
            return;
        }
        assert!(machines.watches[which].has_synced());
        let version = machines.watches[which].version().unwrap().number();
        let mut expected = self.histories[which].snapshot(version);
        expected.retain(|_, object| object.is_ours(KINDS[which]));
        let template = |object: &Object| expected_template(KINDS[which], object.template);
        let expected: Vec<_> =
            expected.values().map(|o| (uid(o.uid), o.version, template(o))).collect();
        let mut cached = cached(cache, KINDS[which]);
        cached.sort();
        let mut expected = expected;
        expected.sort();
        assert_eq!(cached, expected, "{:?} at version {version}", KINDS[which]);
    }
}

/// The objects of a kind that are cached: uid, version and template.
fn cached(cache: &Cache<'_>, kind: Kind) -> Vec<(Uid, u64, Template)> {
    fn list<R>(
        table: &Table<'_, R>,
        template: impl Fn(&R) -> Template,
    ) -> Vec<(Uid, u64, Template)> {
        let entries = table.iter().map(|(_, entry)| entry);
        entries.map(|it| (it.uid(), it.version().number(), template(it.record))).collect()
    }
    match kind {
        Kind::Pod => list(&cache.pods, |_| Template::default()),
        Kind::ReplicaSet => list(&cache.replica_sets, |set| {
            (set.template(), set.template_labels.value(cache.texts, fp("of")))
        }),
        Kind::Deployment => list(&cache.deployments, |deployment| (deployment.template(), None)),
        other => panic!("a kind without a model: {other:?}"),
    }
}

#[test]
fn the_cache_follows_the_server() {
    let (mut lists, mut watches, mut errors, mut rewinds) = (0, 0, 0, 0);
    for seed in 0..300 {
        eprintln!("seed {seed}");
        let mut simulation = Simulation::new(seed);
        let mut memory = Box::new(Memory::new());
        let mut cache = memory.parts().cache;
        let mut machines = Box::new(Machines {
            watches: [Resource::PODS, Resource::REPLICA_SETS, Resource::DEPLOYMENTS]
                .map(|resource| Watch::new(resource, None)),
            pods: (Decoder::new(), Place::NEW),
            replica_sets: (Decoder::new(), Place::NEW),
            deployments: (Decoder::new(), Place::NEW),
        });
        for step in 0..2_500 {
            simulation.faults = step < 2_000;
            match simulation.rng.below(10) {
                0 if simulation.faults && !simulation.restored => simulation.change_something(),
                1 if simulation.faults && simulation.rng.chance(40) => {
                    simulation.restore(&mut machines, &mut cache);
                }
                1 if simulation.faults && simulation.rng.chance(10) => {
                    let which = simulation.rng.below(3);
                    simulation.histories[which].compacted = simulation.version;
                }
                2 => {
                    let which = simulation.rng.below(3);
                    simulation.feed_watch(which);
                }
                3 => {
                    let micros = simulation.rng.next() % 3_000_000;
                    simulation.now = simulation.now + Duration::from_micros(micros);
                }
                _ => {
                    let which = simulation.rng.below(3);
                    simulation.deliver(&mut machines, &mut cache, which);
                }
            }
            simulation.restored &= !simulation.is_restore_noticed(&machines, &cache);
            simulation.poll(&mut machines);
            (0..3).for_each(|which| simulation.check(&machines, &cache, which));
        }
        settle(&mut simulation, &mut machines, &mut cache);
        for watch in &machines.watches {
            assert_eq!(watch.version().unwrap().number(), simulation.version);
            lists += watch.counts().lists;
            watches += watch.counts().watches;
            errors += watch.counts().errors;
            rewinds += watch.counts().rewinds;
        }
        let mut known = simulation.server.clone();
        known.of_mut(Kind::Pod).retain(|_, pod| pod.is_ours(Kind::Pod));
        crate::store::check_all(&cache, &known);
    }
    eprintln!("{lists} lists, {watches} watches, {errors} errors, {rewinds} rewinds");
    assert!(lists > 1_000 && watches > 2_000 && errors > 2_000 && rewinds > 100);
}

/// Without faults, every machine reaches the newest version.
fn settle(simulation: &mut Simulation, machines: &mut Machines, cache: &mut Cache<'_>) {
    let newest = simulation.version;
    let caught_up = |machines: &Machines| {
        let version = |watch: &Watch| watch.version().map(|version| version.number());
        machines.watches.iter().all(|watch| version(watch) == Some(newest))
    };
    for _ in 0..20_000 {
        if caught_up(machines) {
            return;
        }
        for which in 0..3 {
            simulation.feed_watch(which);
            simulation.deliver(machines, cache, which);
        }
        simulation.now = simulation.now + Duration::from_millis(100);
        simulation.poll(machines);
    }
    panic!("does not settle");
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "Pod",
        Kind::ReplicaSet => "ReplicaSet",
        Kind::Deployment => "Deployment",
        other => panic!("a kind without a model: {other:?}"),
    }
}

fn template(number: u64) -> String {
    format!(
        "{{\"metadata\":{{\"labels\":{{\"of\":\"{number}\"}}}},\"spec\":{{\"hostname\":\"x\"}}}}"
    )
}

/// What the cache keeps of a template: its digest, and one of its labels.
type Template = (Digest, Option<Fingerprint>);

fn expected_template(kind: Kind, number: u64) -> Template {
    if kind == Kind::Pod {
        return Template::default();
    }
    let mut digester = Digester::new(&POD_TEMPLATE);
    Tokenizer::new().feed(template(number).as_bytes(), &mut digester).unwrap();
    let label = (kind == Kind::ReplicaSet).then(|| fp(&number.to_string()));
    (digester.finish().unwrap(), label)
}

fn status(code: u16) -> Vec<u8> {
    let (reason, causes) = match code {
        410 => ("Expired", ""),
        429 => ("TooManyRequests", ""),
        504 => ("Timeout", r#","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}"#),
        _ => ("InternalError", ""),
    };
    let head = r#""kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure""#;
    format!(r#"{{{head},"message":"no","reason":"{reason}"{causes},"code":{code}}}"#).into_bytes()
}

fn json(kind: Kind, (namespace, object_name): &Id, object: &Object) -> String {
    let map = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| format!("\"{k}\":\"{v}\"")).collect();
        format!("{{{}}}", pairs.join(","))
    };
    let mut out = String::new();
    write!(
        out,
        "{{\"kind\":\"{}\",\"metadata\":{{\"name\":\"{object_name}\",\"namespace\":\"{namespace}\",\
         \"uid\":\"{}\",\"resourceVersion\":\"{}\",\"generation\":{},\"labels\":{}",
        name(kind),
        uid(object.uid),
        object.version,
        object.generation,
        map(&object.labels),
    )
    .unwrap();
    if object.deleting {
        out.push_str(",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"");
    }
    if let Some((owner_kind, owner, number)) = &object.owner {
        let owner_kind = match owner_kind {
            OwnerKind::Other => "Job",
            OwnerKind::Deployment => "Deployment",
            OwnerKind::ReplicaSet => "ReplicaSet",
            OwnerKind::Pod => "Pod",
            #[cfg(feature = "statefulset")]
            OwnerKind::StatefulSet => "StatefulSet",
            other => panic!("a kind without a model: {other:?}"),
        };
        write!(
            out,
            ",\"ownerReferences\":[{{\"kind\":\"{owner_kind}\",\"name\":\"{owner}\",\
             \"uid\":\"{}\",\"controller\":true}}]",
            uid(*number)
        )
        .unwrap();
    }
    out.push('}');
    match kind {
        Kind::Pod => {
            let ready = if object.ready { "True" } else { "False" };
            write!(
                out,
                ",\"status\":{{\"conditions\":[{{\"type\":\"Ready\",\"status\":\"{ready}\"}}]}}"
            )
            .unwrap();
        }
        Kind::ReplicaSet | Kind::Deployment => {
            let selector = map(&object.selector);
            let template = template(object.template);
            write!(
                out,
                ",\"spec\":{{\"selector\":{{\"matchLabels\":{selector}}},\"template\":{template}}}"
            )
            .unwrap();
        }
        other => panic!("a kind without a model: {other:?}"),
    }
    out.push('}');
    out
}
