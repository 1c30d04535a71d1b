//! `picokube bench server`: the real server in a process of its own, over real sockets.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::super::ServerBenchOptions;
use super::process::{cpu_seconds, machine, resident};

const PODS: &str = "/api/v1/namespaces/default/pods";
const LISTS: usize = 20;
const FAN_OUT_WATCHERS: usize = 500;
const FAN_OUT_EVENTS: usize = 100;

/// Measures and prints a table.
pub(in super::super) async fn server(options: ServerBenchOptions) -> Result<()> {
    let mut child = Server::start(options.data.as_deref()).await?;
    let result = measure(&child.address, child.process.id(), &options).await;
    child.process.kill().await?;
    result
}

async fn measure(address: &str, process: Option<u32>, options: &ServerBenchOptions) -> Result<()> {
    let body = calibrated_pod(address, options.pod_bytes).await?;
    let stored = stored_bytes(address, "size").await?;
    say!("machine: {}", machine());
    say!(
        "{} pods of {stored} bytes, requests of {}, {} connections, {} watches following{}\n",
        options.pods,
        body.len(),
        options.clients,
        options.watchers,
        if options.data.is_some() { ", on disk" } else { ", in memory" }
    );
    say!("{:<34} {:>10} {:>10} {:>10}", "", "per second", "p50", "p99");

    // The first requests pay for caches and page faults of both sides.
    repeat(address, 200, options.clients, |index| create(index, "warm", &body)).await?;
    repeat(address, 200, options.clients, |index| {
        format!("DELETE {PODS}/warm-{index} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
    })
    .await?;

    let (before, busy) = (resident(process), cpu_seconds(process));
    let watchers = Watchers::start(address, options.watchers).await?;
    let created =
        repeat(address, options.pods, options.clients, |index| create(index, "pod", &body)).await?;
    let followed = watchers.wait(options.pods).await?;
    created.print("create, watches following");
    say!("{:<34} {:>10.0}", "  all watches have seen all", options.pods as f64 / followed);
    if let (Some(before), Some(after)) = (busy, cpu_seconds(process)) {
        let each = (after - before) * 1e6 / options.pods as f64;
        say!("{:<34} {each:>7.0} µs", "  CPU time of the server, each");
    }
    drop(watchers);
    let after = resident(process);

    let pods = options.pods;
    let gets = repeat(address, options.pods, options.clients, |index| {
        format!("GET {PODS}/pod-{} HTTP/1.1\r\nhost: localhost\r\n\r\n", index % pods).into_bytes()
    });
    gets.await?.print("get");
    let lists = repeat(address, LISTS, 2, |_| {
        format!("GET {PODS} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
    });
    let lists = lists.await?;
    lists.print(&format!("list of {} pods", options.pods));
    let megabytes = lists.bytes as f64 / 1e6 / lists.seconds;
    say!("{:<34} {megabytes:>9.0} MB/s", "  sent");
    let pages = repeat(address, 200, options.clients, |_| {
        format!("GET {PODS}?limit=500 HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
    });
    pages.await?.print("list, one page of 500");

    let watchers = Watchers::start(address, FAN_OUT_WATCHERS).await?;
    let started = Instant::now();
    repeat(address, FAN_OUT_EVENTS, 1, |index| create(index, "fan", &body)).await?;
    watchers.wait(FAN_OUT_EVENTS).await?;
    let events = (FAN_OUT_WATCHERS * FAN_OUT_EVENTS) as f64 / started.elapsed().as_secs_f64();
    say!("{:<34} {events:>10.0}", format!("events to {FAN_OUT_WATCHERS} watches"));
    drop(watchers);

    say!();
    if let (Some(before), Some(after)) = (before, after) {
        let per_pod = (after.saturating_sub(before)) as f64 / options.pods as f64;
        say!(
            "memory of the server: {:.1} MiB before, {:.1} MiB after; {:.0} bytes per pod",
            before as f64 / 1048576.0,
            after as f64 / 1048576.0,
            per_pod
        );
    }
    Ok(())
}

/// The server under measurement.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    async fn start(data: Option<&Path>) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["server", "--listen", "127.0.0.1:0"]);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let output = process.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = line.strip_prefix("listening on http://") {
                let address = address.to_owned();
                // Somebody has to read on, or the server blocks on its own log.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(Self { process, address });
            }
        }
        bail!("the server ended before it was ready")
    }
}

