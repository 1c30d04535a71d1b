//! Requests written down as text, played against a server without sockets.
//!
//! A script is a list of requests with `%%` lines between them. A request is a line with method
//! and target, then headers, then an empty line and the body; `WAIT n` lets `n` seconds pass.
//! Whatever the script says, [`play`] expects that
//!
//! - nothing panics, and the server never blames itself (500);
//! - a refusal is a well-formed Status and has changed nothing;
//! - a success is well-formed JSON, and so is every event of a watch;
//! - versions only grow, and every stored object agrees with its key, its version and its own JSON;
//! - every stored object can be written back as it was read, and that changes nothing.

use http::Method;
use picokube::api::Kind;
use picokube::server::Server;
use picokube::server::request::Request;
use picokube::server::response::{Body, Response};
use picokube::server::watch::{Watch, WatchState};
use picokube::store::{Entry, HistoryLimits, ResourceId};
use picokube::time::Timestamp;
use serde_json::Value;

/// More requests teach nothing new.
const MAX_REQUESTS: usize = 32;
/// Steps that the cluster may take by itself before somebody has to look into it.
const MAX_STEPS: usize = 10_000;

/// What every script finds: one object of each sort that others refer to.
const STAGE: &str = include_str!("stage.txt");

/// Plays a script on a new server and checks that all promises are kept.
pub(crate) fn play(script: &[u8]) {
    let mut player = Player::new();
    player.requests(STAGE.as_bytes());
    player.requests(script);
    player.check_store();
}

struct Player {
    server: Server,
    now: Timestamp,
}

impl Player {
    fn new() -> Self {
        let now = Timestamp::from_unix_millis(1_763_254_800_000);
        let limits = HistoryLimits { changes: 16, ..HistoryLimits::default() };
        let mut server = Server::new(1, limits);
        server.bootstrap(now);
        Self { server, now }
    }

    fn requests(&mut self, script: &[u8]) {
        for text in split(script, b"\n%%\n").take(MAX_REQUESTS) {
            self.step();
            match parse(text) {
                Some(Line::Request(request)) => self.send(&request),
                Some(Line::Wait(seconds)) => self.now = self.now.plus_seconds(seconds),
                None => {}
            }
        }
        self.step();
    }

    fn step(&mut self) {
        let idle = (0..MAX_STEPS).any(|_| !self.server.step(self.now));
        assert!(idle, "the cluster does not come to rest");
    }

    fn send(&mut self, request: &Request) {
        let before = self.server.store().revision();
        let response = self.server.handle(self.now, request);
        let after = self.server.store().revision();
        assert!(after >= before, "versions went back from {before} to {after}");
        assert_eq!(response.revision.max(after), after, "a version from the future");
        if response.status >= 400 {
            assert_eq!(before, after, "refused, and yet something has changed: {request:?}");
        }
        self.check(request, response);
    }

    fn check(&self, request: &Request, response: Response) {
        let status = response.status;
        assert!((200..600).contains(&status) && status != 500, "{status} to {request:?}");
        let is_json = response.content_type.starts_with("application/json");
        match response.body {
            Body::Watch(watch) => self.check_watch(*watch),
            _ if request.method == Method::HEAD || !is_json => assert!(status < 400),
            _ => {
                let bytes = response.into_bytes();
                let body: Value = serde_json::from_slice(&bytes)
                    .unwrap_or_else(|error| panic!("{error} in the answer to {request:?}"));
                if status >= 400 {
                    check_status(status, &body);
                }
            }
        }
    }

    fn check_watch(&self, mut watch: Watch) {
        let mut out = Vec::new();
        // Far ahead every watch has ended.
        for now in [self.now, self.now.plus_seconds(100_000_000_000)] {
            loop {
                let told = out.len();
                let state = watch.fill(self.server.store(), now, &mut out, told + 1);
                if state == WatchState::Ended || out.len() == told {
                    break;
                }
            }
        }
        for line in split(&out, b"\n").filter(|line| !line.is_empty()) {
            let event: Value = serde_json::from_slice(line).expect("an event is a line of JSON");
            assert!(event["type"].is_string() && event["object"].is_object(), "{event}");
        }
    }

