//! Whatever a disk does: what was acknowledged is there afterwards, and nothing that never was.

use anyhow::Result;
use http::Method;
use serde_json::json;

use super::Disk;
use super::medium::{Fault, Medium, Survival, after_power_cut};
use crate::random::Random;
use crate::server::Server;
use crate::server::request::Request;
use crate::store::{HistoryLimits, ResourceId};
use crate::time::Timestamp;

/// So few that histories are cut off.
const LIMITS: HistoryLimits = HistoryLimits { changes: 6, bytes: 1 << 20 };

/// How many transactions a cluster writes.
const SAVES: usize = 8;

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// All that a cluster knows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Knowledge {
    revision: u64,
    /// Resource, key, version and JSON of every object.
    objects: Vec<(u16, String, u64, Vec<u8>)>,
    /// Resource and version of every change that is remembered.
    history: Vec<(u16, u64)>,
    compacted: Vec<u64>,
}

impl Knowledge {
    fn of(server: &Server) -> Self {
        let store = server.store();
        let mut all = Self {
            revision: store.revision(),
            objects: Vec::new(),
            history: Vec::new(),
            compacted: Vec::new(),
        };
        for id in 0..server.stored_kinds().len() as u16 {
            let resource = store.resource(ResourceId(id));
            all.objects.extend(
                resource
                    .range("", None)
                    .map(|entry| (id, entry.key.to_string(), entry.revision, entry.json.to_vec())),
            );
            let changes = resource.changes_after(resource.compacted()).expect("not forgotten");
            all.history.extend(changes.map(|change| (id, change.entry.revision)));
            all.compacted.push(resource.compacted());
        }
        all
    }
}

/// A cluster on a disk, and what it knew whenever it wrote.
struct Cluster {
    server: Server,
    disk: Disk,
    /// What it was to keep: nothing at first, then after each save.
    known: Vec<Knowledge>,
    /// How many of these it has acknowledged.
    acknowledged: usize,
}

impl Cluster {
    fn open(medium: &Medium) -> Result<Self> {
        let disk = Disk::on(medium.clone())?;
        let mut server = Server::new(7, LIMITS);
        disk.load(&mut server)?;
        server.store_mut().follow_with_journal();
        let known = vec![Knowledge::of(&server)];
        Ok(Self { server, disk, known, acknowledged: 0 })
    }

    /// Changes something and saves it.
    fn go_on(&mut self, step: usize) -> Result<()> {
        if step == 0 {
            self.server.bootstrap(NOW);
        }
        // Each is small, but for a few that need several pages and make the file grow.
        self.make(&format!("c-{step}"), if step % 5 == 3 { 30_000 } else { 300 });
        if step >= 2 {
            let body = json!({"metadata": {"labels": {"step": step.to_string()}}});
            self.ask(Method::PATCH, &format!("{CONFIG_MAPS}/c-{}", step - 1), &body);
        }
        if step >= 4 {
            self.ask(Method::DELETE, &format!("{CONFIG_MAPS}/c-{}", step - 4), &json!({}));
        }
        self.save()
    }

    fn make(&mut self, name: &str, bytes: usize) {
        let body = json!({"metadata": {"name": name}, "data": {"v": "x".repeat(bytes)}});
        self.ask(Method::POST, CONFIG_MAPS, &body);
    }

    /// As the journal's thread does.
    fn save(&mut self) -> Result<()> {
        let unsaved = self.server.store_mut().take_unsaved();
        let knowledge = Knowledge::of(&self.server);
        self.known.push(knowledge.clone());
        self.disk.save(&unsaved, knowledge.revision, &knowledge.compacted)?;
        self.acknowledged = self.known.len() - 1;
        Ok(())
    }

    fn ask(&mut self, method: Method, path: &str, body: &serde_json::Value) {
        let content_type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::new(method, path).with_body(content_type, body.to_string());
        let response = self.server.handle(NOW, &request);
        assert!(response.status < 300, "{path}: {}", response.into_value());
    }
}

/// The file of a cluster that has just been made: it has its name only when all of it is on the disk.
fn new_file() -> Vec<u8> {
    let medium = Medium::default();
    drop(Disk::on(medium.clone()).expect("made"));
    medium.bytes()
}

/// What a cluster knows that is opened from this; it has to be one of `known` from `acknowledged` on, and to
/// go on from there.
fn assert_comes_back(bytes: Vec<u8>, known: &[Knowledge], acknowledged: usize, what: &str) {
    let medium = Medium::holding(bytes);
    let mut cluster = Cluster::open(&medium).unwrap_or_else(|error| panic!("{what}: {error:#}"));
    let found = &cluster.known[0];
    let at = known.iter().position(|known| known == found);
    let at = at.unwrap_or_else(|| panic!("{what}: nobody ever knew revision {}", found.revision));
    assert!(at >= acknowledged, "{what}: {at} came back and {acknowledged} was acknowledged");
    if at == 0 {
        // There is no namespace yet.
        cluster.server.bootstrap(NOW);
    }
    cluster.make("afterwards", 300);
    cluster.save().unwrap_or_else(|error| panic!("{what}: cannot go on: {error:#}"));
    let expected = cluster.known.pop().expect("just saved");
    drop(cluster);
    let again = Cluster::open(&medium).unwrap_or_else(|error| panic!("{what}: again: {error:#}"));
    assert!(again.known[0] == expected, "{what}: what was written afterwards is not there");
}

