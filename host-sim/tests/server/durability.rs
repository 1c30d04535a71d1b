//! kill -9 in the middle of a write load, and a full disk: what was acknowledged is there afterwards.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{CONFIG_MAPS, Client, Server, Watch, config_map, eventually};
use serde_json::Value;

const KILLS: usize = 50;
const WRITERS: usize = 6;

/// What the server has acknowledged: name → value and version.
type Acknowledged = Arc<Mutex<BTreeMap<String, (String, u64)>>>;

#[test]
fn fifty_kills_lose_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let acknowledged: Acknowledged = Arc::default();
    let mut highest = 0;
    for round in 0..KILLS {
        let server = Server::on_disk(directory.path());
        highest = highest.max(check(&server, &acknowledged));
        let written = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (client, stop, written) = (server.client(), stop.clone(), written.clone());
                let acknowledged = acknowledged.clone();
                std::thread::spawn(move || {
                    write_load(client, round, writer, &acknowledged, &written, &stop);
                })
            })
            .collect();
        // A different moment every time: after some, many or very many writes.
        let wanted = 3 + (round * 37) % 150;
        eventually("the load is on", || (written.load(Ordering::Relaxed) >= wanted).then_some(()));
        server.kill();
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    }
    let server = Server::on_disk(directory.path());
    check(&server, &acknowledged);
    assert!(acknowledged.lock().expect("no panic").len() > KILLS, "hardly anything was written");
}

/// A limit on the size of files stands for a disk that is full.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_server_and_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    // In units of 512 bytes.
    let limited = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" \"$@\"";
    let mut process = Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_picokube"), "server", "--listen", "127.0.0.1:0"])
        .arg("--data")
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let output = BufReader::new(process.stdout.take().expect("piped"));
    let mut lines = output.lines().map_while(Result::ok);
    let address =
        lines.find_map(|line| line.strip_prefix("listening on http://").map(str::to_owned));
    let mut client = Client::new(&address.expect("it listens"));
    let body = |name: &str| config_map(name, &"x".repeat(200_000)).to_string();
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let name = format!("c-{number}");
        let json = "application/json";
        match client.request("POST", CONFIG_MAPS, json, body(&name).as_bytes()) {
            Ok((201, _)) => acknowledged.push(name),
            Ok((status, object)) => panic!("answered {status}: {object}"),
            Err(_) => break,
        }
    }
    let ended = process.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write to the data directory: "), "{said}");
    assert!(said.contains("File too large") && said.contains("stopping"), "{said}");
    assert!(acknowledged.len() > 2, "{acknowledged:?}");

    let server = Server::on_disk(&data);
    for name in acknowledged {
        assert_eq!(server.client().get(&format!("{CONFIG_MAPS}/{name}")).0, 200, "{name} is lost");
    }
    assert_eq!(server.client().post(CONFIG_MAPS, &config_map("afterwards", "1")).0, 201);
}

/// Compares the cluster with what was acknowledged; gives its version.
fn check(server: &Server, acknowledged: &Acknowledged) -> u64 {
    let (status, list) = server.client().get(CONFIG_MAPS);
    assert_eq!(status, 200);
    let version: u64 = number(&list["metadata"]["resourceVersion"]);
    let found: BTreeMap<&str, &Value> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| (item["metadata"]["name"].as_str().expect("a name"), item))
        .collect();
    let acknowledged = acknowledged.lock().expect("no panic");
    for (name, (value, at)) in acknowledged.iter() {
        let item = found.get(name.as_str()).unwrap_or_else(|| panic!("{name} is lost"));
        let stored = number(&item["metadata"]["resourceVersion"]);
        assert!(version >= *at, "the version went back from {at} to {version}");
        // A write whose answer was cut off may have happened as well.
        assert!(stored > *at || item["data"]["value"] == *value, "{name} has an old value");
    }
    // The history is kept too: a watch goes on from an acknowledged version of long ago.
    let mut versions: Vec<u64> = acknowledged.values().map(|(_, at)| *at).collect();
    versions.sort_unstable();
    if let [.., before, last] = versions.as_slice() {
        let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={before}");
        let event = Watch::open(&server.address, &path).next().expect("it goes on");
        let told = number(&event["object"]["metadata"]["resourceVersion"]);
        assert!(told > *before && told <= *last, "{event}");
    }
    version
}

fn write_load(
    mut client: crate::support::Client,
    round: usize,
    writer: usize,
    acknowledged: &Acknowledged,
    written: &AtomicUsize,
    stop: &AtomicBool,
) {
    for index in 0.. {
        let name = format!("c-{writer}-{}", index % 20);
        let value = format!("{round}-{index}");
        let body = config_map(&name, &value).to_string();
        let path = format!("{CONFIG_MAPS}/{name}");
        let json = "application/json";
        let mut answer = client.request("PUT", &path, json, body.as_bytes());
        if matches!(answer, Ok((404, _))) {
            answer = client.request("POST", CONFIG_MAPS, json, body.as_bytes());
        }
        match answer {
            Ok((200 | 201, object)) => {
                let version = number(&object["metadata"]["resourceVersion"]);
                acknowledged.lock().expect("no panic").insert(name, (value, version));
                written.fetch_add(1, Ordering::Relaxed);
            }
            Ok((status, object)) => panic!("answered {status}: {object}"),
            // The server is gone.
            Err(_) => return,
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn number(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).expect("a version")
}