    fn check_store(&mut self) {
        let kinds = self.server.stored_kinds().to_vec();
        for (id, kind) in kinds.into_iter().enumerate() {
            let resource = self.server.store().resource(ResourceId(id as u16));
            let entries: Vec<_> = resource.range("", None).cloned().collect();
            for entry in entries {
                check_entry(kind, &entry, self.server.store().revision());
                self.check_writes_back(kind, &entry);
            }
        }
    }

    fn check_writes_back(&mut self, kind: &Kind, entry: &Entry) {
        let path = path_of(kind, entry.namespace(), entry.name());
        let body = entry.json.clone();
        let request = Request::new(Method::PUT, &path).with_body("application/json", body);
        let before = self.server.store().revision();
        let response = self.server.handle(self.now, &request);
        let status = response.status;
        assert_eq!(status, 200, "{path} cannot be written back: {}", response.into_value());
        assert_eq!(self.server.store().revision(), before, "{path} is not what it was");
    }
}

enum Line {
    Request(Box<Request>),
    Wait(i64),
}

/// Reads a request; what makes none is left out.
fn parse(text: &[u8]) -> Option<Line> {
    let mut parts = text.splitn(2, |byte| *byte == b'\n');
    let (first, mut rest) = (parts.next()?, parts.next().unwrap_or_default());
    let first = std::str::from_utf8(first).ok()?;
    let (method, target) = first.split_once(' ')?;
    if method == "WAIT" {
        // A century is enough for everybody.
        return target.parse().ok().map(|seconds: u32| Line::Wait(i64::from(seconds)));
    }
    let mut request = Request::new(Method::from_bytes(method.as_bytes()).ok()?, target);
    while !rest.is_empty() {
        let mut parts = rest.splitn(2, |byte| *byte == b'\n');
        let line = parts.next()?;
        rest = parts.next().unwrap_or_default();
        if line.is_empty() {
            request.body = rest.to_vec().into();
            break;
        }
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(": ")?;
        let header = match name {
            "accept" => &mut request.accept,
            "content-type" => &mut request.content_type,
            "user-agent" => &mut request.user_agent,
            "if-none-match" => &mut request.if_none_match,
            _ => continue,
        };
        *header = value.to_owned();
    }
    Some(Line::Request(Box::new(request)))
}

fn check_status(code: u16, status: &Value) {
    assert!(status["kind"] == "Status" && status["apiVersion"] == "v1", "no Status: {status}");
    assert!(status["status"] == "Failure" && status["code"] == code, "{code}: {status}");
    for field in ["reason", "message"] {
        let filled = status[field].as_str().is_some_and(|text| !text.is_empty());
        assert!(filled, "a Status without {field}: {status}");
    }
}

fn check_entry(kind: &Kind, entry: &Entry, newest: u64) {
    let object = entry.parse();
    let metadata = &object["metadata"];
    assert_eq!(serde_json::to_vec(&object).ok().as_deref(), Some(&*entry.json), "{object}");
    assert!(object["kind"] == kind.kind && object["apiVersion"] == kind.api_version(), "{object}");
    assert_eq!(metadata["name"], entry.name(), "{object}");
    assert_eq!(metadata["namespace"].as_str().unwrap_or_default(), entry.namespace(), "{object}");
    assert_eq!(metadata["uid"], *entry.uid, "{object}");
    assert_eq!(metadata["resourceVersion"], entry.revision.to_string(), "{object}");
    assert!(entry.revision <= newest, "{object}");
}

fn path_of(kind: &Kind, namespace: &str, name: &str) -> String {
    let group = match kind.group {
        "" => "/api".to_owned(),
        group => format!("/apis/{group}"),
    };
    let namespace = match namespace {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    let escaped: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
    format!("{group}/{}{namespace}/{}/{escaped}", kind.version, kind.plural)
}

fn split<'a>(mut text: &'a [u8], separator: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let found = text.windows(separator.len()).position(|window| window == separator);
        let piece = match found {
            Some(at) => {
                let piece = text.get(..at)?;
                text = text.get(at + separator.len()..)?;
                piece
            }
            None => {
                done = true;
                text
            }
        };
        Some(piece)
    })
}