#[test]
fn the_power_may_go_at_any_moment() {
    let file = new_file();
    let medium = Medium::holding(file.clone());
    let mut cluster = Cluster::open(&medium).expect("a new cluster");
    // From this call on, so many are acknowledged.
    let mut acknowledged = vec![(medium.count(), 0)];
    for step in 0..SAVES {
        cluster.go_on(step).expect("nothing is wrong");
        acknowledged.push((medium.count(), step + 1));
    }
    let known = cluster.known.clone();
    drop(cluster);
    let calls = medium.calls();
    let mut random = Random::from_seed(17);
    let mut losses = Survival::ALL.map(|survival| (survival, 0));
    for end in 0..=calls.len() {
        let (_, acknowledged) =
            acknowledged.iter().rev().find(|(from, _)| *from <= end).copied().unwrap_or_default();
        // Torn each time, and the other ways in turn; or every way, if asked for.
        for (way, (survival, losses)) in losses.iter_mut().enumerate() {
            if !every_way() && *survival != Survival::Torn && end % 3 != way {
                continue;
            }
            let (bytes, lost) = after_power_cut(&file, &calls[..end], *survival, &mut random);
            *losses += usize::from(lost);
            let what = format!("power cut after call {end}, {survival:?} survives");
            assert_comes_back(bytes, &known, acknowledged, &what);
        }
    }
    for (survival, losses) in losses {
        assert_eq!(losses > 10, survival != Survival::All, "{survival:?} lost {losses} times");
    }
}

#[test]
fn a_disk_that_fails_loses_nothing_that_was_acknowledged() {
    let file = new_file();
    let mut random = Random::from_seed(18);
    for fault in Fault::ALL {
        let mut struck = 0;
        // Syncs are few. Of the writes, every third is enough where all of them lose power.
        let stride = if every_way() || fault == Fault::SyncFails { 1 } else { 3 };
        for (case, after) in (0..).step_by(stride).enumerate() {
            let medium = Medium::holding(file.clone());
            let once = case % 2 == 0;
            medium.let_fail(fault, after, once);
            let (known, acknowledged, error) = live(&medium);
            if medium.strikes() == 0 {
                break;
            }
            struck += 1;
            let what = format!("{fault:?} after {after}, once: {once}");
            // Whoever is told of a failure stops; nobody goes on as if nothing had happened.
            match error {
                Some(error) => {
                    let said = format!("{error:#}");
                    assert!(said.contains(fault.words()), "{what}: {said}");
                }
                // It came when all was kept, and the file was being closed.
                None => assert_eq!(acknowledged, SAVES, "{what}: nobody was told"),
            }
            medium.mend();
            assert_comes_back(medium.bytes(), &known, acknowledged, &what);
            for (way, survival) in Survival::ALL.into_iter().enumerate() {
                if every_way() || case % Survival::ALL.len() == way {
                    let (bytes, _) = after_power_cut(&file, &medium.calls(), survival, &mut random);
                    let what = format!("{what}, then a power cut, {survival:?} survives");
                    assert_comes_back(bytes, &known, acknowledged, &what);
                }
            }
        }
        assert!(struck > 4, "{fault:?} struck {struck} times");
    }
}

/// Whether every way in which writes survive is tried at every point, and not one or two of them.
fn every_way() -> bool {
    std::env::var_os("PICOKUBE_DISK").is_some_and(|what| what == "all")
}

/// A cluster's life on a disk that may fail: what it knew, what of it was acknowledged, and why it ended.
fn live(medium: &Medium) -> (Vec<Knowledge>, usize, Option<anyhow::Error>) {
    let mut cluster = match Cluster::open(medium) {
        Ok(cluster) => cluster,
        Err(error) => {
            let nothing = Cluster::open(&Medium::holding(new_file())).expect("a new cluster").known;
            return (nothing, 0, Some(error));
        }
    };
    let error = (0..SAVES).find_map(|step| cluster.go_on(step).err());
    (cluster.known.clone(), cluster.acknowledged, error)
}

#[test]
fn a_cluster_has_its_name_when_it_is_there_as_a_whole() {
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = temporary.path().join("data");
    crate::private::create_directory(&directory).expect("made");
    // As a power cut leaves it in the midst of making one.
    let half = &new_file()[..4096];
    std::fs::write(directory.join(".picokube-half"), half).expect("written");
    let disk = Disk::open(&directory).expect("a new cluster");
    let error = Disk::open(&directory).expect_err("it is in use");
    assert!(format!("{error:#}").contains("another picokube is using it"), "{error:#}");
    drop(disk);
    Disk::open(&directory).expect("the same again");
    let left = std::fs::read_dir(&directory).expect("there").count();
    assert_eq!(left, 2, "nothing else is left behind");

    for wrong in [&b""[..], b"something else", half] {
        std::fs::write(directory.join(super::FILE), wrong).expect("written");
        let opened = Disk::open(&directory).map(drop);
        match (wrong, opened) {
            // An empty file is a place for a cluster.
            (b"", opened) => opened.expect("a new cluster"),
            (_, Ok(())) => panic!("something else was taken for a cluster"),
            (_, Err(error)) => {
                let said = format!("{error:#}");
                assert!(said.contains("no cluster of picokube's, or was damaged"), "{said}");
                assert!(said.contains("cluster.redb"), "{said}");
            }
        }
    }
}
