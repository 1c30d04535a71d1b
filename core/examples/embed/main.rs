//! The controllers in a program of one's own: no executor, no driver, a loop and plain sockets.
//!
//! What stands for an HTTP client of one's own is in `http.rs`.
//!
//! `cargo run --package picokube-core --example embed -- 127.0.0.1:8001`. See docs/embedding.md.

mod http;

use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read};
use std::sync::LazyLock;
use std::time::Duration;

use picokube_core::kind::Kind;
use picokube_core::manager::{Body, Failure, Manager, Request, Settings, Workspace};
use picokube_core::splice::{SpliceError, Splicer};
use picokube_core::time::Instant;
use picokube_core::watch::{Command, Input, RequestId};

use http::{Exchange, exchange};

/// Fixed when the program is built; all zero, so that it could be a `static` in `.bss`.
type Memory = picokube_core::resources! { pods: 64, replica_sets: 16, deployments: 8 };
/// One request at a time of each kind, two keys of each controller, sixteen events.
type Work = Workspace<1, 2, 16>;
type Open = Option<(RequestId, Exchange)>;

fn main() {
    let server = std::env::args().nth(1).unwrap_or("127.0.0.1:8001".to_owned());
    let (mut memory, mut work) = (Box::new(Memory::new()), Box::new(Work::new()));
    let mut manager = Manager::new(memory.parts(), work.parts(), Settings::DEFAULT, secret());
    let mut watches = [Kind::Deployment, Kind::ReplicaSet, Kind::Pod].map(|kind| (kind, None));
    let mut run_watches = |manager: &mut Manager<'_>| {
        watches.iter_mut().for_each(|(kind, open)| run_watch(manager, *kind, open, &server));
        // A device would sleep until bytes come or `manager.poll_at()` is due.
        std::thread::sleep(Duration::from_millis(2));
    };
    loop {
        run_watches(&mut manager);
        while let Some(request) = manager.poll(now()) {
            let ticket = request.ticket;
            let answer = carry_out(&mut manager, &request, &server);
            let mut rest = answer.as_deref().unwrap_or_default();
            while !rest.is_empty() {
                let taken = manager.response_body(ticket, now(), rest);
                rest = &rest[taken..];
                // All bodies are read in one memory: a watch may be in the midst of an object.
                if taken == 0 {
                    run_watches(&mut manager);
                }
            }
            manager.response_end(ticket, now(), answer.map(drop));
        }
    }
}

/// Does what the manager wants of a watch, and hands it what has come.
fn run_watch(manager: &mut Manager<'_>, kind: Kind, open: &mut Open, server: &str) {
    while let Some(command) = manager.poll_watch(kind, now()) {
        match command {
            Command::Send(request) => {
                let id = request.id();
                match Exchange::begin(server, &format!("GET {request}"), "", b"") {
                    Ok(exchange) => *open = Some((id, exchange)),
                    Err(_) => {
                        manager.handle_watch(kind, now(), id, Input::Refused);
                    }
                }
            }
            Command::Close(_) => *open = None,
        }
    }
    let Some((id, exchange)) = open else { return };
    let mut bytes = [0; 4096];
    let read = exchange.stream.read(&mut bytes);
    exchange.body.extend(&bytes[..*read.as_ref().unwrap_or(&0)]);
    let head = exchange.new_head();
    let mut feed = |input: Input<'_>| manager.handle_watch(kind, now(), *id, input);
    if let Some(head) = head {
        feed(Input::Head(head));
    }
    if exchange.has_head {
        // What is not taken now is handed over again.
        let taken = feed(Input::Body(&exchange.body));
        exchange.body.drain(..taken);
    }
    match read {
        Ok(1..) => return,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return,
        _ if exchange.has_head && !exchange.body.is_empty() => return,
        Ok(0) => feed(Input::End),
        Err(_) => feed(Input::Cut),
    };
    *open = None;
}

/// Sends a request; returns what the manager is to read of the answer.
fn carry_out(
    manager: &mut Manager<'_>,
    request: &Request,
    server: &str,
) -> Result<Vec<u8>, Failure> {
    let changed = |_: SpliceError| Failure::SourceChanged;
    let (ticket, mut text, mut body) = (request.ticket, String::new(), vec![]);
    match &request.body {
        Body::Empty => {}
        Body::Document => manager.write_body(ticket, &mut text).or(Err(Failure::NotSent))?,
        Body::Splice(splice) => {
            let (mut splicer, mut window) = (Splicer::new(splice), [0; 256]);
            while let Some(source) = splicer.source().cloned() {
                let (head, source) = exchange(server, &format!("GET {source}"), "", b"")?;
                if head.status != 200 {
                    return Err(Failure::Source(head.status));
                }
                let mut bytes = &source[..];
                while !bytes.is_empty() {
                    let len = splicer.push(&mut bytes, &mut window).map_err(changed)?;
                    body.extend_from_slice(&window[..len]);
                }
                splicer.end_of_source().map_err(changed)?;
            }
            while let Some(len) = splicer.finish(&mut window).map_err(changed)? {
                body.extend_from_slice(&window[..len]);
            }
        }
    }
    body.extend(text.bytes());
    let line = format!("{} {}", request.method.name(), request.target);
    let (head, answer) = exchange(server, &line, request.content_type.name(), &body)?;
    manager.response_head(ticket, now(), head);
    Ok(answer)
}

/// A clock that never goes back.
fn now() -> Instant {
    static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    Instant::from_micros(START.elapsed().as_micros() as u64)
}

/// A number that nobody outside knows.
fn secret() -> u64 {
    RandomState::new().hash_one(0)
}
