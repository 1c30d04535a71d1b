//! What requests cost the server, in instructions counted by valgrind.
//!
//! The server is driven without sockets. Each case runs twice under `callgrind`, with n and 2n
//! requests; the difference is the cost of n requests without set-up. Counts do not depend on the
//! machine's load. `picokube bench server` measures the same over HTTP, in time.
//!
//! Exits with an error when one more watch costs so much that it cannot be a mere copy of what the
//! others get: serialising the object would take about ten times as much.

#[path = "../../core/benches/callgrind/mod.rs"]
mod callgrind;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::LazyLock;

use http::Method;
use picokube::server::Server;
use picokube::server::request::Request;
use picokube::server::response::Body;
use picokube::store::HistoryLimits;
use picokube::time::Timestamp;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CREATES: usize = 200;
const STORED: usize = 2_000;
/// Most instructions for telling one more watch of a change of 4 KB.
const COPY: u64 = 8_000;

/// Sends so many requests.
type Run = fn(usize);

const CASES: [(&str, Run, usize); 6] = [
    ("create a pod of 4 KB", create, CREATES),
    ("write its status", write_status, CREATES),
    ("get it", get, CREATES),
    ("list a page of 500 of 2,000", list_page, 10),
    ("tell 1 watch of a create", |events| follow(events, 1), CREATES),
    ("tell 10 watches of a create", |events| follow(events, 10), CREATES),
];

fn main() -> ExitCode {
    if let Some([case, count]) = callgrind::asked_to_run().as_deref() {
        CASES[*case].1(*count);
        return ExitCode::SUCCESS;
    }
    if !callgrind::is_there() {
        return ExitCode::FAILURE;
    }
    println!("{:<32} {:>12}", "", "instructions");
    let mut costs = Vec::new();
    for (case, (name, _, requests)) in CASES.iter().enumerate() {
        let count = |requests| callgrind::count(&[case, requests]);
        let (once, twice) = (count(*requests), count(2 * requests));
        let cost = (twice - once) / *requests as u64;
        println!("{name:<32} {cost:>12}");
        costs.push(cost);
    }
    let [.., one_watch, ten_watches] = costs.as_slice() else { return ExitCode::FAILURE };
    let one_more = ten_watches.saturating_sub(*one_watch) / 9;
    println!("{:<32} {one_more:>12}", "one more watch");
    if one_more > COPY { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn create(requests: usize) {
    let mut server = server();
    (0..requests).for_each(|number| create_pod(&mut server, number));
}

fn write_status(requests: usize) {
    let mut server = server();
    create_pod(&mut server, 0);
    for number in 0..requests {
        let body = format!(r#"{{"status":{{"message":"for the {number}th time"}}}}"#);
        let request = Request::new(Method::PATCH, &format!("{PODS}/pod-0/status"))
            .with_body("application/merge-patch+json", body);
        assert_eq!(black_box(server.handle(now(), &request)).status, 200);
    }
}

fn get(requests: usize) {
    let mut server = server();
    create_pod(&mut server, 0);
    for _ in 0..requests {
        let request = Request::new(Method::GET, &format!("{PODS}/pod-0"));
        assert_eq!(black_box(server.handle(now(), &request)).status, 200);
    }
}

fn list_page(requests: usize) {
    let mut server = server();
    (0..STORED).for_each(|number| create_pod(&mut server, number));
    for _ in 0..requests {
        let request = Request::new(Method::GET, &format!("{PODS}?limit=500"));
        let Body::List(mut list) = server.handle(now(), &request).body else {
            panic!("a list is streamed");
        };
        while let Some(chunk) = list.next_chunk() {
            black_box(chunk);
        }
    }
}

fn follow(events: usize, watches: usize) {
    let mut server = server();
    let request = Request::new(Method::GET, &format!("{PODS}?watch=true"));
    let mut watches: Vec<_> = (0..watches)
        .map(|_| match server.handle(now(), &request).body {
            Body::Watch(watch) => watch,
            other => panic!("no watch but {other:?}"),
        })
        .collect();
    for number in 0..events {
        create_pod(&mut server, number);
        for watch in &mut watches {
            let mut chunk = Vec::new();
            watch.fill(server.store(), now(), &mut chunk, usize::MAX);
            black_box(chunk);
        }
    }
}

fn create_pod(server: &mut Server, number: usize) {
    // What the client does is not to be counted.
    static POD: LazyLock<String> = LazyLock::new(|| pod("NAME").to_string());
    let body = POD.replace("NAME", &format!("pod-{number}"));
    let request = Request::new(Method::POST, PODS).with_body("application/json", body);
    assert_eq!(black_box(server.handle(now(), &request)).status, 201);
    while server.step(now()) {}
}

fn server() -> Server {
    let mut server = Server::new(1, HistoryLimits::default());
    server.bootstrap(now());
    while server.step(now()) {}
    server
}

fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_763_254_800_000)
}

/// A pod as a Deployment makes them; it is stored with about 4 KB.
fn pod(name: &str) -> Value {
    let env = (0..12).map(|index| {
        let name = format!("SETTING_{index:03}");
        json!({"name": name, "value": "some value of ordinary length"})
    });
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": "web", "tier": "frontend", "pod-template-hash": "64d97d5974"},
            "annotations": {"example.com/owner": "team-a"},
        },
        "spec": {"containers": [{
            "name": "app",
            "image": "registry.example.com/shop/web:1.27.3",
            "ports": [{"containerPort": 8080, "name": "http"}],
            "resources": {
                "requests": {"cpu": "100m", "memory": "128Mi"},
                "limits": {"cpu": "500m", "memory": "256Mi"},
            },
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
            "env": env.collect::<Vec<_>>(),
        }]},
    })
}
