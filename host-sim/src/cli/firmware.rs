//! An emulated microcontroller as the cluster's controller: `picokube up --firmware`.
//!
//! The emulator and the decoder of the firmware's log are in a program of their own,
//! `picokube-qemu`, which this runs and listens to.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use picokube_core::manager::Settings;
use tempfile::NamedTempFile;

use super::run::{MAX_UNAVAILABLE, TERMINATING_REPLICAS};

const PROGRAM: &str = "picokube-qemu";
/// Where `cargo xtask firmware build` puts the image, below the folder that cargo builds in.
const IMAGE: &str = "images/picokube-mps2-an386-reference.elf";
/// How much of the log a screen has room for.
const LINES_ON_SCREEN: usize = 12;

/// Devices that run. They are switched off when this is dropped.
#[derive(Default)]
pub(super) struct Devices {
    devices: Vec<Device>,
    log: Log,
}

/// What all devices have said, in the order in which it came, with the numbers of the devices.
type Log = Arc<Mutex<Vec<(usize, String)>>>;

/// A running device.
struct Device {
    name: String,
    process: Mutex<Child>,
    /// Where nothing is said: that this ends, says that the device is to end.
    input: Mutex<Option<ChildStdin>>,
    /// What the emulator reads when it starts.
    _kubeconfig: Option<NamedTempFile>,
}

/// Which firmware is booted, and how.
pub(super) struct Booting<'a> {
    /// The image; without it, the one that was built last.
    pub(super) image: Option<&'a Path>,
    pub(super) served: Served<'a>,
    pub(super) settings: &'a Settings,
    /// Where its status pages are served.
    pub(super) pages: Option<SocketAddr>,
    /// Whether there is a second one, and so an election.
    pub(super) has_standby: bool,
}

/// The API server that a device is for.
pub(super) struct Served<'a> {
    /// Its address on this machine's loopback, with its scheme.
    pub(super) url: &'a str,
    /// A kubeconfig for it, if it speaks TLS.
    pub(super) kubeconfig: Option<String>,
}

impl Devices {
    /// Boots one device, or two.
    pub(super) fn boot(booting: &Booting<'_>) -> Result<Self> {
        let log = Log::default();
        let start = |number, name, pages| Device::start(booting, number, name, pages, &log);
        let devices = if booting.has_standby {
            let next =
                |pages: SocketAddr| SocketAddr::new(pages.ip(), pages.port().saturating_add(1));
            let first = start(0, "picokube-1", booting.pages)?;
            vec![first, start(1, "picokube-2", booting.pages.map(next))?]
        } else {
            vec![start(0, "device", booting.pages)?]
        };
        Ok(Self { devices, log })
    }

    /// The lines of the log after the first `shown`, which it then counts, too; each with the name of its
    /// device.
    pub(super) fn lines_after(&self, shown: &mut usize) -> Vec<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = log.get(*shown..).unwrap_or_default();
        *shown += fresh.len();
        let named = |(number, line): &(usize, String)| {
            let device = self.devices.get(*number)?;
            Some(format!("{}  {line}", device.name))
        };
        fresh.iter().filter_map(named).collect()
    }

    /// The ends of what each has said, for a screen.
    pub(super) fn screen(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let room = LINES_ON_SCREEN / self.devices.len().max(1);
        for (number, device) in self.devices.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{}", device.name.to_uppercase());
            let its = log.iter().rev().filter(|(of, _)| *of == number).take(room);
            for (_, line) in its.collect::<Vec<_>>().into_iter().rev() {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }

    /// Ends them. Of two, the one that leads gives leadership back, as long as the server is there.
    pub(super) fn end(&self) {
        // First all of them are told.
        for Device { input, .. } in &self.devices {
            drop(input.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        for Device { process, .. } in &self.devices {
            let _ = process.lock().unwrap_or_else(PoisonError::into_inner).wait();
        }
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        self.end();
    }
}

impl Device {
    fn start(
        booting: &Booting<'_>,
        number: usize,
        name: &str,
        pages: Option<SocketAddr>,
        log: &Log,
    ) -> Result<Self> {
        let Booting { image, served, settings, has_standby, .. } = booting;
        let server = served.url.split_once("://").map_or(served.url, |(_, server)| server);
        let image = match image {
            Some(image) => image.to_path_buf(),
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
        let kubeconfig = served.kubeconfig.as_deref().map(secret_file).transpose()?;
        let mut command = Command::new(&program);
        command.arg("--image").arg(&image).args([
            "--server",
            server,
            "--status-lag",
            &lag,
            "--feature-gates",
            &gates,
        ]);
        if let Some(file) = &kubeconfig {
            command.arg("--kubeconfig").arg(file.path());
        }
        if let Some(pages) = pages {
            command.args(["--status", &pages.to_string()]);
        }
        if *has_standby {
            let address = number.to_string();
            command.args(["--identity", name, "--number", &address, "--leader-elect"]);
        }
        let mut process = command
            // It ends when this pipe does, however this process ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        gather(number, process.stdout.take(), log);
        gather(number, process.stderr.take(), log);
        let input = Mutex::new(process.stdin.take());
        let (name, process) = (name.to_owned(), Mutex::new(process));
        Ok(Self { name, process, input, _kubeconfig: kubeconfig })
    }
}

/// A new file with this text, for its owner only.
fn secret_file(text: &str) -> Result<NamedTempFile> {
    let mut file = NamedTempFile::new().context("cannot write a kubeconfig for the device")?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// A file in the folder of this program.
fn beside_this_program(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find out where this program is")?;
    let folder = program.parent().context("this program is in no folder")?;
    Ok(folder.join(name))
}

/// Keeps every line that comes of a device.
fn gather(number: usize, output: Option<impl std::io::Read + Send + 'static>, log: &Log) {
    let Some(output) = output else { return };
    let log = Arc::clone(log);
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            log.lock().unwrap_or_else(PoisonError::into_inner).push((number, line));
        }
    });
}