/// How long requests took.
struct Timings {
    seconds: f64,
    sorted: Vec<Duration>,
    bytes: usize,
}

impl Timings {
    fn print(&self, name: &str) {
        let per_second = self.sorted.len() as f64 / self.seconds;
        let at = |part: f64| {
            let index = (self.sorted.len() as f64 * part) as usize;
            let index = index.min(self.sorted.len().saturating_sub(1));
            self.sorted.get(index).copied().unwrap_or_default()
        };
        let milliseconds = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        say!(
            "{name:<34} {per_second:>10.0} {:>10} {:>10}",
            milliseconds(at(0.5)),
            milliseconds(at(0.99))
        );
    }
}

/// Sends `count` requests over `clients` connections, each waiting for its answers.
async fn repeat(
    address: &str,
    count: usize,
    clients: usize,
    request: impl Fn(usize) -> Vec<u8>,
) -> Result<Timings> {
    let requests: Vec<Vec<u8>> = (0..count).map(request).collect();
    let requests = Arc::new(requests);
    let next = Arc::new(AtomicUsize::new(0));
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(Connection::open(address).await?);
    }
    let started = Instant::now();
    let mut tasks = Vec::new();
    for mut connection in connections {
        let (requests, next) = (requests.clone(), next.clone());
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            let mut bytes = 0;
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                let sent = Instant::now();
                let (status, length) = connection.exchange(request).await?;
                ensure!(status < 300, "the server answered {status}");
                times.push(sent.elapsed());
                bytes += length;
            }
            Ok((times, bytes))
        }));
    }
    let (mut sorted, mut bytes) = (Vec::new(), 0);
    for task in tasks {
        let (times, length) = task.await??;
        sorted.extend(times);
        bytes += length;
    }
    let seconds = started.elapsed().as_secs_f64();
    sorted.sort();
    Ok(Timings { seconds, sorted, bytes })
}

/// Watches that count what they see.
struct Watchers {
    started: Instant,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    seen: Arc<Vec<AtomicIsize>>,
}

