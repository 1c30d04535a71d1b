//! The controllers in a program of one's own: no executor, no driver, a loop and plain sockets.
//!
//! `cargo run --package picokube-core --example embed -- 127.0.0.1:8001`. See docs/embedding.md.

mod http;

use std::io::ErrorKind;
use std::time::Duration;

use picokube_core::manager::{Body, Failure, Manager, Request, Settings, Workspace};
use picokube_core::splice::{SpliceError, Splicer};
use picokube_core::store::Kind;
use picokube_core::time::Instant;
use picokube_core::watch::{Command, Input, RequestId};

use http::{Exchange, exchange, not_sent};

/// Fixed when the program is built; all zero, so that it could be a `static` in `.bss`.
type Memory = picokube_core::resources! { pods: 64, replica_sets: 16, deployments: 8 };
/// One request at a time of each kind, two keys of each controller, sixteen events.
type Work = Workspace<1, 1, 2, 16>;

fn main() {
    let server = std::env::args().nth(1).unwrap_or("127.0.0.1:8001".to_owned());
    let (mut memory, mut work) = (Box::new(Memory::new()), Box::new(Work::new()));
    let mut manager = Manager::new(memory.parts(), work.desk(), Settings::DEFAULT);
    let mut watches = [Kind::Deployment, Kind::ReplicaSet, Kind::Pod].map(|kind| (kind, None));
    loop {
        for (kind, open) in &mut watches {
            run_watch(&mut manager, *kind, open, &server);
        }
        while let Some(request) = manager.poll(now(), random()) {
            let end = carry_out(&mut manager, &request, &server);
            manager.response_end(request.ticket, now(), end);
        }
        // A device would sleep until bytes come or `manager.poll_at()` is due.
        std::thread::sleep(Duration::from_millis(2));
    }
}

type Open = Option<(RequestId, Exchange)>;

/// Does what the manager wants of a watch, and hands it what has come.
fn run_watch(manager: &mut Manager<'_>, kind: Kind, open: &mut Open, server: &str) {
    while let Some(command) = manager.poll_watch(kind, now(), random()) {
        match command {
            Command::Send(request) => {
                let id = request.id();
                match Exchange::begin(server, &format!("GET {request}"), "", b"") {
                    Ok(exchange) => *open = Some((id, exchange)),
                    Err(_) => manager.handle_watch(kind, now(), random(), id, Input::Refused),
                }
            }
            Command::Close(_) => *open = None,
            Command::Resync => {}
        }
    }
    let Some((id, exchange)) = open else { return };
    let mut feed = |input: Input<'_>| manager.handle_watch(kind, now(), random(), *id, input);
    match exchange.read() {
        Ok(1..) => {
            let head = exchange.new_head();
            if let Some((status, _)) = head {
                feed(Input::Head { status, retry_after: None });
            }
            feed(Input::Body(&std::mem::take(&mut exchange.body)));
            // The server's clock is the only one.
            head.into_iter().for_each(|(_, date)| manager.set_date(now(), date));
            return;
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => return,
        Ok(0) => feed(Input::End),
        Err(_) => feed(Input::Cut),
    }
    *open = None;
}

/// Sends a request and hands the answer to the manager.
fn carry_out(manager: &mut Manager<'_>, request: &Request, server: &str) -> Result<(), Failure> {
    let mut body = String::new();
    match &request.body {
        Body::Empty => {}
        Body::Document => manager.write_body(request.ticket, &mut body).map_err(not_sent)?,
        Body::Splice(splice) => {
            let (mut splicer, mut made, mut window) = (Splicer::new(splice), vec![], [0; 256]);
            while let Some(source) = splicer.source().cloned() {
                let (status, bytes) = exchange(server, &format!("GET {source}"), "", b"")?;
                if status != 200 {
                    return Err(Failure::Source(status));
                }
                let mut bytes = &bytes[..];
                while !bytes.is_empty() {
                    let len = splicer.push(&mut bytes, &mut window).map_err(changed)?;
                    made.extend_from_slice(&window[..len]);
                }
                splicer.end_of_source().map_err(changed)?;
            }
            while let Some(len) = splicer.finish(&mut window).map_err(changed)? {
                made.extend_from_slice(&window[..len]);
            }
            body = String::from_utf8(made).map_err(not_sent)?;
        }
    }
    let line = format!("{} {}", format!("{:?}", request.method).to_uppercase(), request.target);
    let (status, bytes) = exchange(server, &line, request.content_type.name(), body.as_bytes())?;
    manager.response_head(request.ticket, now(), status, None);
    manager.response_body(request.ticket, &bytes);
    Ok(())
}

fn changed(_: SpliceError) -> Failure {
    Failure::SourceChanged
}

fn now() -> Instant {
    let elapsed = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    Instant::from_micros(elapsed.as_micros() as u64)
}

fn random() -> u32 {
    now().as_micros() as u32
}
