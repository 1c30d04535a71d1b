//! A running emulation.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::image::{Image, Line, next_line};

/// The emulator.
pub const PROGRAM: &str = "qemu-system-arm";

/// The loopback of the host, as the firmware sees it.
pub const HOST_SEEN_BY_GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// The port of the firmware's status pages, on the firmware's side.
const STATUS_PORT: u16 = 80;

/// No answer of the emulator takes so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a machine is started with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start<'a> {
    /// The words of the semihosting command line.
    pub words: &'a [&'a str],
    /// What is in the flash that is set aside for the configuration page.
    pub page: Option<&'a [u8]>,
    /// Where on the host the firmware's status pages are served.
    pub status: Option<SocketAddr>,
    /// Count instructions: each takes a nanosecond of the firmware's time.
    pub count_instructions: bool,
}

/// An emulated MPS2 AN386 with a network card. It is switched off when dropped.
pub struct Machine {
    emulator: Child,
    lines: Receiver<Line>,
    /// Holds the page and the socket of the emulator's monitor.
    directory: TempDir,
}

impl Machine {
    /// Boots `image`.
    pub fn boot(image: &Arc<Image>, start: Start<'_>) -> Result<Self> {
        let directory = TempDir::new()?;
        let mut emulator = command(image, start, directory.path())?
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {PROGRAM}: run `cargo xtask setup`"))?;
        let stdout = emulator.stdout.take().context("the emulator has no output")?;
        let (sender, lines) = channel();
        let image = Arc::clone(image);
        thread::spawn(move || decode(&image, stdout, &sender));
        Ok(Self { emulator, lines, directory })
    }

    /// The next line of the log; `None` when there will be no more. Fails after `patience`.
    pub fn next_line(&mut self, patience: Duration) -> Result<Option<Line>> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                bail!("the firmware has not logged anything for {} s", patience.as_secs())
            }
        }
    }

    /// The emulator's process.
    pub fn process_id(&self) -> u32 {
        self.emulator.id()
    }

    /// Cuts the power.
    pub fn switch_off(&mut self) {
        // Fails only if it has ended already.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }

    /// Pulls the network cable, or plugs it in again.
    pub fn set_link(&self, up: bool) -> Result<()> {
        self.tell(&format!(r#"{{"execute":"set_link","arguments":{{"name":"cable","up":{up}}}}}"#))
    }

    /// Waits until the firmware ends the emulation by itself.
    pub fn wait(mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.emulator.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("the emulation has not ended within {} s", patience.as_secs());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Gives the emulator's monitor a command and waits until it is done.
    fn tell(&self, command: &str) -> Result<()> {
        let socket = UnixStream::connect(self.directory.path().join(MONITOR))
            .context("cannot reach the emulator's monitor")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut answers = BufReader::new(socket.try_clone()?).lines();
        // It greets first, then wants to be asked for nothing special.
        answers.next().context("the emulator's monitor does not greet")??;
        for command in [r#"{"execute":"qmp_capabilities"}"#, command] {
            writeln!(&socket, "{command}")?;
            loop {
                let answer = answers.next().context("the emulator's monitor does not answer")??;
                ensure!(!answer.contains("\"error\""), "{command}: {answer}");
                // Between answers it tells of events.
                if answer.contains("\"return\"") {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.switch_off();
    }
}

const MONITOR: &str = "monitor";

fn command(image: &Image, start: Start<'_>, directory: &Path) -> Result<Command> {
    let mut semihosting = "enable=on,target=native".to_owned();
    for word in start.words {
        semihosting.push_str(",arg=");
        semihosting.push_str(word);
    }
    let mut card = "user,id=cable,model=lan9118".to_owned();
    if let Some(status) = start.status {
        card.push_str(&format!(",hostfwd=tcp:{}:{}-:{STATUS_PORT}", status.ip(), status.port()));
    }
    let monitor = format!("unix:{},server=on,wait=off", directory.join(MONITOR).display());
    let mut command = Command::new(PROGRAM);
    command
        .args(["-machine", "mps2-an386", "-nic", &card])
        .args(["-display", "none", "-serial", "none", "-monitor", "none", "-qmp", &monitor])
        .args(["-semihosting-config", &semihosting])
        .arg("-kernel")
        .arg(image.path());
    if let Some(page) = start.page {
        let file = directory.join("page");
        std::fs::write(&file, page)?;
        let address = image.configuration_page()?;
        let loader = format!("loader,file={},addr={address:#x},force-raw=on", file.display());
        command.args(["-device", &loader]);
    }
    if start.count_instructions {
        command.args(["-icount", "shift=0,sleep=off"]);
    }
    Ok(command)
}

/// Turns the emulator's output into log lines until it ends or nobody listens.
fn decode(image: &Image, mut output: ChildStdout, lines: &Sender<Line>) {
    let mut decoder = image.decoder();
    let mut bytes = [0; 1024];
    while let Ok(len @ 1..) = output.read(&mut bytes) {
        decoder.received(bytes.get(..len).unwrap_or_default());
        while let Some(line) = next_line(&mut *decoder) {
            if lines.send(line).is_err() {
                return;
            }
        }
    }
}