impl Watchers {
    async fn start(address: &str, count: usize) -> Result<Self> {
        let mut connection = Connection::open(address).await?;
        connection
            .exchange(format!("GET {PODS}?limit=1 HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
            .await?;
        let list = String::from_utf8_lossy(&connection.body).into_owned();
        let version = list.split("\"resourceVersion\":\"").nth(1).and_then(|t| t.split('"').next());
        let version = version.context("the list has no version")?.to_owned();
        let seen: Arc<Vec<AtomicIsize>> = Arc::new((0..count).map(|_| 0.into()).collect());
        let mut tasks = Vec::new();
        for index in 0..count {
            let mut stream = TcpStream::connect(address).await?;
            let request = format!(
                "GET {PODS}?watch=1&resourceVersion={version} HTTP/1.1\r\nhost: localhost\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await?;
            let seen = seen.clone();
            tasks.push(tokio::spawn(async move {
                let mut buffer = vec![0; 256 << 10];
                while let Ok(length) = stream.read(&mut buffer).await {
                    if length == 0 {
                        break;
                    }
                    // An event ends in a bare newline, the lines of HTTP in two characters.
                    let count =
                        |wanted: u8| buffer[..length].iter().filter(|b| **b == wanted).count();
                    let (ends, framing) = (count(b'\n') as isize, count(b'\r') as isize);
                    if let Some(count) = seen.get(index) {
                        count.fetch_add(ends - framing, Ordering::Relaxed);
                    }
                }
            }));
        }
        Ok(Self { started: Instant::now(), tasks, seen })
    }

    /// Waits until every watch has seen `count` events; says how many seconds that took.
    async fn wait(&self, count: usize) -> Result<f64> {
        let give_up = Instant::now() + Duration::from_secs(120);
        while self.seen.iter().any(|seen| seen.load(Ordering::Relaxed) < count as isize) {
            ensure!(Instant::now() < give_up, "the watches do not follow");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(self.started.elapsed().as_secs_f64())
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// A connection that reads answers with as little work as possible: the client shares the
/// machine with the server.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    body: Vec<u8>,
}

impl Connection {
    async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 256 << 10], body: Vec::new() })
    }

    /// Sends a request; gives the status code and the number of bytes of the answer.
    async fn exchange(&mut self, request: &[u8]) -> Result<(u16, usize)> {
        self.stream.write_all(request).await?;
        self.body.clear();
        let mut wanted = None;
        let mut total = 0;
        let mut chunked = false;
        let mut tail = [0; 5];
        loop {
            let length = self.stream.read(&mut self.buffer).await?;
            ensure!(length > 0, "the server closed the connection");
            let new = &self.buffer[..length];
            total += length;
            if !chunked {
                self.body.extend_from_slice(new);
            }
            if wanted.is_none() && !chunked {
                let Some(end) = self.body.windows(4).position(|w| w == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&self.body[..end]).to_ascii_lowercase();
                let header = |name: &str| {
                    head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
                };
                chunked = header("transfer-encoding:") == Some("chunked");
                if !chunked {
                    let length: usize =
                        header("content-length:").context("an answer without length")?.parse()?;
                    wanted = Some(end + 4 + length);
                }
            }
            for byte in new.iter().rev().take(5).rev() {
                tail.rotate_left(1);
                tail[4] = *byte;
            }
            if chunked && tail == *b"0\r\n\r\n" || wanted.is_some_and(|wanted| total >= wanted) {
                break;
            }
        }
        let status = self.body.get(9..12).and_then(|code| std::str::from_utf8(code).ok());
        Ok((status.context("no status line")?.parse()?, total))
    }
}

fn create(index: usize, prefix: &str, body: &str) -> Vec<u8> {
    create_named(&format!("{prefix}-{index}"), body)
}

fn create_named(name: &str, body: &str) -> Vec<u8> {
    let body = body.replace("NAME", name);
    format!(
        "POST {PODS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A pod that has about `bytes` bytes once it is stored.
async fn calibrated_pod(address: &str, bytes: usize) -> Result<String> {
    let mut settings = 0;
    loop {
        let body = pod(settings);
        repeat(address, 1, 1, |_| create_named("size", &body)).await?;
        let stored = stored_bytes(address, "size").await?;
        if stored + 64 >= bytes || settings > 10_000 {
            return Ok(body);
        }
        // A setting takes a good hundred bytes with what the server adds to it.
        settings += (bytes - stored).div_ceil(160);
        repeat(address, 1, 1, |_| {
            format!("DELETE {PODS}/size HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
        })
        .await?;
    }
}

/// A pod as a Deployment makes them, with that many environment variables.
fn pod(settings: usize) -> String {
    let env = (0..settings).map(|index| {
        let name = format!("SETTING_{index:03}");
        serde_json::json!({"name": name, "value": "some value of ordinary length"})
    });
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "NAME",
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
    .to_string()
}

async fn stored_bytes(address: &str, name: &str) -> Result<usize> {
    let mut connection = Connection::open(address).await?;
    let request = format!("GET {PODS}/{name} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    connection.exchange(request.as_bytes()).await?;
    let end = connection.body.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(0);
    Ok(connection.body.len() - end - 4)
}
