//! The `picokube` command under test, as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// No start takes so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What `picokube up` prints in front of its address.
const ADDRESS: &str = "listening on ";

/// A running `picokube up`. It ends when dropped.
#[derive(Debug)]
pub struct Picokube {
    process: Child,
    base: String,
}

impl Picokube {
    /// Builds the command and starts a cluster on a free port of the loopback.
    pub fn up(options: &[&str]) -> Result<Self> {
        let mut process = Command::new(executable()?)
            .args(["up", "--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start picokube")?;
        let output = process.stdout.take().context("no standard output")?;
        let (found, address) = mpsc::channel();
        // Reads on to the end: a full pipe would stop the cluster.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once(ADDRESS) {
                    // Nobody may be waiting any more.
                    let _ = found.send(address.trim().to_owned());
                }
            }
        });
        let mut picokube = Self { process, base: String::new() };
        let address = address.recv_timeout(PATIENCE);
        picokube.base = address.context("picokube did not say where it listens")?;
        Ok(picokube)
    }

    /// Where its API is, such as `http://127.0.0.1:8001`.
    pub fn base(&self) -> &str {
        &self.base
    }
}

impl Drop for Picokube {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds `picokube`, by the same command as a user, and says where it is.
fn executable() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["build", "--quiet", "--package", "picokube", "--message-format", "json"])
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo build --package picokube` failed:\n{errors}");
    for line in output.stdout.lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["target"]["name"] == "picokube"
            && let Some(path) = message["executable"].as_str()
        {
            return Ok(PathBuf::from(path));
        }
    }
    bail!("cargo named no executable")
}
