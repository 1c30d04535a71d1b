//! A running emulation.

use std::io::Read;
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::image::{Image, Line, next_line};

/// The emulator.
pub const PROGRAM: &str = "qemu-system-arm";

/// The loopback of the host, as the firmware sees it.
pub const HOST_SEEN_BY_GUEST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// An emulated MPS2 AN386 with a network card. It is switched off when dropped.
pub struct Machine {
    emulator: Child,
    lines: Receiver<Line>,
}

impl Machine {
    /// Boots `image` with `words` as its semihosting command line.
    pub fn boot(image: &Arc<Image>, words: &[&str]) -> Result<Self> {
        let mut semihosting = "enable=on,target=native".to_owned();
        for word in words {
            semihosting.push_str(",arg=");
            semihosting.push_str(word);
        }
        let mut emulator = Command::new(PROGRAM)
            .args(["-machine", "mps2-an386", "-nic", "user,model=lan9118"])
            .args(["-display", "none", "-monitor", "none", "-serial", "none"])
            .args(["-semihosting-config", &semihosting])
            .arg("-kernel")
            .arg(image.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {PROGRAM}: run `cargo xtask setup`"))?;
        let stdout = emulator.stdout.take().context("the emulator has no output")?;
        let (sender, lines) = channel();
        let image = Arc::clone(image);
        thread::spawn(move || decode(&image, stdout, &sender));
        Ok(Self { emulator, lines })
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
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
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
