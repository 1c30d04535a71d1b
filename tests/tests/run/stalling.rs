//! A watch that stops in the midst of an event, while everything else goes on.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use picokube_tests::following::Following;
use picokube_tests::http::Client;
use picokube_tests::lab::Lab;
use picokube_tests::picokube::Picokube;

use super::{deployment, run, wait_until_available};

/// So much of the first event comes.
const OF_EVENT: usize = 100;

/// Passes connections on to a server. The first watch of pods stops within its first event, and stays open.
struct Relay {
    address: SocketAddr,
    has_stalled: Arc<AtomicBool>,
}

impl Relay {
    fn to(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let has_stalled = Arc::new(AtomicBool::new(false));
        let stalled = has_stalled.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let stalled = stalled.clone();
                // Whoever hangs up ends it.
                thread::spawn(move || relay(client, server, &stalled).ok());
            }
        });
        Ok(Self { address, has_stalled })
    }
}

fn relay(mut client: TcpStream, server: SocketAddr, stalled: &AtomicBool) -> Result<()> {
    let mut server = TcpStream::connect(server)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let watches_pods = Arc::new(AtomicBool::new(false));
    let seen = watches_pods.clone();
    thread::spawn(move || -> Result<()> {
        let (mut bytes, mut line) = ([0; 8192], Vec::new());
        while let Ok(read @ 1..) = from_client.read(&mut bytes) {
            // The line that says what is asked for may come in pieces.
            line.extend_from_slice(&bytes[..read]);
            let text = String::from_utf8_lossy(&line);
            let is_watch = text.starts_with("GET /api/v1/pods?") && text.contains("watch=true");
            seen.fetch_or(is_watch, Ordering::SeqCst);
            if text.contains('\n') {
                line.clear();
            }
            to_server.write_all(&bytes[..read])?;
        }
        // The client has hung up. An event that came now would stop before nobody.
        to_server.shutdown(Shutdown::Both)?;
        Ok(())
    });
    let mut bytes = [0; 8192];
    let (mut answer, mut has_head) = (Vec::new(), false);
    loop {
        let read = server.read(&mut bytes)?;
        ensure!(read > 0, "the server has hung up");
        let piece = &bytes[..read];
        if !watches_pods.load(Ordering::SeqCst) {
            client.write_all(piece)?;
            continue;
        }
        // All that comes on this connection now is the answer to the watch.
        let mut event = piece;
        if !has_head {
            answer.extend_from_slice(piece);
            let end = answer.windows(4).position(|end| end == b"\r\n\r\n").map(|end| end + 4);
            let Some(end) = end else { continue };
            client.write_all(&answer[..end])?;
            has_head = true;
            event = &answer[end..];
        }
        if event.len() > OF_EVENT && !stalled.swap(true, Ordering::SeqCst) {
            client.write_all(&event[..OF_EVENT])?;
            // The rest never comes.
            loop {
                thread::park();
            }
        }
        client.write_all(event)?;
    }
}

#[test]
fn a_watch_that_stops_within_an_event_holds_up_nobody() -> Result<()> {
    let cluster = Picokube::up(&["--no-controllers", "--nodes", "1"])?;
    let relay = Relay::to(cluster.address())?;
    let server = format!("http://{}", relay.address);
    // A new leader gives its watches up to list anew, and the one that has stopped may be among them.
    let flags = ["--leader-elect=false", "--metrics-bind-address", "127.0.0.1:0"];
    let controllers = Following::start(run([&["--server", &server], &flags[..]].concat())?)?;
    let line = controllers.line_with(&["metrics", "http://"])?;
    let lab = Lab::new(&cluster, "stalling")?;
    lab.create("deployments", &deployment("web"))?;
    wait_until_available(&lab, "web")?;
    ensure!(relay.has_stalled.load(Ordering::SeqCst), "no watch has stopped");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.with_context(|| line.clone())?.trim().parse()?;
    let page = Client::connect(address)?.send("GET", "/metrics", &[], b"")?.text();
    ensure!(page.contains("picokube_responses_stalled_total 1\n"), "{page}");
    Ok(())
}
