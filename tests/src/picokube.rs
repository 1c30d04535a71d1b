//! The real `picokube`, in a process of its own, on a free port of loopback.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::cargo::program;
use crate::http::{Answer, Client};
use crate::kubectl::Kubectl;
use crate::port::Port;
use crate::tunnel::Tunnel;

/// Where it keeps certificates and the token, in its directory.
const CERTIFICATES: &str = "certificates";

/// Nothing takes so long, on however busy a machine.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// How long to wait before a condition is looked at again.
const GLANCE: Duration = Duration::from_millis(20);

/// A running `picokube` with a directory of its own. It ends when it is dropped.
#[derive(Debug)]
pub struct Picokube {
    process: Child,
    /// Nobody else's while it is down.
    port: Port,
    directory: TempDir,
    arguments: Vec<String>,
    /// The way in, if it speaks TLS.
    tunnel: Option<Tunnel>,
}

impl Picokube {
    /// The API server alone: nothing in the cluster moves by itself.
    pub fn server() -> Result<Self> {
        Self::start(&["server"])
    }

    /// A cluster with simulated nodes, and nobody who makes pods for workloads.
    pub fn with_nodes(nodes: usize) -> Result<Self> {
        Self::up(&["--no-controllers", "--nodes", &nodes.to_string()])
    }

    /// A whole cluster: `picokube up` with these options.
    pub fn up(options: &[&str]) -> Result<Self> {
        Self::start(&[&["up"], options].concat())
    }

    /// `picokube` with these arguments, once it is ready. It keeps nothing when it ends.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        Self::start_in(TempDir::new()?, arguments.iter().map(|&word| word.to_owned()).collect())
    }

    /// The same, with what it stores on disk, so that it is there again after a restart.
    pub fn on_disk(arguments: &[&str]) -> Result<Self> {
        let directory = TempDir::new()?;
        let data = directory.path().join("data");
        let data = data.to_str().context("the temporary directory is not UTF-8")?;
        let arguments = [arguments, &["--data", data]].concat();
        Self::start_in(directory, arguments.into_iter().map(str::to_owned).collect())
    }

    /// The same over TLS, with a token and client certificates: the tests' own clients, which speak plain
    /// HTTP, get in by a tunnel.
    pub fn secure(arguments: &[&str]) -> Result<Self> {
        Self::secure_in(TempDir::new()?, arguments)
    }

    /// The same, with what it stores on disk.
    pub fn secure_on_disk(arguments: &[&str]) -> Result<Self> {
        let directory = TempDir::new()?;
        let data = directory.path().join("data");
        let data = data.to_str().context("the temporary directory is not UTF-8")?;
        Self::secure_in(directory, &[arguments, &["--data", data]].concat())
    }

    fn secure_in(directory: TempDir, arguments: &[&str]) -> Result<Self> {
        let certificates = directory.path().join(CERTIFICATES);
        let certificates = certificates.to_str().context("the directory is not UTF-8")?;
        let how = ["--secure", "--cert-dir", certificates, "--kubeconfig-user", "tester"];
        let arguments = arguments.iter().chain(&how).map(|&word| word.to_owned());
        let arguments = arguments.collect();
        Self::start_in(directory, arguments)
    }

    fn start_in(directory: TempDir, arguments: Vec<String>) -> Result<Self> {
        let port = Port::free()?;
        let process = spawn(&arguments, port.address(), directory.path())?;
        let mut picokube = Self { process, port, directory, arguments, tunnel: None };
        picokube.wait_until_ready()?;
        Ok(picokube)
    }

    /// Kills the process if it still runs (SIGKILL), and starts it again at the same address.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.process = spawn(&self.arguments, self.address(), self.directory.path())?;
        self.wait_until_ready()
    }

    /// Ends the process at once (SIGKILL); what it has stored and its address are kept.
    pub fn kill(&mut self) -> Result<()> {
        // It may have ended by itself; that is no error here.
        let _ = self.process.kill();
        self.process.wait()?;
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The token that clients without a certificate have to show, and the authority to trust; files, in PEM.
    /// Only if it speaks TLS.
    pub fn token_and_authority(&self) -> (PathBuf, PathBuf) {
        let certificates = self.directory.path().join(CERTIFICATES);
        (certificates.join("token"), certificates.join("ca.crt"))
    }

    /// Whether it speaks TLS.
    pub fn is_secure(&self) -> bool {
        self.tunnel.is_some()
    }

    /// Where it, or a tunnel to it, speaks plain HTTP.
    fn plain_address(&self) -> SocketAddr {
        self.tunnel.as_ref().map_or(self.address(), Tunnel::address)
    }

    /// Where its API is for those who speak plain HTTP, such as `http://127.0.0.1:8001`.
    pub fn base(&self) -> String {
        format!("http://{}", self.plain_address())
    }

    /// A directory that lives as long as this.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The file with which clients find it.
    pub fn kubeconfig(&self) -> PathBuf {
        kubeconfig_in(self.directory.path())
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// The kubectl of this machine, pointed at this cluster.
    pub fn kubectl(&self) -> Result<Kubectl<'_>> {
        Kubectl::new(self)
    }

    /// A connection.
    pub fn client(&self) -> Result<Client> {
        Client::connect(self.plain_address())
    }

    /// Asks for a path, over a connection of its own.
    pub fn get(&self, path: &str) -> Result<Answer> {
        self.client()?.send("GET", path, &[], b"")
    }

    /// Sends JSON, over a connection of its own; a patch is a merge patch.
    pub fn send_json(&self, method: &str, path: &str, body: &Value) -> Result<Answer> {
        let media_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let headers = [("content-type", media_type)];
        self.client()?.send(method, path, &headers, body.to_string().as_bytes())
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

    fn wait_until_ready(&mut self) -> Result<()> {
        let output = self.process.stdout.take().context("picokube has no output")?;
        let is_secure = match listens(output).recv_timeout(PATIENCE) {
            Ok(is_secure) => is_secure,
            Err(RecvTimeoutError::Timeout) => bail!("picokube does not say that it listens"),
            Err(RecvTimeoutError::Disconnected) => bail!("picokube ended before it was ready"),
        };
        if is_secure && self.tunnel.is_none() {
            self.tunnel = Some(Tunnel::start(self.address(), &self.kubeconfig())?);
        }
        self.wait_until("it is ready", || {
            Ok(self.get("/readyz").is_ok_and(|answer| answer.status == 200))
        })
    }
}

impl Drop for Picokube {
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
    let path = program("picokube", &["--bin", "picokube"], "picokube")?;
    Ok(BINARY.get_or_init(|| path))
}

fn spawn(arguments: &[String], listen: SocketAddr, directory: &Path) -> Result<Child> {
    Command::new(binary()?)
        .args(arguments)
        .args(["--listen", &listen.to_string(), "--write-kubeconfig"])
        .arg(kubeconfig_in(directory))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start picokube")
}

fn kubeconfig_in(directory: &Path) -> PathBuf {
    directory.join("kubeconfig")
}

/// Tells that it listens, and whether with TLS. Reads what the server prints, for as long as it does: it must
/// not block on its own log.
fn listens(output: impl Read + Send + 'static) -> Receiver<bool> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let url = line.strip_prefix("listening on ").and_then(|url| url.split_once("://"));
            if let Some((scheme, _)) = url {
                // Nobody waits for it any more after the first.
                let _ = sender.send(scheme == "https");
            }
        }
    });
    receiver
}
