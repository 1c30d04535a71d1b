//! Crowds of clients: the server's memory stays within what docs/limits.md states.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use picokube_tests::picokube::Picokube;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

/// What docs/limits.md states, as peak of the resident memory.
const STATED_BYTES: u64 = 1 << 30;

const IDLE: usize = 20_000;
/// A process may not be allowed as many files as there are connections.
const PROCESSES: usize = 4;
const BODIES: usize = 2_000;
const BODY_BYTES: usize = 3 << 20;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Clients in a process of their own; they leave when this is dropped.
struct Crowd(Child);

impl Crowd {
    fn start(address: SocketAddr, count: usize) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_picokube-crowd"));
        command.args([address.to_string(), count.to_string()]);
        Ok(Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?))
    }

    /// Waits until all of them have been answered.
    fn wait(&mut self) -> Result<()> {
        let output = self.0.stdout.take().context("no output")?;
        let line = BufReader::new(output).lines().next();
        ensure!(line.is_some_and(|line| line.is_ok_and(|line| line == "holding")), "see above");
        Ok(())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn idle_connections_and_large_bodies_stay_within_the_stated_memory() -> Result<()> {
    let files = rlimit::increase_nofile_limit(u64::MAX)?;
    ensure!(files >= IDLE as u64, "this machine permits {files} open files; {IDLE} are needed");
    // Nothing is to end by itself, however slow this machine is.
    let server = Picokube::start(&["server", "--request-timeout", "1h"])?;

    // Bodies that do not end: all but their last byte is there.
    let body = vec![b' '; BODY_BYTES - 1];
    let mut senders = Vec::new();
    for _ in 0..BODIES {
        senders.push(begin_body(server.address())?);
    }
    let sending = RefCell::new(Sending { sent: vec![0; BODIES], senders });
    server.wait_until(
        "there is no more memory for bodies, and most senders are refused",
        || {
            sending.borrow_mut().send_a_piece_each(&body);
            let held = metric(&server, "picokube_inflight_body_bytes")?;
            Ok(held > 64 << 20 && metric(&server, "picokube_dropped_requests_total")? > 1_000)
        },
    )?;
    // Whoever asks for little is served all the same, if need be at the second try.
    server.wait_until("a small write gets through", || {
        let object = json!({"metadata": {"generateName": "small-"}});
        Ok(server.send_json("POST", CONFIG_MAPS, &object)?.status == 201)
    })?;
    let held = metric(&server, "picokube_inflight_body_bytes")?;
    ensure!(held <= 128 << 20, "{held} bytes of bodies are held");

    let mut crowds = Vec::new();
    for _ in 0..PROCESSES {
        crowds.push(Crowd::start(server.address(), IDLE / PROCESSES)?);
    }
    crowds.iter_mut().try_for_each(Crowd::wait)?;
    // As many as there are files for are open, and there is room for one more.
    let open = metric(&server, "apiserver_open_connections")?;
    ensure!(open as usize > IDLE - 1_000, "only {open} connections are open");
    ensure!(server.get("/api/v1/namespaces")?.status == 200, "nobody else is served");

    let peak = peak_memory(server.process_id())?;
    println!("peak of the resident memory: {} MiB", peak >> 20);
    ensure!(peak <= STATED_BYTES, "{} MiB were used", peak >> 20);
    Ok(())
}

#[test]
fn controllers_get_through_a_crowd() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let log = directory.path().join("audit.log");
    let path = log.to_str().context("the temporary directory is not UTF-8")?;
    let options =
        ["--nodes", "1", "--max-mutating-requests-inflight", "1", "--audit-log-path", path];
    let cluster = Picokube::up(&options)?;
    let refused = || -> Result<bool> {
        let text = std::fs::read_to_string(&log)?;
        let mut events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(events.any(|event| {
            let agent = event["userAgent"].as_str().unwrap_or_default();
            agent.starts_with("picokube/") && event["responseStatus"]["code"] == 429
        }))
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let crowd = scope.spawn(|| keep_dripping(cluster.address(), &stop));
        let rolled_out = (|| {
            let template = json!({
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            });
            let deployment = json!({
                "metadata": {"name": "web"},
                "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
            });
            let deployments = "/apis/apps/v1/namespaces/default/deployments";
            cluster.wait_until("the Deployment is taken", || {
                Ok(cluster.send_json("POST", deployments, &deployment)?.status == 201)
            })?;
            let web = format!("{deployments}/web");
            let scale = |replicas| {
                cluster.send_json("PATCH", &web, &json!({"spec": {"replicas": replicas}}))
            };
            // Between two of the crowd there is a gap, through which all that there is to do may slip:
            // so there always is more.
            let turn = Cell::new(0);
            cluster.wait_until("the controllers are told to come again", || {
                turn.set(turn.get() + 1);
                scale(1 + turn.get() % 3)?;
                refused()
            })?;
            stop.store(true, Ordering::Relaxed);
            cluster.wait_until("the Deployment is scaled", || Ok(scale(2)?.status == 200))?;
            cluster.wait_until("the Deployment is available", || {
                let web = cluster.get(&web)?.json()?;
                Ok(web["status"]["availableReplicas"] == 2)
            })
        })();
        stop.store(true, Ordering::Relaxed);
        crowd.join().map_err(|_| anyhow::anyhow!("the crowd panicked"))??;
        rolled_out
    })
}

/// Takes a place with a body that does not go on, again and again.
fn keep_dripping(address: SocketAddr, stop: &AtomicBool) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let mut stream = begin_body(address)?;
        loop {
            let answer = stream.read(&mut [0; 512]);
            let waits = answer.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            if !waits || stop.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

/// A connection over which a request has begun.
fn begin_body(address: SocketAddr) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_linger(Some(Duration::ZERO))?;
    socket.connect(&address.into())?;
    let mut stream = TcpStream::from(socket);
    write!(
        stream,
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {BODY_BYTES}\r\n\r\n"
    )?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Bodies on their way.
struct Sending {
    senders: Vec<TcpStream>,
    /// How much of each body is sent.
    sent: Vec<usize>,
}

impl Sending {
    /// Sends as much of a piece over each connection as the server takes.
    fn send_a_piece_each(&mut self, body: &[u8]) {
        for (stream, sent) in self.senders.iter_mut().zip(&mut self.sent) {
            let piece = &body[*sent..body.len().min(*sent + (256 << 10))];
            match stream.write(piece) {
                Ok(length) => *sent += length,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                // It was refused and hung up on.
                Err(_) => *sent = body.len(),
            }
        }
    }
}

fn metric(server: &Picokube, name: &str) -> Result<u64> {
    let page = server.get("/metrics")?.text();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no {name} in\n{page}"))?.parse()?)
}

/// The most memory that a process has had at a time.
fn peak_memory(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmHWM")?;
    Ok(kib.parse::<u64>()? * 1024)
}
