//! An emulated microcontroller as the cluster's controller: `picokube up --firmware`.
//!
//! The emulator and the decoder of the firmware's log are in a program of their own,
//! `picokube-qemu`, which this runs and listens to.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use picokube_core::manager::Settings;

use super::run::{MAX_UNAVAILABLE, TERMINATING_REPLICAS};

const PROGRAM: &str = "picokube-qemu";
/// Where `cargo xtask firmware build` puts the image, below the folder that cargo builds in.
const IMAGE: &str = "images/picokube-mps2-an386-reference.elf";
/// How much of the log a screen has room for.
const LINES_ON_SCREEN: usize = 12;

/// A running device. It is switched off when dropped.
pub(super) struct Device {
    process: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Device {
    /// Boots `image`, or the one that was built last, for the API server at `url`. Its status pages
    /// are served at `pages`.
    pub(super) fn start(
        image: Option<&Path>,
        url: &str,
        settings: &Settings,
        pages: Option<SocketAddr>,
    ) -> Result<Self> {
        let Some(server) = url.strip_prefix("http://") else {
            bail!("the firmware speaks HTTP without TLS, and this server wants TLS: {url}");
        };
        let image = match image {
            Some(image) => image.to_owned(),
            None => beside_this_program("..")?.join(IMAGE),
        };
        if !image.exists() {
            let image = image.display();
            bail!("there is no firmware at {image}: `cargo xtask firmware build` builds it");
        }
        let program = beside_this_program(PROGRAM)?;
        if !program.exists() {
            let folder = program.display();
            bail!("{folder} is missing: `cargo build --package {PROGRAM}` builds it");
        }
        let lag = settings.status_lag.as_millis().to_string();
        let gates = [
            (TERMINATING_REPLICAS, settings.terminating_replicas),
            (MAX_UNAVAILABLE, settings.max_unavailable_stateful_set),
        ];
        let gates = gates.map(|(gate, is_on)| format!("{gate}={is_on}")).join(",");
        let pages = pages.map(|address| ["--status".to_owned(), address.to_string()]);
        let mut process = Command::new(&program)
            .arg("--image")
            .arg(&image)
            .args(["--server", server, "--status-lag", &lag, "--feature-gates", &gates])
            .args(pages.into_iter().flatten())
            // It ends when this pipe does, however this process ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let log = Arc::new(Mutex::new(Vec::new()));
        gather(process.stdout.take(), &log);
        gather(process.stderr.take(), &log);
        Ok(Self { process, log })
    }

    /// The lines of the log after the first `shown`.
    pub(super) fn lines_after(&self, shown: usize) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.get(shown..).unwrap_or_default().to_vec()
    }

    /// The end of the log, for a screen.
    pub(super) fn screen(&self) -> String {
        let lines = self.lines_after(0);
        let mut text = "\nDEVICE\n".to_owned();
        for line in lines.iter().skip(lines.len().saturating_sub(LINES_ON_SCREEN)) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Its input ends, and with it the emulator.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// A file in the folder of this program.
fn beside_this_program(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find out where this program is")?;
    let folder = program.parent().context("this program is in no folder")?;
    Ok(folder.join(name))
}

/// Keeps every line that comes.
fn gather(output: Option<impl std::io::Read + Send + 'static>, log: &Arc<Mutex<Vec<String>>>) {
    let Some(output) = output else { return };
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
}
