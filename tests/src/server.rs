//! The API server under test: the real `picokube`, in a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::http::{Answer, Client};

/// Nothing takes so long, on however busy a machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How long to wait before a condition is looked at again.
const GLANCE: Duration = Duration::from_millis(20);

/// A running server with a directory of its own. It ends when it is dropped.
pub struct Server {
    process: Child,
    address: SocketAddr,
    directory: TempDir,
}

impl Server {
    /// The API server alone: nothing in the cluster moves by itself.
    pub fn alone() -> Result<Self> {
        Self::start(&["server"])
    }

    /// A cluster with simulated nodes, and nobody who makes pods for workloads.
    pub fn with_nodes(nodes: usize) -> Result<Self> {
        Self::start(&["up", "--no-controllers", "--nodes", &nodes.to_string()])
    }

    /// `picokube` with these arguments, on a free port of loopback.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        let directory = TempDir::new()?;
        let mut process = Command::new(binary()?)
            .args(arguments)
            .args(["--listen", "127.0.0.1:0", "--write-kubeconfig"])
            .arg(directory.path().join("kubeconfig"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start picokube")?;
        let output = process.stdout.take().context("picokube has no output")?;
        let address = first_address(output);
        // Made before the address is looked at: a server that does not come up is ended, too.
        let mut server = Self { process, address: ([127, 0, 0, 1], 0).into(), directory };
        server.address = match address.recv_timeout(PATIENCE) {
            Ok(address) => address,
            Err(RecvTimeoutError::Timeout) => bail!("picokube does not say where it listens"),
            Err(RecvTimeoutError::Disconnected) => bail!("picokube ended before it was ready"),
        };
        server.wait_until("it is ready", || {
            Ok(server.get("/readyz").is_ok_and(|answer| answer.status == 200))
        })?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A directory that lives as long as the server.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The file with which clients find it.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Asks for a path.
    pub fn get(&self, path: &str) -> Result<Answer> {
        Client::connect(self.address)?.send("GET", path, &[], b"")
    }

    /// Sends JSON.
    pub fn send_json(&self, method: &str, path: &str, body: &Value) -> Result<Answer> {
        let media_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let headers = [("content-type", media_type)];
        Client::connect(self.address)?.send(method, path, &headers, body.to_string().as_bytes())
    }

    /// Creates an object and gives it back as it is stored.
    pub fn create(&self, collection: &str, object: &Value) -> Result<Value> {
        let answer = self.send_json("POST", collection, object)?;
        ensure!(answer.status == 201, "cannot create in {collection}: {}", answer.text());
        answer.json()
    }

    /// Waits until `condition` holds.
    pub fn wait_until(&self, what: &str, condition: impl Fn() -> Result<bool>) -> Result<()> {
        let give_up = Instant::now() + PATIENCE;
        while !condition()? {
            ensure!(Instant::now() < give_up, "waited in vain until {what}");
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// Presses Ctrl-C and says how the process ended.
    pub fn interrupt(mut self) -> Result<ExitStatus> {
        let process = self.process.id().to_string();
        let sent = Command::new("kill").args(["-INT", &process]).status()?;
        ensure!(sent.success(), "cannot interrupt process {process}");
        let give_up = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < give_up, "process {process} does not end");
            std::thread::sleep(GLANCE);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which is for the test to notice, not for this.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds `picokube` as a user would, once; says where it is.
pub fn binary() -> Result<&'static Path> {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    static BUILDING: Mutex<()> = Mutex::new(());
    if let Some(path) = BINARY.get() {
        return Ok(path);
    }
    let _one_builds = BUILDING.lock();
    if let Some(path) = BINARY.get() {
        return Ok(path);
    }
    let path = build()?;
    Ok(BINARY.get_or_init(|| path))
}

fn build() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["build", "--package", "picokube", "--bin", "picokube"])
        .args(["--quiet", "--message-format", "json-render-diagnostics"])
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo build --package picokube` failed:\n{errors}");
    let messages = String::from_utf8(output.stdout)?;
    let mut executables = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executables.next_back().context("cargo did not say where it put picokube")
}

/// Reads what the server prints, for as long as it does: it must not block on its own log.
fn first_address(output: impl std::io::Read + Send + 'static) -> Receiver<SocketAddr> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let address = line.strip_prefix("listening on ").and_then(|url| {
                url.trim_start_matches("http://").trim_start_matches("https://").parse().ok()
            });
            if let Some(address) = address {
                // Nobody waits for it any more after the first.
                let _ = sender.send(address);
            }
        }
    });
    receiver
}
